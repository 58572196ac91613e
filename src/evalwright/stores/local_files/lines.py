"""Records as lines of JSON: the encoder and the decoder of all stores.

Promise. One record is one line of UTF-8 that ends with LF and contains no other character at which any reader splits
lines. No line contains a secret. Decoding gives an equal record, except that NaN becomes null. An unreadable line is
named and left out; a record of a later major version is rejected, since its meaning may have changed.

Steps. Encoding: JSON, then masking, then escapes for U+2028, U+2029 and U+0085. Decoding: a line that begins or ends
with the present version is decoded at once; of any other the version is read first, and older records are migrated.

Cost. A line of the present version is decoded once, any other twice. Masking searches each line for a few byte strings
of each secret, and parses only lines that contain one.

Limits. A line is built in memory as a whole. Only strings are masked, not numbers. Masking is not undone, except in
cases and plans, where secrets are `${NAME}`: a resumed run must send the system what the author wrote. At most
100 damaged lines of a file are listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.files.masker import Masker
from evalwright.files.placeholders import expand, expand_as_recorded
from evalwright.model.snapshot import Case
from evalwright.model.trace import (
    is_newer,
)
from evalwright.stores.documents import newer_version

__all__ = [
    "CURRENT",
    "MIGRATIONS",
    "LineDecoder",
    "LineEncoder",
    "decoded_case",
    "decoded_line",
    "unresolved_in",
]

T = TypeVar("T")

MIGRATIONS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""From the version of an older record to the function that turns it into the next version."""

_MOST_NOTES = 100
# Our encoder writes the version last, other programs write it first. Neither place can be inside a value: quotes would
# be escaped there, and an inner object would end with one more brace.
CURRENT = b'"schema_version":"1.0"}\n'
"""The end of a line that our encoder wrote."""
_STARTS = b'{"schema_version":"1.0"'
# Only marked cases are expanded when they are read: in any other, `${NAME}` is the author's text.
_MARK = {"placeholders": True}
_MARK_ENDS = b',"placeholders":true}\n'
_CASE_ENDS = b'"schema_version":"1.0","digest":"'
"""What follows the last value in the line of a case; then come a hash and the end."""
_HASHED = slice(-len(_CASE_ENDS) - 27, -27)


class LineEncoder:
    """Encodes records as masked lines that every reader splits at LF only.

    Raises TypeError or ValueError for what JSON cannot hold; NaN becomes null.
    """

    def __init__(self, masker: Masker | None) -> None:
        self._encoder = msgspec.json.Encoder()
        self._encode = self._encoder.encode
        self._masker = masker
        self._mask = masker.mask_bytes if masker else None

    def line(self, record: object) -> bytes:
        try:
            line = self._encode(record) + b"\n"
        except (RecursionError, OverflowError) as error:
            raise ValueError(f"cannot be stored as JSON: {error}") from error
        if self._mask is not None:
            line = self._mask(line)
        return line if line.isascii() else _without_separators(line)

    def case(self, case: Case) -> bytes:
        """A case with its secrets as `${NAME}`, and marked if it has any: the system must get what the author wrote."""
        try:
            line = self._encode(case)
        except (RecursionError, OverflowError) as error:
            raise ValueError(f"cannot be stored as JSON: {error}") from error
        if b"\n" in line:  # a recorded trace is kept as raw JSON, which may span several lines
            line = msgspec.json.encode(msgspec.json.decode(line))
        if self._masker is not None and self._masker.finds(line):
            plain = self._masker.placeholders(msgspec.json.decode(line))
            return self.line({**plain, **_MARK})
        return (line if line.isascii() else _without_separators(line)) + b"\n"

    def lines(self, records: Sequence[object]) -> bytes:
        return self.finished(self.unfinished(records))

    def unfinished(self, records: Sequence[object]) -> bytes:
        """The lines before `finished`, which takes those of many calls together."""
        # msgspec never frees its iterator over anything but a list: 48 bytes at each call
        listed = records if isinstance(records, list) else [*records]
        try:
            return self._encoder.encode_lines(listed)
        except (RecursionError, OverflowError) as error:
            raise ValueError(f"cannot be stored as JSON: {error}") from error

    def finished(self, lines: bytes) -> bytes:
        """Lines ready to be stored: without secrets, and split at LF only."""
        if self._masker is not None and self._masker.finds(lines):
            # one by one: of those without a secret, no string has to be looked at
            lines = b"".join(map(self._masker.mask_bytes, lines.splitlines(keepends=True)))
        return lines if lines.isascii() else _without_separators(lines)


def _without_separators(lines: bytes) -> bytes:
    """The lines with U+2028, U+2029 and U+0085 as escapes: `str.splitlines` and many readers split lines there."""
    if b"\xe2\x80\xa8" in lines:
        lines = lines.replace(b"\xe2\x80\xa8", b"\\u2028")
    if b"\xe2\x80\xa9" in lines:
        lines = lines.replace(b"\xe2\x80\xa9", b"\\u2029")
    if b"\xc2\x85" in lines:
        lines = lines.replace(b"\xc2\x85", b"\\u0085")
    return lines


_case_decoder = msgspec.json.Decoder(Case)


