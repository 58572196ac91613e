"""Human labels: which answers are to be labelled, in which order, and the file of the labels.

The file `labels.csv` only grows: the last line of a labeller about an answer counts, an empty verdict withdraws.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice, zip_longest
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from evalwright.errors import StorageError
from evalwright.files.durable import PRIVATE, PRIVATE_FOLDER, AppendFile, replace_file, storage_error
from evalwright.files.sheets import sheet_rows
from evalwright.model.calibration import BALANCED, ORDERS_BY_RESULTS
from evalwright.viewer.table import CellRow, CellTable

__all__ = ["HEADER", "ORDERS", "LabelFile", "LabelOrder", "StoredLabel", "cells_to_label", "now"]

HEADER = (
    "case_id",
    "variant",
    "trial",
    "attempt",
    "evaluator",
    "verdict",
    "score",
    "note",
    "labeller",
    "seen",
    "labelled_at",
    "sampling",
    "stratum",
    "stratum_size",
)
_MOST = 2**31
"""Trials and attempts; a number above is none of a run, and may be too large for the table of its cells."""
_WIDTHS = (len(HEADER) - 3, len(HEADER) - 2, len(HEADER))
"""How many columns a file may have: those at the end are there once they tell something."""
ORDERS = {
    "random": "Random",
    BALANCED: "Balanced by verdict",
    "disagree": "Judges disagree",
    "threshold": "Near the threshold",
    "suite": "Suite order",
}


class LabelOrder(NamedTuple):
    """Which answers are to be labelled: how many, and in which order. Equal orders give the same answers."""

    evaluator: str
    order: str = "random"
    seed: int = 0
    sample: int = 50

    @property
    def by_results(self) -> bool:
        """Whether the answers are chosen by what evaluators said of them."""
        return self.order in ORDERS_BY_RESULTS

    @property
    def balanced(self) -> bool:
        """Whether as many answers are drawn of those that the evaluator fails as of those that it passes."""
        return self.order == BALANCED


class StoredLabel(NamedTuple):
    """A line of the file."""

    case_id: str
    variant: str
    trial: int
    attempt: int
    evaluator: str
    verdict: str
    """`pass`, `fail`, `unsure`; empty if it was withdrawn, or if only a score was given."""
    score: str
    note: str
    labeller: str
    seen: str
    labelled_at: str
    chosen: str
    """The order in which the answer came up: a key of `ORDERS`."""
    stratum: str = ""
    """In a balanced sample, the evaluator's verdict: `pass` or `fail`; `stratum_size` is how many answers of the
    variant have it."""
    stratum_size: str = ""

    def verdict_at(self, threshold: float | None) -> str:
        """The verdict; of a score alone the one that `calibrate` takes it for, nothing without a threshold."""
        if self.verdict or not self.score or threshold is None:
            return self.verdict
        return "pass" if float(self.score) >= threshold else "fail"

    @property
    def counts(self) -> bool:
        return bool(self.verdict or self.score)

    @property
    def header(self) -> tuple[str, ...]:
        """The columns that this label needs."""
        representative_trial = 2 if self.stratum else 1 if self.chosen in ORDERS_BY_RESULTS else 0
        return HEADER[: _WIDTHS[representative_trial]]


class LabelFile:
    """The labels of one run. Lines that are no labels are left out: the file can be edited, or come from anyone."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def newest(self, evaluator: str, labeller: str) -> dict[tuple[str, str, int], StoredLabel]:
        """A labeller's current label of each answer, by case, variant and trial; the latest is last."""
        labels: dict[tuple[str, str, int], StoredLabel] = {}
        for label in self._lines():
            if (label.evaluator, label.labeller) == (evaluator, labeller):
                key = (label.case_id, label.variant, label.trial)
                labels.pop(key, None)
                if label.counts:
                    labels[key] = label
        return labels

    def stamp(self) -> tuple[int, int] | None:
        """What changes with the file; None if there is none."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size

    def evaluators(self) -> set[str]:
        """The evaluators about which there are labels."""
        return {label.evaluator for labels in self.by_answer().values() for label in labels}

    def by_answer(self) -> dict[tuple[str, str, int, int], list[StoredLabel]]:
        """Each labeller's current label, by case, variant, trial and attempt."""
        newest: dict[tuple[str, str, int, int], dict[tuple[str, str], StoredLabel]] = {}
        for label in self._lines():
            answer = (label.case_id, label.variant, label.trial, label.attempt)
            newest.setdefault(answer, {})[label.evaluator, label.labeller] = label
        return {answer: [label for label in labels.values() if label.counts] for answer, labels in newest.items()}

    def _lines(self) -> Iterator[StoredLabel]:
        try:
            text = self.path.read_text("utf-8", errors="replace")
        except OSError:
            return
        for row in sheet_rows(text):
            case_id, variant, trial, attempt, *rest = [row.get(name) or "" for name in HEADER]
            with suppress(ValueError):
                label = StoredLabel(case_id, variant, int(trial), int(attempt), *rest)
                exists = max(abs(label.trial), abs(label.attempt)) <= _MOST
                if exists and (not label.score or isfinite(float(label.score))):
                    yield label

    def append(self, label: StoredLabel) -> None:
        """Raises StorageError, also if the file has other columns. When it returns, the label is on the disk."""
        with _one_at_a_time:
            header_line = self._header()
            header = max(header_line or (), label.header, key=len)
            lines = b""
            if header_line is None:
                lines = _csv_line(header)
            elif header_line != header:
                self._replace_header(header)
            elif not _ends_a_line(self.path):
                lines = b"\n"  # the file was edited by hand
            self._make_folder()
            file = AppendFile(self.path, PRIVATE)
            try:
                file.append(lines + _csv_line(label[: len(header)]))
                file.sync()
            finally:
                file.close()

    def _header(self) -> tuple[str, ...] | None:
        """The columns of the file; None if there is none. Raises StorageError if they are not those of this page."""
        if not _size(self.path):
            return None
        with self.path.open("rb") as file:
            first = file.readline().decode("utf-8-sig", "replace").strip()
        header = tuple(next(csv.reader([first]), ()))
        if header not in [HEADER[:width] for width in _WIDTHS]:
            raise StorageError(f"{self.path} has other columns than the labels of this page: move it away first")
        return header

    def _replace_header(self, header: Sequence[str]) -> None:
        """Lines below it may be shorter. The file ends a line afterwards."""
        rest = self.path.read_bytes().partition(b"\n")[2]
        end = b"\n" if rest and not rest.endswith(b"\n") else b""
        replace_file(self.path, _csv_line(header) + rest + end, PRIVATE)

    def _make_folder(self) -> None:
        """A run in a database has no folder before its first artifact or label."""
        folder = self.path.parent
        try:
            folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error("make", folder, error) from error


