"""The labels of people beside a run's cells, in a temporary table that the conditions of a filter refer to."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable
from typing import Any

__all__ = ["LABEL_CHOICES", "LabelledCells", "labelled_condition"]

_DISAGREES = "disagrees"
LABEL_CHOICES = ("pass", "fail", "unsure", _DISAGREES)
"""What a filter can ask of labels: a verdict, or that it is not the evaluator's."""


class LabelledCells:
    """`temp.labels` has each label with the answer that it is about."""

    def __init__(self, file: sqlite3.Connection, lock: threading.RLock) -> None:
        self._file, self._lock = file, lock
        file.execute(
            "CREATE TEMP TABLE labels "
            "(case_key TEXT, variant TEXT, trial INTEGER, attempt INTEGER, evaluator TEXT, verdict TEXT)"
        )
        self.any: bool = False
        """Whether there are labels."""

    def replace(self, labels: Iterable[tuple[str, str, int, int, str, str]]) -> None:
        with self._lock:
            self._file.execute("DELETE FROM temp.labels")
            self._file.executemany("INSERT INTO temp.labels VALUES (?, ?, ?, ?, ?, ?)", labels)
            self.any = bool(self._file.execute("SELECT 1 FROM temp.labels LIMIT 1").fetchall())


def labelled_condition(wanted: str, evaluator: str) -> tuple[str, list[Any]]:
    """The condition that a cell has such a label, of the evaluator if one is named, with its values."""
    tables, values = "cells JOIN temp.labels USING (case_key, variant, trial, attempt)", []
    if wanted == _DISAGREES:
        tables += " JOIN outcomes USING (number, evaluator)"
        condition = "verdict IN ('pass', 'fail') AND outcome IN ('pass', 'fail') AND verdict != outcome"
    else:
        condition, values = "verdict = ?", [wanted]
    if evaluator:
        condition, values = f"{condition} AND evaluator = ?", [*values, evaluator]
    return f"number IN (SELECT number FROM {tables} WHERE {condition})", values
