"""The files of an import: folders searched, packed files opened, records with their places and all their mistakes."""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from evalwright.errors import InputError, Problem, counted, did_you_mean
from evalwright.files.packed import opened, unpacked_name
from evalwright.files.paths import near_file
from evalwright.files.strict_json import with_json_lines
from evalwright.importers.record_values import RECORDING_DEPTH, too_deep

__all__ = [
    "BOM",
    "ImportNotes",
    "Mistakes",
    "binary_flaw",
    "document",
    "expanded",
    "flaw_of",
    "is_text",
    "json_document",
    "json_value",
    "lines",
    "mended",
    "record_key",
    "stem",
]

SEARCHED = (".jsonl", ".ndjson", ".json", ".eval", ".traj")
"""Suffixes of the files that are searched for in a folder."""
BOM = b"\xef\xbb\xbf"
_OTLP = (b"service.name", b"telemetry.sdk.")
"""Attributes of a resource, one of which every exporter writes, before the spans."""
_MOST = 100
"""Mistakes that are reported together: more would hide the first ones, and a wrong `--format` makes every line one."""


class Mistakes:
    """Parts of the files that cannot be used, with their places. If there are any, nothing is written."""

    def __init__(self) -> None:
        self._found: list[Problem] = []
        self._more = 0
        self.mended: int = 0
        """Records with halves of characters, left by programs that cut texts by UTF-16 units; these are replaced."""
        self.unmeasured: int = 0
        """Values NaN and Infinity, which programs in Python write as if they were JSON; these are left out."""

    def add(self, file: Path, message: str, line: int | None = None, key: str = "") -> None:
        if len(self._found) < _MOST:
            self._found.append(Problem(str(file), message, line, key))
        else:
            self._more += 1

    @property
    def found(self) -> list[Problem]:
        """The first of them."""
        return self._found

    def add_depth(self, file: Path, line: int | None = None) -> None:
        self.add(file, "is nested too deeply", line)

    def __len__(self) -> int:
        return len(self._found) + self._more

    def check(self) -> None:
        """Raises InputError with all of them, if there are any."""
        if self._found:
            self._found = [*with_json_lines(self._found, document)]
            more = f"and {counted(self._more, 'more problem')}" if self._more else ""
            raise InputError([*self._found, *([Problem(self._found[-1].file, more)] if more else [])])


class ImportNotes:
    """What an import leaves out, by kind, and what else its user should know."""

    def __init__(self) -> None:
        self._lost: Counter[str] = Counter()
        self._lines: list[str] = []

    def lose(self, kind: str, number: int = 1) -> None:
        """`kind` is what is lost, in the plural: `images`, `lines of type 'x'`."""
        self._lost[kind] += number

    def add(self, other: ImportNotes) -> None:
        """Take the notes of a part."""
        self._lost += other._lost
        self._lines += other._lines

    def lose_keys(self, keys: Iterable[Any], known: Collection[str], of: str, *, near: bool = False) -> None:
        """Count the keys that nothing reads; with `near`, only those that are nearly a known one."""
        for key in keys:
            meant = "" if key in known else did_you_mean(key, known).removeprefix("; ")
            if key not in known and (meant or not near):
                self.lose(f"keys {key!r} of {of}{f' ({meant})' if meant else ''}")

    def add_text(self, note: str) -> None:
        if note not in self._lines:
            self._lines.append(note)

    def lines(self) -> list[str]:
        return [*self._lines, *(f"lost: {kind}: {number}" for kind, number in sorted(self._lost.items()))]


