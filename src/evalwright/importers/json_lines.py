"""The records of JSON Lines files, decoded into dictionaries or into a struct of the fields that a format reads.

Fields that are not read are never built, which accounts for most of the speed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from evalwright.files.packed import opened
from evalwright.importers.sources import BOM, Mistakes, flaw_of, is_text, mended

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

    With `may_be_cut`, a last line that breaks off, because its writer was killed, is returned as None. Values may be
    nested more deeply than can be written again.
    """
    decode = form.decode
    with opened(file) as source:
        for number, text in enumerate(source, 1):
            try:
                if not text.isascii():
                    text.decode()  # the decoder does not check texts that it skips
                value = decode(text)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                text = text.removeprefix(BOM) if number == 1 else text
                if text.isspace() or not text:
                    continue
                yield from _odd(file, mistakes, form, may_be_cut, number, text)
            else:
                text = b""  # a line may be large, and its decoded form is held at the same time
                yield number, value


def _odd(
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
