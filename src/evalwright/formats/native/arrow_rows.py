"""Datasets of Arrow rows: Parquet files, and the files in which Hugging Face keeps datasets on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.files.packed import opened, unpacked_name
from evalwright.formats.native.row_files import CsvRows, JsonlRows, JsonRows, TsvRows
from evalwright.formats.native.tables import TableDataset, TableRow

__all__ = ["HuggingFaceRows", "ParquetRows"]

Show = Callable[[Any], Any]

_MEDIA = ("Audio", "Image", "Pdf", "Video")


class ParquetRows(TableDataset):
    """A Parquet file: columns keep their types, but times, dates (ISO 8601) and decimals are text."""

    kind = "parquet"
    extra = "parquet"

    def rows(self, file: Path) -> Iterator[TableRow]:
        with self._arrow(file, "Parquet"):
            from pyarrow import parquet

            with parquet.ParquetFile(file) as table:
                columns = self._readable(file, table.schema_arrow)
                show = _shown_by(_features(file, table.schema_arrow))
                yield from _rows(file, table.iter_batches(columns=columns), show)

    @contextmanager
    def _arrow(self, file: Path, what: str) -> Iterator[None]:
        """Raises InputError if pyarrow is missing, and for files that it cannot read."""
        try:
            from pyarrow import ArrowException
        except ImportError:
            install = f"{what} files are read with pyarrow: pip install 'evalwright[{self.extra}]'"
            raise InputError(Problem(str(file), install)) from None
        try:
            yield
        except (ArrowException, OSError) as error:
            raise InputError(Problem(str(file), f"cannot be read as {what}: {error}".splitlines()[0])) from None

    def _readable(self, file: Path, schema: Any) -> list[str]:
        """The columns, without unmapped ones of bytes. Raises InputError for bytes that would end up in cases."""
        again = (name for name, count in Counter(schema.names).items() if count > 1)
        if repeated := [Problem(str(file), f"the column {name!r} occurs more than once") for name in again]:
            raise InputError(repeated)
        features = _features(file, schema)
        media = {name for name, feature in features.items() if _is_media(feature)}
        binary = [field.name for field in schema if "binary" in str(field.type)]
        wrong = [name for name in binary if name not in media and self._mapped.reads(name)]
        if wrong:
            raise InputError(
                Problem(str(file), f"the column {name!r} contains bytes, which cases cannot have: map the others")
                for name in wrong
            )
        return [field.name for field in schema if field.name not in binary or self._mapped.reads(field.name)]


class HuggingFaceRows(ParquetRows):
    """A dataset on disk, in any form in which Hugging Face keeps it."""

    kind = "huggingface"
    extra = "huggingface"

    def __init__(self, path: Path, name: str, config: Mapping[str, Any]) -> None:
        super().__init__(path, name, config)
        self._config = config

    def rows(self, file: Path) -> Iterator[TableRow]:
        suffix = unpacked_name(file).suffix.lower()
        if suffix == ".parquet":
            yield from super().rows(file)
        elif suffix == ".arrow":
            yield from self._streamed_rows(file)
        else:
            made = _TEXTS[suffix] if suffix != ".json" or _is_array(file) else JsonlRows
            yield from made(self._path, "", self._config).rows(file)

    def _has_header(self, file: Path) -> bool:
        return unpacked_name(file).suffix.lower() in (".parquet", ".arrow", ".csv", ".tsv")

    def _streamed_rows(self, file: Path) -> Iterator[TableRow]:
        with self._arrow(file, "Arrow"):
            import pyarrow

            with pyarrow.memory_map(str(file)) as source, pyarrow.ipc.open_stream(source) as stream:
                columns = self._readable(file, stream.schema)
                show = _shown_by(_features(file, stream.schema))
                yield from _rows(file, (batch.select(columns) for batch in stream), show)


_TEXTS: dict[str, type[TableDataset]] = {
    ".csv": CsvRows, ".json": JsonRows, ".jsonl": JsonlRows, ".ndjson": JsonlRows, ".tsv": TsvRows,
}  # fmt: skip


def _is_array(file: Path) -> bool:
    """Whether a `.json` file of a repository is one document: many hold an object per line."""
    with opened(file) as source:
        return source.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")


def _rows(file: Path, batches: Iterable[Any], show: Show) -> Iterator[TableRow]:
    number = 0
    for batch in batches:
        try:
            rows = batch.to_pylist()
        except (OverflowError, ValueError) as error:
            raise InputError(_unreadable_value(file, batch, number, error)) from None
        for values in rows:
            shown = show(values)
            yield TableRow(file, None, {name: _plain_value(value) for name, value in shown.items()}, f"[{number}]")
            number += 1


def _unreadable_value(file: Path, batch: Any, first: int, error: Exception) -> Problem:
    """The value that Python has no form for, such as a year beyond 9999; `first` is the number of the first row."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        for number, value in enumerate(column, start=first):
            try:
                value.as_py()
            except (OverflowError, ValueError) as flaw:
                return Problem(str(file), f"cannot be read: {flaw}", key=f"[{number}].{name}")
    return Problem(str(file), f"cannot be read: {error}")