def expanded(paths: Iterable[Path]) -> tuple[list[Path], bool]:
    """The files to read, those of folders in sorted order, and whether there was a folder among the paths.

    Raises InputError for each path that does not exist or is something else, and for folders without such files.
    """
    files: list[Path] = []
    problems: list[Problem] = []
    folders = False
    for path in paths:
        if path.is_dir():
            folders = True
            inside = sorted(file for file in path.rglob("*") if _is_searched(file) and file.is_file())
            if not inside:
                problems.append(Problem(str(path), f"has no files to import ({', '.join(SEARCHED)})"))
            files += inside
        elif path.is_file():
            files.append(path)
        elif path.exists():  # reading a device may never end, and what comes through a pipe can be read once only
            problems.append(Problem(str(path), "is neither a file nor a folder: save a pipe's content to a file"))
        else:
            problems.append(Problem(str(path), f"does not exist{near_file(path)}"))
    if problems:
        raise InputError(problems)
    return files, folders


def _is_searched(file: Path) -> bool:
    return Path(stem(file, with_suffix=True)).suffix.lower() in SEARCHED


def stem(file: Path, *, with_suffix: bool = False) -> str:
    """The name of a file without the suffix of its packing and, unless `with_suffix`, without its own."""
    name = unpacked_name(file)
    return name.name if with_suffix else name.stem


def lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not blank, with their 1-based numbers. Raises InputError if it cannot be read."""
    with opened(file) as source:
        for number, line in enumerate(source, start=1):
            text = line.removeprefix(BOM) if number == 1 else line
            if text and not text.isspace():  # without a stripped copy: a line may be large
                yield number, text


def document(file: Path) -> bytes:
    """All of a file. Raises InputError if it cannot be read."""
    with opened(file) as source:
        return source.read().removeprefix(BOM)


_decode = msgspec.json.Decoder().decode
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_NO_NUMBER = re.compile(rb"\b(?:NaN|Infinity)\b")


def json_value(text: bytes, mistakes: Mistakes | None = None) -> Any:
    """The value of a JSON text. Raises msgspec.DecodeError, UnicodeDecodeError and RecursionError, the last also for a
    value that could be read but not written again."""
    try:
        value = _decode(text)
    except msgspec.DecodeError as error:
        value = _decode(mended(text, error, mistakes))
    # A text with fewer brackets cannot be deep; checking every value would take longer than reading it.
    if text.count(b"{") + text.count(b"[") > RECORDING_DEPTH and too_deep(value):
        raise RecursionError
    return value


def mended(text: bytes, error: msgspec.DecodeError, mistakes: Mistakes | None = None) -> bytes:
    """A JSON text in which escaped halves of characters are replaced, and NaN and Infinity are null.

    Raises the error for a text that has another flaw.
    """
    if not _HALF.search(text) and not _NO_NUMBER.search(text):
        raise error
    constants: list[str] = []
    try:
        value = json.loads(text, parse_constant=constants.append)
        plain = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise error from None
    whole = plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if mistakes is not None:
        mistakes.mended += whole != plain
        mistakes.unmeasured += len(constants)
    return whole.encode()


def record_key(value: Any) -> str | None:
    """An id as a key, whatever type a record has in its place."""
    return value if value is None or isinstance(value, str) else str(value)


def flaw_of(error: Exception, text: bytes) -> str:
    """Why a text cannot be read as JSON."""
    return f"is not valid JSON: {error}" if is_text(text) else "is not UTF-8 text"


def binary_flaw(start: bytes) -> str | None:
    """Why a file that begins like this is no text in UTF-8, and what helps; None if only single bytes may be wrong."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "is not UTF-8 text: it begins as UTF-16 does; save it as UTF-8"
    if not start.lstrip().startswith((b"{", b"[")) and any(name in start for name in _OTLP) and not is_text(start):
        return "is not UTF-8 text: it looks like spans in OTLP's binary form; export them as OTLP/JSON"
    return "is not UTF-8 text" if b"\0" in start else None


def is_text(text: bytes) -> bool:
    """Whether bytes are UTF-8; the last character may be incomplete."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


def json_document(file: Path, mistakes: Mistakes | None = None) -> Any:
    """The JSON document in a file. Raises InputError if it is not one."""
    data = document(file)
    try:
        return json_value(data, mistakes)
    except RecursionError:
        raise InputError(Problem(str(file), "is nested too deeply")) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(Problem(str(file), flaw_of(error, data))) from None
