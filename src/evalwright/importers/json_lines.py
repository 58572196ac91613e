"""The records of JSON Lines files, decoded into dictionaries or into a struct of the fields that a format reads.

Fields that are not read are never built, which accounts for most of the speed.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from evalwright.files.packed import opened
from evalwright.files.strict_json import json_lines_of
from evalwright.importers.sources import BOM, Mistakes, flaw_of, is_text, json_value, mended

__all__ = ["OBJECTS", "LineForm", "records"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LineForm(Generic[T]):
    """The type that lines are decoded into."""

    decode: Callable[[bytes], T]
    """Raises msgspec.ValidationError for a line with other types than the usual ones."""
    lenient: Callable[[dict[str, Any]], T]
    """Accepts any object at all."""


OBJECTS: LineForm[dict[str, Any]] = LineForm(msgspec.json.Decoder(dict[str, Any]).decode, dict)


def records(
    file: Path, mistakes: Mistakes, form: LineForm[Any] = OBJECTS, *, may_be_cut: bool = False
) -> Iterator[tuple[int, Any]]:
    """The objects on the lines of a JSON Lines file, with their line numbers. Other lines are mistakes.

    A file that is one JSON document has the objects in its list, or the one that it is. With `may_be_cut`, a last line
    that breaks off, because its writer was killed, is returned as None. Values may be nested more deeply than can be
    written again.
    """
    decode = form.decode
    with opened(file) as source:
        first = [source.readline()]
        lines: Iterable[bytes] = _rejoined_lines(first, source)
        if _may_be_document(first[0]):
            data = first.pop() + source.read()
            lines = io.BytesIO(data)
            if (value := _whole_document(data)) is not None:
                yield from _objects(file, mistakes, form, data, value)
                return
        for number, text in enumerate(lines, 1):
            try:
                if not text.isascii():
                    text.decode()  # the decoder does not check texts that it skips
                value = decode(text)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                text = text.removeprefix(BOM) if number == 1 else text
                if text.isspace() or not text:
                    continue
                yield from _slowly_decoded(file, mistakes, form, may_be_cut, number, text)
            else:
                text = b""  # a line may be large, and its decoded form is held at the same time
                yield number, value


def _rejoined_lines(first: list[bytes], rest: Iterable[bytes]) -> Iterator[bytes]:
    yield first.pop()  # not held while it is decoded: it may be large
    yield from rest


def _may_be_document(first: bytes) -> bool:
    """Whether a first line may begin a document of several lines, or is a list."""
    text = first.removeprefix(BOM).strip()
    return text == b"{" or text.startswith(b"[")


def _whole_document(data: bytes) -> Any:
    try:
        return json_value(data.removeprefix(BOM))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _objects(
    file: Path, mistakes: Mistakes, form: LineForm[T], data: bytes, document: Any
) -> Iterator[tuple[int, T | None]]:
    """The objects of a document, each with the number of its line."""
    listed = document if isinstance(document, list) else [document]
    at = json_lines_of(data, {(i,) for i in range(len(listed))}) if isinstance(document, list) else {}
    for i, item in enumerate(listed):
        number = at.get((i,), 1)
        if isinstance(item, dict):
            yield from _slowly_decoded(file, mistakes, form, False, number, msgspec.json.encode(item))
        else:
            mistakes.add(file, "expected a JSON object", number)


def _slowly_decoded(
    file: Path, mistakes: Mistakes, form: LineForm[T], may_be_cut: bool, number: int, text: bytes
) -> Iterator[tuple[int, T | None]]:
    """The content of a line that the fast decoder could not read, if there is any."""
    try:
        text.decode()
        yield number, form.lenient(_any_object(text, mistakes))
    except RecursionError:
        mistakes.add_depth(file, number)
    except msgspec.ValidationError:
        mistakes.add(file, "expected a JSON object", number)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if may_be_cut and not text.endswith(b"\n") and is_text(text):
            yield number, None
        else:
            mistakes.add(file, flaw_of(error, text), number)


def _any_object(text: bytes, mistakes: Mistakes) -> dict[str, Any]:
    try:
        return OBJECTS.decode(text)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError as error:
        return OBJECTS.decode(mended(text, error, mistakes))
