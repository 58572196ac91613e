"""One conversion from start to finish: read, write, read what was written, compare."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from evalwright.convert.losses import differences, unread_keys
from evalwright.convert.original import Original, credential_notes, read_original
from evalwright.errors import InputError, Problem, counted
from evalwright.formats.discovery import stood_for
from evalwright.formats.loading import fitting, load_suite
from evalwright.formats.shared.output import OutputFolder, Written
from evalwright.model.format import Format
from evalwright.model.suite import Suite
from evalwright.registry import NATIVE, format_of, formats, resolve

__all__ = ["Conversion", "convert"]

_YAML = (".yaml", ".yml")
"""YAML formats are recognised by their keys."""
_OF_FILES = (*_YAML, ".json", ".jsonl")
_MOST_LISTED = 100
_MOST_FOUND = 1000


@dataclass(frozen=True, slots=True)
class Conversion:
    """What was written, and which parts of the original it lacks."""

    files: list[Path]
    """The file to run comes first."""
    left_out: list[Problem] = field(default_factory=list)
    """Keys of the original without effect in evalwright."""
    notes: list[str] = field(default_factory=list)
    """What to do before the new files are run."""
    losses: list[Problem] = field(default_factory=list)
    """The case, or `suite`, as the file of each; the path of what is lost as its key."""


def convert(
    source: Path,
    to: str | None = None,
    out: Path | None = None,
    *,
    dialect: str | None = None,
    allow_loss: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Conversion:
    """Convert the suite in `source`, a file or a folder that stands for one.

    Raises InputError, and then nothing is written; StorageError. Unless `allow_loss`, any setting that the new files
    cannot express is an InputError, except keys without effect. Without `to`, files of a format that has two forms get
    the other one, and all others become native.
    """
    format_options = options or {}
    if os.path.isdir(source):
        source = next(stood_for(source, dialect), source)
    if dialect is None and source.suffix not in _YAML and os.path.isfile(source) and not fitting(source):
        for suite_format in formats():  # a result file may have another form, too, although it is not a suite
            if (
                to in (None, suite_format.name)
                and (done := _other_form(suite_format, source, out, allow_loss)) is not None
            ):
                return done
    original = read_original(source, dialect, format_options)
    current = format_of(original.suite.dialect)
    target = format_of(to) if to is not None else current if current.other_form is not None else format_of(NATIVE)
    if target is current:
        if (done := _other_form(current, source, out, allow_loss, format_options)) is not None:
            return done
        if to is None or current.expands is None or not resolve(current.expands)(original.suite.document):
            raise InputError(Problem(str(source), f"is already in {current.title} format"))
    if not original.suite.variants and _is_empty(original.suite):
        raise InputError(Problem(str(source), "has no cases and no evaluators: there is nothing to convert"))
    allowed = format_options.get("allow_outside") or ()
    return _written_suite(original, target, out or Path(f"{source.stem}-{target.name}"), allow_loss, allowed)


def _written_suite(
    original: Original, into: Format, folder: Path, allow_loss: bool, allow_outside: Sequence[Path]
) -> Conversion:
    if into.write is None:
        raise InputError(f"{into.title} suites can be read, but not written")
    losses = original.losses()
    with OutputFolder() as output:
        written: Written = resolve(into.write)(original.suite, folder, output)
        if written.file.parent == folder and folder.suffix in _OF_FILES:
            names = ", ".join(sorted(path.name for path in output.files))
            raise InputError(Problem(str(folder), f"would be a folder, for {names}; name one without {folder.suffix}"))
        output.finish()
        losses += written.losses
        reaches = (
            {"allow_outside": allow_outside}
            if any(option.keyword == "allow_outside" for option in into.options)
            else {}
        )
        try:
            options = {**written.options, **reaches}
            read = load_suite(written.file, into.name, original.references, to_run=False, options=options)
            losses += _first(differences(original.suite, read), allow_loss)
        except InputError as error:
            _refuse(losses, allow_loss)
            raise InputError(
                [*losses[:_MOST_LISTED], *error.problems], f"the format {into.name} cannot hold this suite"
            ) from error
        _refuse(losses, allow_loss)
        if _is_empty(read) and not _is_empty(original.suite):
            raise InputError(losses[:_MOST_LISTED], f"the format {into.name} can hold no case of this suite")
    files = [written.file, *(path for path in output.files if path != written.file)]
    left_out = list(unread_keys(original.suite))
    return Conversion(files, left_out, [*original.notes(), *written.notes], losses)


def _is_empty(suite: Suite) -> bool:
    return not any(True for _ in suite.cases)


def _other_form(
    suite_format: Format, source: Path, out: Path | None, allow_loss: bool, options: Mapping[str, Any] | None = None
) -> Conversion | None:
    """A file in the other form of its format and, with `options`, a comparison of the suite in both; None if it has
    none."""
    if suite_format.other_form is None:
        return None
    losses, notes = list[Problem](), list[str]()
    with OutputFolder() as output:
        target: Path | None = resolve(suite_format.other_form)(source, out, output, losses.append)
        if target is None:
            return None
        output.finish()
        if options is not None:
            original, written = (
                load_suite(path, suite_format.name, to_run=False, options=options) for path in (source, target)
            )
            known = {(loss.file, loss.key) for loss in losses}
            unknown_losses = _first(differences(original, written), allow_loss)
            losses += [loss for loss in unknown_losses if (loss.file, loss.key) not in known]
            notes = credential_notes(original)
        _refuse(losses, allow_loss)
    files = sorted(output.files, key=lambda path: path != target)
    return Conversion(files, notes=notes, losses=losses)


def _first(losses: Iterator[Problem], allow_loss: bool) -> Iterator[Problem]:
    """All of them if they are allowed, else enough to reject the conversion."""
    return losses if allow_loss else islice(losses, _MOST_FOUND)


def _refuse(losses: list[Problem], allow_loss: bool) -> None:
    if losses and not allow_loss:
        shown = f", the first {_MOST_LISTED} are listed" if len(losses) > _MOST_LISTED else ""
        more = "at least " if len(losses) >= _MOST_FOUND else ""
        losses_found = f"{more}{counted(len(losses), 'setting')} cannot be converted{shown}"
        raise InputError(losses[:_MOST_LISTED], f"{losses_found}; pass --allow-loss to convert anyway")
