"""Human labels beside the shards of a run: those beside the merged run are all of them, in the order of the shards."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

from evalwright.files.durable import PRIVATE, replace_file, storage_error
from evalwright.files.sheets import sheet_rows

__all__ = ["labels_beside", "lacks", "write_labels"]

_LINES = "labels.jsonl"
"""What `calibrate` stores."""
_SHEET = "labels.csv"
"""What the viewer stores, with a header."""


def labels_beside(shards: Iterable[Path]) -> dict[str, bytes]:
    """The contents of the files of labels, by name, that the merged run should have. Raises StorageError."""
    shards = list(shards)
    lines = b"".join(_with_line_end(_read(shard / _LINES)) for shard in shards)
    sheets = [sheet for shard in shards if (sheet := _read(shard / _SHEET))]
    files = {_LINES: lines, _SHEET: _joined_tables(sheets)}
    return {name: content for name, content in files.items() if content}


def write_labels(labels: Mapping[str, bytes], folder: Path) -> None:
    """Store the labels beside a run. Raises StorageError."""
    for name, content in labels.items():
        replace_file(folder / name, content, PRIVATE)


def lacks(folder: Path, labels: Mapping[str, bytes]) -> bool:
    """Whether any of the labels is not beside a run that was merged before."""
    return any(not {*content.splitlines()} <= {*_read(folder / name).splitlines()} for name, content in labels.items())


def _read(path: Path) -> bytes:
    """The content of a file; nothing if there is none."""
    if not path.is_file():
        return b""
    try:
        return path.read_bytes()
    except OSError as error:
        raise storage_error("read", path, error) from error


def _with_line_end(content: bytes) -> bytes:
    return content + b"\n" if content and not content.endswith(b"\n") else content


def _joined_tables(sheets: Iterable[bytes]) -> bytes:
    """Tables as one, whose header has the columns of all: a sheet may have been edited by hand."""
    rows = [row for sheet in sheets for row in sheet_rows(sheet.decode("utf-8", "replace"))]
    columns = [*dict.fromkeys(name for row in rows for name in row)]
    text = io.StringIO(newline="")
    written = csv.writer(text, lineterminator="\n")
    written.writerows([columns, *([row.get(name, "") for name in columns] for row in rows)] if rows else [])
    return text.getvalue().encode("utf-8", "replace")
