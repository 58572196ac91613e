"""Files of recorded conversations, held as a list of cases.

With `strict`, empty or repeated ids are rejected rather than warned about.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import PydanticCustomError

from evalwright.errors import InputError
from evalwright.evaluators.wording import listed
from evalwright.formats.northstar.authored import EvalCase, checked
from evalwright.formats.northstar.records import Record, is_lines, records_of

__all__ = ["Dataset"]


class Dataset(BaseModel):
    """Cases of one file, or made of plain data; two with the same cases are equal."""

    cases: list[EvalCase]
    path: Path | None = Field(default=None, exclude=True)

    def __init__(self, cases: Iterable[EvalCase], path: Path | None = None) -> None:
        super().__init__(cases=list(cases), path=path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dataset) and self.cases == other.cases

    __hash__ = None  # type: ignore[assignment]

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
        """Cases from plain data.

        Raises pydantic's ValidationError: for the one wrong record, whose number is in its title, or for all of them,
        each place preceded by the record's number. With `strict`, ValueError for ids.
        """
        cases: list[EvalCase] = []
        wrong: list[tuple[int, ValidationError]] = []
        for number, record in enumerate(records):
            try:
                cases.append(EvalCase.model_validate(record))
            except ValidationError as error:
                wrong.append((number, error))
        if wrong:
            raise _joint_error(wrong)
        _check_ids(cases, "records", strict)
        return cls(cases)

    @classmethod
    def _read(cls, path: Path, lines: bool, strict: bool) -> Dataset:
        path.stat()
        return cls(_cases(records_of(path, lines=lines), str(path), strict), path)

    def __iter__(self) -> Iterator[EvalCase]:  # type: ignore[override]
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
    _check_ids(cases, file, strict)
    return cases


def _joint_error(wrong: Sequence[tuple[int, ValidationError]]) -> ValidationError:
    """One error with the mistakes of all records; those of a single one are where the original has them."""
    several = len(wrong) > 1
    lines: list[Any] = [
        {**line, "type": _kind(line), "loc": (number, *line["loc"]) if several else line["loc"]}
        for number, error in wrong
        for line in error.errors(include_url=False)
    ]
    return ValidationError.from_exception_data("EvalCase" if several else f"EvalCase (record {wrong[0][0]})", lines)


def _kind(line: Any) -> Any:
    """pydantic words its own errors; the words of other errors are kept."""
    if line["type"] == "value_error":
        return PydanticCustomError("value_error", "{text}", {"text": line["msg"]})
    return line["type"]


def _check_ids(cases: Iterable[EvalCase], file: str, strict: bool) -> None:
    if odd := _unusable_ids(cases):
        message = f"{file}: ids that are empty or repeated: {listed(odd)}"
        if strict:
            raise ValueError(message)
        warnings.warn(message, stacklevel=4)


def _unusable_ids(cases: Iterable[EvalCase]) -> list[str]:
    """The ids that are repeated or empty; each row gets its own result nevertheless."""
    return [case_id for case_id, number in Counter(case.id for case in cases).items() if number > 1 or not case_id]