def _plain_value(value: Any) -> Any:
    """An Arrow value as JSON."""
    if isinstance(value, dict):
        return {key: _plain_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain_value(item) for item in value]
    if isinstance(value, str | int | float | bool | bytes | None):
        return value
    if isinstance(value, datetime):  # includes pandas's, which have nanoseconds
        zoned = value.astimezone(UTC) if value.tzinfo else value
        return zoned.isoformat().replace("+00:00", "Z")
    return msgspec.to_builtins(value, enc_hook=str)


def _features(file: Path, schema: Any) -> Mapping[str, Any]:
    """Hugging Face's description of the columns: in the file itself, else in the file beside it."""
    for source in (lambda: (schema.metadata or {})[b"huggingface"], (file.parent / "dataset_info.json").read_bytes):
        try:
            document = msgspec.json.decode(source())
        except (KeyError, OSError, ValueError):
            continue
        document = document.get("info", document) if isinstance(document, dict) else {}
        features = document.get("features") if isinstance(document, dict) else None
        if isinstance(features, dict):
            return features
    return {}


def _is_media(feature: Any) -> bool:
    return isinstance(feature, dict) and feature.get("_type") in _MEDIA


def _shown_by(feature: Any) -> Show:
    """How a value of a feature is shown: the name of a label for its number, a reference for an image."""
    kind = feature.get("_type") if isinstance(feature, dict) else None
    if kind == "ClassLabel" and isinstance(feature.get("names"), list):
        names = feature["names"]
        return lambda value: names[value] if isinstance(value, int) and 0 <= value < len(names) else None
    if kind in _MEDIA:
        return lambda value: _reference(str(kind).lower(), value)
    if isinstance(feature, list) and feature:
        return _each(_shown_by(feature[0]))
    if kind in ("List", "LargeList", "Sequence"):
        inner = feature.get("feature")
        each = _each(_shown_by(inner))
        if not isinstance(inner, dict) or "_type" in inner:
            return each
        lists = _keys({key: _each(_shown_by(shows)) for key, shows in inner.items()})
        # a sequence of mappings is stored as one mapping of lists by releases of `datasets` before 4
        return lambda value: lists(value) if isinstance(value, dict) else each(value)
    if isinstance(feature, dict) and kind is None:
        return _keys({key: _shown_by(shows) for key, shows in feature.items()})
    return lambda value: value


def _each(show: Show) -> Show:
    return lambda value: [show(item) for item in value] if isinstance(value, list) else value


def _keys(shows: Mapping[str, Show]) -> Show:
    def shown(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: shows[key](item) if key in shows else item for key, item in value.items()}

    return shown


def _reference(kind: str, value: Any) -> Any:
    """Where an image or a recording is, and how large; its bytes are no part of a case."""
    if not isinstance(value, dict):
        return value
    data = value.get("bytes")
    return {"type": kind, "path": value.get("path"), "size": None if data is None else len(data)}
