"""The folder in which evalwright keeps, for a user, what runs leave to later ones: replies, notes of batches,
indexes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from evalwright.files.durable import PRIVATE_FOLDER, private_folder

__all__ = ["user_folder"]


def user_folder(*names: str) -> Path:
    """A folder in the user's cache that only the user may read, whoever made the folders above it. Raises OSError."""
    from platformdirs import user_cache_path

    ours = user_cache_path("evalwright")
    place = ours.joinpath(*names)
    private_folder(place)
    with suppress(OSError):  # it may belong to another user
        ours.chmod(PRIVATE_FOLDER)
    return place
