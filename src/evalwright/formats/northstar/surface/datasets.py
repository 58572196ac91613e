"""Files of recorded conversations, held as a list of cases.

With `strict` ids that are empty or come more than once are refused, not warned of.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import InputError
from evalwright.evaluators.wording import listed
from evalwright.formats.northstar.records import EvalCase, Record, checked, is_lines, records_of

__all__ = ["Dataset"]


class Dataset:
    """Cases of one file, or made of plain data."""

    def __init__(self, cases: Iterable[EvalCase], path: Path | None = None) -> None:
        self.cases: list[EvalCase] = list(cases)
        self.path = path

    @classmethod
    def from_path(cls, path: str | Path, *, strict: bool = False) -> Dataset:
        """The dataset in a JSON or JSON Lines file, by its suffix. Raises ValueError, FileNotFoundError."""
        path = Path(path)
        try:
            lines = is_lines(path)
        except InputError as error:
            raise ValueError(str(error)) from error
        return cls._read(path, lines, strict)

    @classmethod
    def from_json(cls, path: str | Path, *, strict: bool = False) -> Dataset:
        """A list of cases, an object with `cases`, or one case. Raises ValueError, FileNotFoundError."""
        return cls._read(Path(path), False, strict)

    @classmethod
    def from_jsonl(cls, path: str | Path, *, strict: bool = False) -> Dataset:
        """One case a line. Raises ValueError, FileNotFoundError."""
        return cls._read(Path(path), True, strict)

    @classmethod
    def from_records(cls, records: Iterable[Mapping[str, Any]], *, strict: bool = False) -> Dataset:
        """Cases from plain data. Raises ValueError with every problem."""
        return cls(_cases((Record(value, index) for index, value in enumerate(records)), "records", strict))

    @classmethod
    def _read(cls, path: Path, lines: bool, strict: bool) -> Dataset:
        path.stat()
        return cls(_cases(records_of(path, lines=lines), str(path), strict), path)

    def __iter__(self) -> Iterator[EvalCase]:
        return iter(self.cases)

    def __len__(self) -> int:
        return len(self.cases)


def _cases(records: Iterable[Record], file: str, strict: bool) -> list[EvalCase]:
    cases, problems = [], []
    try:
        for record in records:
            case, wrong = checked(record, file)
            problems += wrong
            if case is not None:
                cases.append(case)
    except InputError as error:
        problems += error.problems
    if problems:
        raise ValueError("\n".join(map(str, problems)))
    odd = _odd_ids(cases)
    if odd:
        message = f"{file}: ids that are empty or come more than once: {listed(odd)}"
        if strict:
            raise ValueError(message)
        warnings.warn(message, stacklevel=4)
    return cases


def _odd_ids(cases: Iterable[EvalCase]) -> list[str]:
    """Results are one for each row all the same."""
    return [case_id for case_id, number in Counter(case.id for case in cases).items() if number > 1 or not case_id]
