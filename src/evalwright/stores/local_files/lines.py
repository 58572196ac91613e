"""Records as lines of JSON: the one encoder of all stores, and decoding with what each line's version asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.files.masker import Masker, expand
from evalwright.model.plan import Plan
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case, Expected
from evalwright.model.trace import (
    Metrics,
    Output,
    ToolCall,
    ToolResult,
    Trace,
    TraceError,
    TraceMessage,
)

__all__ = ["MIGRATIONS", "LineDecoder", "LineEncoder", "decoded_case", "newer_version", "reserved_words"]

T = TypeVar("T")

MIGRATIONS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""From the version of an older produced record to a function that makes it the next version."""

_MAJOR = 1
_MOST_NOTES = 100
_ENDS = b'"schema_version":"1.0"}\n'
_STARTS = b'{"schema_version":"1.0"'
_MARK = {"placeholders": True}
_MARK_ENDS = b',"placeholders":true}\n'
_SHAPES = (
    *(Case, Expected, Trace, Output, Metrics, ToolCall, ToolResult, TraceMessage, TraceError),
    *(EvaluationResult, CaseVerdict),
)


def reserved_words(plan: Plan) -> frozenset[str]:
    """Strings that masking leaves alone, so that records stay readable: names of fields, variants, evaluators."""
    words = {name for shape in _SHAPES for name in shape.__struct_fields__}
    words.update(variant.name for variant in plan.variants)
    words.update(evaluator.name for evaluator in plan.evaluators)
    return frozenset(words | {"borderline", plan.config_hash, plan.run_id})


class LineEncoder:
    """Encodes records to masked lines that every reader splits at LF only.

    Raises TypeError or ValueError for what JSON cannot hold; NaN becomes null.
    """

    def __init__(self, masker: Masker | None) -> None:
        self._encoder = msgspec.json.Encoder()
        self._masker = masker
        self._mask = masker.mask_bytes if masker else None

    def line(self, record: object) -> bytes:
        return self._finished(self._encoded(record) + b"\n")

    def case(self, case: Case) -> bytes:
        """A case with its secrets as `${NAME}`, marked: the system must be given again what the author wrote."""
        line = self._encoded(case)
        if b"\n" in line:  # between the values of a recorded trace that somebody laid out
            line = msgspec.json.encode(msgspec.json.decode(line))
        if self._masker is not None and self._masker.finds(line):
            plain = self._masker.placeholders(msgspec.json.decode(line))
            return self.line({**plain, **_MARK})
        return _without_separators(line + b"\n")

    def lines(self, records: Sequence[object]) -> bytes:
        try:
            return self._finished(self._encoder.encode_lines(records))
        except (RecursionError, OverflowError) as error:
            raise ValueError(f"cannot be stored as JSON: {error}") from error

    def _encoded(self, record: object) -> bytes:
        try:
            return self._encoder.encode(record)
        except (RecursionError, OverflowError) as error:
            raise ValueError(f"cannot be stored as JSON: {error}") from error

    def _finished(self, lines: bytes) -> bytes:
        if self._mask is not None:
            lines = self._mask(lines)
        return _without_separators(lines)


def _without_separators(lines: bytes) -> bytes:
    """U+2028, U+2029 and U+0085 as escapes: other people's readers split lines there."""
    if lines.isascii():
        return lines
    if b"\xe2\x80\xa8" in lines:
        lines = lines.replace(b"\xe2\x80\xa8", b"\\u2028")
    if b"\xe2\x80\xa9" in lines:
        lines = lines.replace(b"\xe2\x80\xa9", b"\\u2029")
    if b"\xc2\x85" in lines:
        lines = lines.replace(b"\xc2\x85", b"\\u0085")
    return lines


_case_decoder = msgspec.json.Decoder(Case)


def decoded_case(file: str, line: bytes, number: int, environ: Mapping[str, str]) -> Case:
    """A line of cases, with its secrets from `environ` in their places. Raises InputError when it is damaged."""
    try:
        if line.endswith(_ENDS):
            return _case_decoder.decode(line)
        if line.endswith(_MARK_ENDS):
            line = msgspec.json.encode(expand(msgspec.json.decode(line), environ)) + b"\n"
    except (ValueError, RecursionError):
        pass  # what is wrong with it is said below
    damage: list[str] = []
    for case in LineDecoder("", damage).records(Case, [line], lambda _: number):
        return case
    what = damage[0].removeprefix(f":{number}: ") if damage else "a blank line"
    raise InputError(Problem(file, f"cannot be read: {what}", number))


class _Version(msgspec.Struct, gc=False):
    schema_version: Any = None


_version_decoder = msgspec.json.Decoder(_Version)


class LineDecoder:
    """Decodes the lines of one file; what cannot be read goes to `damage` and is left out."""

    def __init__(self, file: str, damage: list[str]) -> None:
        self._file, self._damage = file, damage

    def records(self, kind: type[T], lines: Iterable[bytes], number: Callable[[int], int] | None = None) -> Iterator[T]:
        """The records in `lines`; `number(position)` names one that cannot be read, by default its position from 1.

        Raises InputError for a record of a higher major version.
        """
        decode = msgspec.json.Decoder(kind).decode
        for position, line in enumerate(lines):
            try:
                if line.endswith(_ENDS) or line.startswith(_STARTS):
                    record = decode(line)
                else:
                    record = _of_any_version(kind, decode, line)
            except _NewerVersion as newer:
                raise self._refusal(newer, position, number) from None
            except _Blank:
                continue
            except (ValueError, RecursionError) as error:
                self._add(position, line, error, number)
                continue
            yield record

    def _add(self, position: int, line: bytes, error: Exception, number: Callable[[int], int] | None) -> None:
        if len(self._damage) > _MOST_NOTES:
            return
        found = number(position) if number else position + 1
        what = str(error) if line.endswith(b"\n") else "torn tail, left out"
        if (note := f"{self._file}:{found}: {what}") not in self._damage:
            self._damage.append(note)
        if len(self._damage) == _MOST_NOTES:
            self._damage.append("further lines that cannot be read are not listed")

    def _refusal(self, newer: _NewerVersion, position: int, number: Callable[[int], int] | None) -> InputError:
        return newer_version(self._file, str(newer), number(position) if number else position + 1)


def _of_any_version(kind: type[T], decode: Callable[[bytes], T], line: bytes) -> T:
    if not line.strip(b" \t\r\n"):
        raise _Blank
    version = _version_decoder.decode(line).schema_version
    if version is not None and _major(version) > _MAJOR:
        raise _NewerVersion(str(version))
    if isinstance(version, str) and version in MIGRATIONS:
        return msgspec.convert(_migrated(msgspec.json.decode(line)), kind)
    return decode(line)


class _Blank(Exception):
    pass


class _NewerVersion(Exception):
    pass


def newer_version(file: str, version: str, line: int | None = None) -> InputError:
    """The refusal of a produced file that a later major version of evalwright wrote."""
    message = f"has version {version}; this evalwright reads versions 1.x: install a newer one"
    return InputError(Problem(file, message, line, "schema_version"))


def _major(version: object) -> int:
    head = str(version).partition(".")[0]
    return int(head) if head.isascii() and head.isdigit() and len(head) < 10 else _MAJOR


def _migrated(record: dict[str, Any]) -> dict[str, Any]:
    while (step := MIGRATIONS.get(record["schema_version"])) is not None:
        record = step(record)
    return record
