"""Writing to the terminal: no error if the reader has gone, and one if the text is lost for another reason."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from evalwright.errors import InputError, Problem, StorageError, counted
from evalwright.reports.text import Paint, flat, harmless, harmless_json, paint_for
from evalwright.session import hidden

if TYPE_CHECKING:
    from pathlib import Path

    from evalwright.files.masker import Masker
    from evalwright.model.protocols import RunReader

__all__ = [
    "must_be_ours",
    "print_damage",
    "print_err",
    "print_out",
    "print_skipped",
    "print_text",
    "screen_masker",
    "screen_paint",
    "warn",
    "write_plot",
]

_MOST_WARNINGS = 50
_GONE = (errno.EPIPE, errno.EIO, errno.ECONNRESET)
"""Errors of writing to a pipe, a terminal or a socket whose other end has gone."""


def warn(problems: Iterable[Problem | str]) -> None:
    """Print one line on stderr for each of the first fifty problems."""
    shown = list(problems)
    print_err(f"warning: {problem}" for problem in shown[:_MOST_WARNINGS])
    if len(shown) > _MOST_WARNINGS:
        print_err([f"... and {counted(len(shown) - _MOST_WARNINGS, 'more line')} of warnings"])


def print_err(lines: Iterable[str]) -> None:
    """Print lines on stderr, without secrets and without characters that control a terminal."""
    if shown := list(lines):
        mask = screen_masker().mask_text
        with suppress(OSError):  # the terminal has gone
            for line in shown:
                print(harmless(flat(mask(line))), file=sys.stderr)


def print_damage(reader: RunReader) -> int:
    """Print on stderr what cannot be read of a run. Returns the exit code of a command that printed all else, 3 or
    0."""
    from evalwright.model.damage import unreadable_records

    print_err(reader.damage)
    return 3 if unreadable_records(reader) else 0


def print_skipped(skipped: Iterable[Path], used: Collection[Path]) -> None:
    """Print on stderr which files were found that are no suites; those that a suite uses, such as its dataset, are not
    worth a word."""
    print_err(f"skipped {path}: format not recognised" for path in skipped if path.resolve() not in used)


def screen_masker() -> Masker:
    """Masks what the suites of this command took from variables, and the secrets of the environment."""
    from evalwright.files.masker import Masker

    return Masker.of(hidden(), os.environ)


def print_out(lines: Iterable[str]) -> None:
    """Print lines on stdout. If the reader (`| head`) or the terminal has gone, the rest is dropped."""
    # Only JSON still has such characters. One write, because it may be a call to the system (PYTHONUNBUFFERED).
    _write(["".join([harmless_json(f"{line}\n") for line in lines])])


def print_text(pieces: Iterable[str]) -> None:
    """Print a text on stdout as it arrives, with one line end. Errors as in `print_out`."""
    _write(map(harmless_json, _with_end(pieces)))


def _with_end(pieces: Iterable[str]) -> Iterator[str]:
    held = ""  # line ends are held back until more text follows
    for piece in pieces:
        text = piece.rstrip("\n")
        if text:
            yield held + text
            held = ""
        held += piece[len(text) :]
    yield "\n"


def _write(pieces: Iterable[str]) -> None:
    # Each is made before it is written: an error of the disk that it is read from says nothing of standard output.
    if all(_is_written(piece) for piece in pieces):
        _is_written()


def _is_written(piece: str | None = None) -> bool:
    """Write a piece, or all that is held back if none is given. False if nobody reads any more."""
    try:
        if piece is None:
            sys.stdout.flush()
        else:
            sys.stdout.write(piece)
    except OSError as error:
        # Otherwise Python would try to write the rest at exit, fail again, and exit with 120.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        if error.errno not in _GONE:
            raise StorageError(f"cannot write to standard output: {error.strerror}") from error
        return False
    return True


def screen_paint() -> Paint:
    """What standard output can show, in the colours that `--color` asks for."""
    paint = paint_for(sys.stdout)
    context = click.get_current_context(silent=True)
    return paint if context is None or context.color is None else replace(paint, on=context.color)


def must_be_ours(path: Path, mark: bytes, what: str) -> None:
    """Raise InputError for a file without the mark of what is to be written to it: a slip would destroy it."""
    try:
        if not path.is_file():  # a pipe may have a beginning only once we have written it
            return
        with path.open("rb") as file:
            beginning = file.read(4096)
    except OSError:  # it is not there; whatever else is wrong is reported when it is written
        return
    if beginning and mark not in beginning:
        raise InputError(f"{path} is not {what}, and would be lost: name another file")


def write_plot(path: Path, picture: str) -> None:
    """Write a picture to a file, without secrets. Raises StorageError, and InputError for a file that is no picture."""
    from evalwright.files.durable import make_folder, write_output

    must_be_ours(path, b"<svg", "a picture (SVG)")
    make_folder(path.parent)
    write_output(path, [screen_masker().mask_text(picture).encode("utf-8", "backslashreplace") + b"\n"])