_one_at_a_time = threading.Lock()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _csv_line(values: Sequence[object]) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerow(values)
    return out.getvalue().encode("utf-8", "replace")


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def cells_to_label(table: CellTable, choice: LabelOrder, threshold: float) -> list[CellRow]:
    """The answers to label, in their order, from all that the evaluator judged."""
    keys = table.judged_by(choice.evaluator, choice.order, threshold)
    if choice.balanced:
        keys = _balanced_order(table.strata(choice.evaluator), choice)
    elif choice.order == "random":
        keys = sorted(keys, key=lambda key: _drawn(choice.seed, key))
    chosen = [table.by_key(key) for key in keys[: choice.sample]]
    return [row for row in chosen if row is not None]


def _balanced_order(strata: Mapping[tuple[str, str], list[str]], choice: LabelOrder) -> list[str]:
    """Equally many of each stratum, as far as they go, in an order that does not reveal the verdicts.

    In each stratum the first labels are a random sample, however many of them there will be.
    """
    drawn = [sorted(keys, key=lambda key: _drawn(choice.seed, key)) for keys in strata.values()]
    turns = (key for turn in zip_longest(*drawn) for key in turn if key is not None)
    # Another order than the one of the draw, in which the answers of a large stratum would come first.
    return sorted(islice(turns, choice.sample), key=lambda key: _drawn(choice.seed, f"turn {key}"))


def _drawn(seed: int, key: str) -> bytes:
    """A random order that is the same for the same seed, so that a reload continues where it was."""
    return hashlib.sha256(f"{seed} {key}".encode()).digest()