def decoded_case(file: str, line: bytes, number: int, environ: Mapping[str, str], *, recorded: bool = False) -> Case:
    """The case in a line, with its secrets filled in from `environ`, or masked as in traces if it is `recorded`.

    Raises InputError if the line is damaged.
    """
    try:
        if line[_HASHED] == _CASE_ENDS or line.endswith(CURRENT):
            return _case_decoder.decode(line)
        if line.endswith(_MARK_ENDS):
            fill = expand_as_recorded if recorded else expand
            line = msgspec.json.encode(fill(msgspec.json.decode(line), environ)) + b"\n"
    except (ValueError, RecursionError):
        pass  # the decoder below reports what is wrong with it
    damage: list[str] = []
    for case in LineDecoder("", damage, file).records(Case, [line], lambda _: number):
        return case
    what = damage[0].removeprefix(f":{number}: ") if damage else "a blank line"
    raise InputError(Problem(file, f"cannot be read: {what}", number))


def unresolved_in(lines: Iterable[bytes], environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The secrets in stored cases that `environ` lacks: the id of each case, and the name of the secret.

    Damaged lines are left out, because reading the cases reports them.
    """
    for line in lines:
        if line.endswith(_MARK_ENDS):
            unresolved: dict[str, str] = {}
            try:
                case = expand(msgspec.json.decode(line), environ, unresolved)
            except (ValueError, RecursionError):
                continue
            yield from ((str(case.get("id")), name) for name in unresolved)


class _Version(msgspec.Struct, gc=False):
    schema_version: Any = None


_version_decoder = msgspec.json.Decoder(_Version)


class LineDecoder:
    """Decodes the lines of one file; an unreadable line is left out and described in `damage`."""

    def __init__(self, file: str, damage: list[str], place: str = "") -> None:
        """`place` is where the file is, for errors about records that the caller cannot do without."""
        self._file, self._damage, self._place = file, damage, place or file

    def records(self, kind: type[T], lines: Iterable[bytes], number: Callable[[int], int] | None = None) -> Iterator[T]:
        """The records in `lines`; `number(position)` is the line number in messages, by default the position from 1.

        Raises InputError for a record of a later major version.
        """
        decode = msgspec.json.Decoder(kind).decode
        for position, line in enumerate(lines):
            try:
                if line.endswith(CURRENT) or line.startswith(_STARTS):
                    record = decode(line)
                else:
                    record = _decode_any_version(kind, decode, line)
            except _NewerVersion as newer:
                raise self._refusal(newer, position, number) from None
            except _BlankLine:
                continue
            except (ValueError, RecursionError) as error:
                self._add(position, line, error, number)
                continue
            yield record

    def count(self, lines: Iterable[bytes]) -> int:
        """The number of records. Those of the present version are counted as they are, even if they are damaged.

        Raises InputError for a record of a later major version.
        """
        current = position = 0

        def others() -> Iterator[bytes]:
            nonlocal current, position
            for position, line in enumerate(lines):  # noqa: B007 - read below
                if line.endswith(CURRENT):
                    current += 1
                else:
                    yield line

        decoded = sum(1 for _ in self.records(_Version, others(), lambda _: position + 1))
        return decoded + current

    def _add(self, position: int, line: bytes, error: Exception, number: Callable[[int], int] | None) -> None:
        if len(self._damage) > _MOST_NOTES:
            return
        numbered = number(position) if number else position + 1
        what = str(error) if line.endswith(b"\n") else "torn tail, left out"
        if (note := f"{self._file}:{numbered}: {what}") not in self._damage:  # the same file may be read several times
            self._damage.append(note)
        if len(self._damage) == _MOST_NOTES:
            self._damage.append("further lines that cannot be read are not listed")

    def _refusal(self, newer: _NewerVersion, position: int, number: Callable[[int], int] | None) -> InputError:
        return newer_version(self._place, str(newer), number(position) if number else position + 1)


def decoded_line(kind: type[T], decode: Callable[[bytes], T], line: bytes) -> T | None:
    """The record in one line, by `decode` for its kind; None for a blank line.

    Raises ValueError or RecursionError for an unreadable line, InputError for a later major version.
    """
    if line.endswith(CURRENT) or line.startswith(_STARTS):
        return decode(line)
    try:
        return _decode_any_version(kind, decode, line)
    except _BlankLine:
        return None
    except _NewerVersion as newer:
        raise newer_version("", str(newer)) from None


def _decode_any_version(kind: type[T], decode: Callable[[bytes], T], line: bytes) -> T:
    if not line.strip(b" \t\r\n"):  # not the default set: a form feed is damage
        raise _BlankLine
    version = _version_decoder.decode(line).schema_version
    if is_newer(version):
        raise _NewerVersion(str(version))
    if isinstance(version, str) and version in MIGRATIONS:
        return msgspec.convert(_migrated_record(msgspec.json.decode(line)), kind)
    return decode(line)


class _BlankLine(Exception):
    pass


class _NewerVersion(Exception):
    pass


def _migrated_record(record: dict[str, Any]) -> dict[str, Any]:
    while (step := MIGRATIONS.get(record["schema_version"])) is not None:
        record = step(record)
    return record
