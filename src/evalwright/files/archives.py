"""Archives of files that another machine sent."""

from __future__ import annotations

import tarfile
from pathlib import Path, PurePosixPath
from typing import IO

__all__ = ["unpack"]


def unpack(archive: IO[bytes], folder: Path) -> None:
    """Write the files and folders of a tar archive, read from where it stands, into a folder.

    Raises tarfile.TarError for what would be written elsewhere, and OSError.
    """
    with tarfile.open(fileobj=archive, mode="r") as tar:
        if hasattr(tarfile, "data_filter"):
            tar.extractall(folder, filter="data")
        else:  # before Python 3.11.4, tarfile has no filters
            tar.extractall(folder, [_harmless(member) for member in tar])


def _harmless(member: tarfile.TarInfo) -> tarfile.TarInfo:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or not (member.isfile() or member.isdir()):
        raise tarfile.ExtractError(f"{member.name!r:.200} is no file or folder of this archive's own")
    return member
