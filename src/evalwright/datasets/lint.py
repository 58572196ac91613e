"""What is doubtful about the cases of a suite, although each of them can be run.

Cases that ask the same thing count twice in every rate, and intervals take them for independent; an answer contained in
the question measures copying; if one answer is nearly always expected, a system that always gives it looks good.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from evalwright.datasets.likeness import Likeness, spoken_words
from evalwright.errors import Problem, counted, shorten
from evalwright.model.case import EvalCase
from evalwright.model.snapshot import Case, snapshot

__all__ = ["Finding", "findings_in"]

MOST_COMPARED = 50_000
"""Cases among which near duplicates are searched for: each takes a few kilobytes until the end."""
MOSTLY = 0.8
"""Share of one expected answer from which the score of always giving it is reported."""
_FEWEST = 10
"""Minimum number of cases with one expected answer for checking their balance."""
_UNSEEN = ("Cc", "Cf")
"""Categories of Unicode that are not shown: control characters, and those that join words or turn their direction."""
_SHORTEST_LEAK = 4
"""Minimum length of an answer that is searched for in the input: shorter ones occur there by chance."""
_OF_FORMATS = ("reference_answer", "ground_truth", "expected_output")
"""Where formats keep the expected answer."""


class Finding(NamedTuple):
    """A doubt about cases: its kind, such as `unbalanced`, and where it is."""

    kind: str
    problem: Problem


class _Place(NamedTuple):
    file: str
    line: int | None
    id: str

    def __str__(self) -> str:
        return repr(self.id) if self.line is None else f"{self.id!r} (line {self.line})"


def findings_in(cases: Iterable[EvalCase | Case], source: Path) -> Iterator[Finding]:
    """The doubts about single cases, then those about all; `source` is the file that contains them.

    Raises InputError for cases that cannot be read.
    """
    seen: dict[bytes, _Place] = {}
    named: dict[str, _Place] = {}
    answers: Counter[str] = Counter()
    likeness, places, idle = Likeness(), list[_Place](), list[_Place]()
    total = 0
    for case, place in _cases_with_places(cases, source):
        total += 1
        twin = named.setdefault(_folded_id(case.id), place)
        if twin.id != case.id:
            yield _finding("id", place, f"looks like {twin}: people will take them for one case")
        text = _text(case.input)
        key = blake2b(_input_bytes(case), digest_size=12).digest()
        first = seen.setdefault(key, place)
        if first is not place:
            yield _finding("duplicate", place, f"asks the same as {first}")
        elif len(places) < MOST_COMPARED:
            near = likeness.nearest(text)
            if near is not None:
                yield _finding(
                    "near duplicate", place, f"asks nearly the same as {places[near[0]]}: {near[1]:.0%} alike"
                )
            places.append(place)
        expected = [answer for answer in _answers(case) if answer.strip()]  # a blank one is part of every answer
        for answer in expected:
            if _stands_in(answer, text):
                yield _finding("leak", place, f"the expected answer {_short(answer)} occurs in the input")
        if not expected and _expects_nothing(case):
            idle.append(place)
        if len(expected) == 1:
            answers[expected[0]] += 1
    yield from _idle(source, idle, total)
    yield from _balance(source, answers)
    if total > MOST_COMPARED:
        message = f"near duplicates were looked for among the first {MOST_COMPARED:,} of {total:,} cases"
        yield Finding("not looked at", Problem(str(source), message))


def _cases_with_places(cases: Iterable[EvalCase | Case], source: Path) -> Iterator[tuple[Case, _Place]]:
    """Each case and its place; with the line only if its format tells it."""
    placed = getattr(cases, "placed", None)
    if placed is None:
        for case in cases:
            yield snapshot(case), _Place(str(source), None, case.id)
        return
    for case, problem_at in placed():
        problem = problem_at((), "")
        yield snapshot(case), _Place(problem.file, problem.line, case.id)


def _finding(kind: str, place: _Place, message: str) -> Finding:
    return Finding(kind, Problem(place.file, f"{place.id!r} {message}", place.line))


def _folded_id(id: str) -> str:
    """An id without what people do not see in it: Unicode form, case, white space, invisible characters."""
    if id.isascii() and id.isprintable():
        return id.strip().lower()
    kept = (
        character for character in unicodedata.normalize("NFKC", id) if unicodedata.category(character) not in _UNSEEN
    )
    return "".join(kept).strip().casefold()


def _input_bytes(case: Case) -> bytes:
    return msgspec.json.encode([case.input, case.extra.get("input_messages")], order="deterministic")


def _text(value: Any) -> str:
    """All text in a value, in order."""
    return "\n".join(_texts(value))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif value is not None:
        yield str(value)


def _answers(case: Case) -> Iterator[str]:
    """The expected answers of a case, as text."""
    yield from case.expected.answer_should_include
    yield from _texts(case.expected.facts)
    for key in _OF_FORMATS:
        if isinstance(text := case.extra.get(key), str) and text:
            yield text


def _expects_nothing(case: Case) -> bool:
    expected = case.expected
    expectations = (expected.must_call_tools, expected.answer_should_not_include, expected.must_modify_files)
    return not (
        any(expectations) or expected.must_not_modify_files or expected.conversation or case.evaluators or case.extra
    )


def _stands_in(answer: str, question: str) -> bool:
    """Whether the words of an answer occur in the input, one after the other."""
    if len(answer.strip()) < _SHORTEST_LEAK:
        return False
    wanted, words = spoken_words(answer), spoken_words(question)
    return bool(wanted) and f" {' '.join(wanted)} " in f" {' '.join(words)} "


def _short(text: str) -> str:
    return repr(shorten(text, 40))


def _idle(source: Path, idle: list[_Place], total: int) -> Iterator[Finding]:
    """The cases that expect nothing; one line for all if no case does."""
    if len(idle) == total > 1:
        message = f"nothing is expected in any of {counted(total, 'case')}, and none has evaluators of its own"
        yield Finding("no expectation", Problem(str(source), message))
        return
    for place in idle:
        yield _finding("no expectation", place, "nothing is expected, and the case has no evaluators of its own")


def _balance(source: Path, answers: Counter[str]) -> Iterator[Finding]:
    """How often the same answer is expected, if there are only a few different ones."""
    total = sum(answers.values())
    if total < _FEWEST or len(answers) > total / 2:
        return
    (most, number), *_ = answers.most_common(1)
    if number >= MOSTLY * total:
        message = f"always answering {_short(most)} is right in {number} of {counted(total, 'case')} with one answer"
        yield Finding("unbalanced", Problem(str(source), message))
