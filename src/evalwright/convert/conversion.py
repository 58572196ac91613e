"""One conversion from beginning to end: read, write, read what was written, compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from evalwright.convert.losses import differences
from evalwright.convert.original import Original, credential_notes, read_original
from evalwright.convert.unread import unread_keys
from evalwright.errors import InputError, Problem
from evalwright.formats.agentv import forms as agentv_forms
from evalwright.formats.agentv.writer import write_agentv
from evalwright.formats.letta.writer import write_letta
from evalwright.formats.loading import load_suite
from evalwright.formats.native.writer import write_native
from evalwright.formats.northstar.writer import write_northstar
from evalwright.formats.pixie.writer import write_pixie
from evalwright.formats.shared.output import Output
from evalwright.formats.shared.written import Written
from evalwright.model.suite import Suite

__all__ = ["Conversion", "convert"]

_NATIVE = "evalh"
_MOST_TOLD = 100
_MOST_FOUND = 1000

Write = Callable[[Suite, Path, Output], Written]
"""Writes a suite into a folder."""
_WRITERS: dict[str, Write] = {
    "agentv": write_agentv,
    "letta": write_letta,
    "native": write_native,
    "northstar": write_northstar,
    "pixie": write_pixie,
}


@dataclass(frozen=True, slots=True)
class Conversion:
    """What was written, and what of the original it does not say."""

    files: list[Path]
    """What is to be run first."""
    left_out: list[Problem] = field(default_factory=list)
    """Keys of the original without effect in evalwright."""
    notes: list[str] = field(default_factory=list)
    """What is to be done before the new files are run."""
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
    """Write the suite in `source` anew. Raises InputError, and then nothing is written; StorageError.

    Unless `allow_loss`, anything that the new files would not say is such an error, but for keys without effect.
    Without `to`, files of agentv get their other form, and all others become native.
    """
    if dialect is None and agentv_forms.is_lines(source) and source.is_file() and not agentv_forms.holds_cases(source):
        return _other_form(source, out, allow_loss, {})
    original = read_original(source, dialect, options or {})
    to = to or ("agentv" if original.suite.dialect == "agentv" else "native")
    if (original.suite.dialect, to) == ("agentv", "agentv"):
        return _other_form(source, out, allow_loss, options or {})
    if to == original.suite.dialect or (original.suite.dialect, to) == (_NATIVE, "native"):
        raise InputError(Problem(str(source), f"is of the format {to} already"))
    if not original.suite.variants and not any(True for _ in original.suite.cases):
        raise InputError(
            Problem(str(source), "has no cases and nothing that is evaluated: there is nothing to convert")
        )
    return _written(original, to, out or Path(f"{source.stem}-{to}"), allow_loss)


def _written(original: Original, to: str, folder: Path, allow_loss: bool) -> Conversion:
    losses = original.losses()
    with Output() as output:
        written = _WRITERS[to](original.suite, folder, output)
        output.finish()
        losses += written.losses
        try:
            read = load_suite(
                written.file,
                _NATIVE if to == "native" else to,
                original.references,
                to_run=False,
                options=written.options,
            )
            losses += _first(differences(original.suite, read), allow_loss)
        except InputError as error:
            _refuse(losses, allow_loss)
            raise InputError(
                [*losses[:_MOST_TOLD], *error.problems], f"the format {to} cannot hold this suite"
            ) from error
        _refuse(losses, allow_loss)
    files = [written.file, *(path for path in output.files if path != written.file)]
    left_out = list(unread_keys(original.suite))
    return Conversion(files, left_out, [*original.notes(), *written.notes], losses)


def _other_form(source: Path, out: Path | None, allow_loss: bool, options: Mapping[str, Any]) -> Conversion:
    """AgentEvals cases from JSON Lines to YAML, and back."""
    lines = agentv_forms.is_lines(source)
    target = out or agentv_forms.other_place(source)
    if agentv_forms.is_lines(target) == lines:
        expected = ".yaml" if lines else ".jsonl"
        raise InputError(Problem(str(target), f"expected a file that ends in {expected}"))
    losses, notes = list[Problem](), list[str]()
    with Output() as output:
        if lines:
            agentv_forms.to_yaml(source, target, output, losses.append)
        else:
            agentv_forms.to_lines(source, target, output, losses.append)
        output.finish()
        if not lines or agentv_forms.holds_cases(source):
            original, written = (load_suite(path, "agentv", to_run=False, options=options) for path in (source, target))
            known = {(loss.file, loss.key) for loss in losses}
            found = _first(differences(original, written), allow_loss)
            losses += [loss for loss in found if (loss.file, loss.key) not in known]
            notes = credential_notes(original)
        _refuse(losses, allow_loss)
    files = sorted(output.files, key=lambda path: path != target)
    return Conversion(files, notes=notes, losses=losses)


def _first(losses: Iterator[Problem], allow_loss: bool) -> Iterator[Problem]:
    """All of them when they are allowed, else enough to refuse."""
    return losses if allow_loss else islice(losses, _MOST_FOUND)


def _refuse(losses: list[Problem], allow_loss: bool) -> None:
    if losses and not allow_loss:
        shown = f", the first {_MOST_TOLD}" if len(losses) > _MOST_TOLD else ""
        count = f"{len(losses)}{' or more' if len(losses) >= _MOST_FOUND else ''} thing{'s' * (len(losses) > 1)}"
        headline = f"{count} would be lost{shown}; nothing is written without --allow-loss"
        raise InputError(losses[:_MOST_TOLD], headline)
