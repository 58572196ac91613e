"""Evaluators' results as codes that many cells share, and numbers that belong to a single cell."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from evalwright.model.cell_index import CellOutcome, OutcomeStatus
from evalwright.model.facts import Rejudgement

__all__ = [
    "Profile",
    "Unindexable",
    "clean_profile",
    "code_of",
    "outcomes_of",
    "own_numbers",
    "profile_of",
    "reordered",
    "shared_outcomes",
    "status_of_code",
]

Profile = tuple[str, str | None, str | None, tuple[tuple[str, int], ...]]
"""Variant, status, error type, and the evaluator and code of each result: what most cells of a run have in common."""


class Unindexable(Exception):
    """Something that an index cannot report as a scan would: such a run has no index and is scanned."""


_PASSED, _SKIPPED, _ERROR, _COST = 1, 2, 4, 8
_SCORES = (None, 0.0, 1.0)
_OTHER_SCORE = len(_SCORES)
_SCORE_BITS = 4
"""The score is in the bits above: one of three values, or a marker for another one, which is in `numbers`."""
_SHARED_SCORES = {score: place << _SCORE_BITS for place, score in enumerate(_SCORES) if score is not None}


_USUAL = {
    (passed, skipped, score): (passed * _PASSED + skipped * _SKIPPED + (place << _SCORE_BITS), ())
    for passed in (False, True)
    for skipped in (False, True)
    for place, score in enumerate(_SCORES)
}
"""The codes of nearly all results, by verdict and score."""


def code_of(result: Any) -> tuple[int, tuple[float, ...]]:
    """The code of a result, and the numbers that it leaves out."""
    usual = _USUAL.get((result.passed, result.skipped, result.score))
    if usual is not None and result.error is None and result.cost_usd is None:
        return usual
    code: int = result.passed * _PASSED + result.skipped * _SKIPPED
    numbers: tuple[float, ...] = ()
    if result.error is not None:
        code += _ERROR
    if (score := result.score) is not None:
        if (shared := _SHARED_SCORES.get(score)) is not None:
            code += shared
        else:
            code += _OTHER_SCORE << _SCORE_BITS
            numbers = (float(score),)
    if (cost := result.cost_usd) is not None:
        code += _COST
        numbers = (*numbers, float(cost))
    return code, numbers


def status_of_code(code: int) -> OutcomeStatus:
    """As `EvaluationResult.status`, without `borderline`."""
    return "error" if code & _ERROR else "skip" if code & _SKIPPED else "pass" if code & _PASSED else "fail"


def clean_profile(profile: Profile) -> bool:
    """Whether nothing went wrong in a cell: it passed or was skipped, and so did each of its results."""
    _, status, error, outcomes = profile
    fine = all(not code & _ERROR and code & (_PASSED | _SKIPPED) for _, code in outcomes)
    return fine and error is None and status in ("pass", "skip")


def profile_of(alike: Rejudgement) -> tuple[Profile, bytes | None]:
    """The profile of a judged cell, and the numbers that it leaves out.

    Raises Unindexable if an evaluator has two results.
    """
    codes = {row.evaluator: code_of(row) for row in alike.results}
    if len(codes) < len(alike.results):
        raise Unindexable("an evaluator has two results")
    outcomes = tuple((name, code) for name, (code, _) in codes.items())
    own = array("d", [number for _, numbers in codes.values() for number in numbers])
    return (alike.variant, alike.status, alike.error, outcomes), own.tobytes() or None


def own_numbers(code: int) -> int:
    """How many of a result's numbers its code leaves out."""
    return (code >> _SCORE_BITS == _OTHER_SCORE) + bool(code & _COST)


def reordered(profile: Profile, numbers: bytes | None, order: Sequence[int]) -> tuple[Profile, bytes | None]:
    """A profile and a cell's own numbers, with the results in this order."""
    *others, outcomes = profile
    own = iter(array("d", numbers or b""))
    parts = [[next(own) for _ in range(own_numbers(code))] for _, code in outcomes]
    moved = array("d", [number for place in order for number in parts[place]])
    return (*others, tuple(outcomes[place] for place in order)), moved.tobytes() or None  # type: ignore[return-value]


def shared_outcomes(profile: Profile) -> list[CellOutcome]:
    """The results of all cells with this profile, without numbers that belong to single cells."""
    scores = (*_SCORES, None)
    return [
        CellOutcome(
            name, status_of_code(code), bool(code & _PASSED), bool(code & _SKIPPED), scores[code >> _SCORE_BITS], None
        )
        for name, code in profile[3]
    ]


def outcomes_of(profile: Profile, numbers: bytes | None) -> list[CellOutcome]:
    """The results, from the codes that many cells share and the numbers that belong to this cell."""
    own = iter(array("d", numbers or b""))
    outcomes = []
    for name, code in profile[3]:
        score = next(own) if code >> _SCORE_BITS == _OTHER_SCORE else _SCORES[code >> _SCORE_BITS]
        cost = next(own) if code & _COST else None
        outcomes.append(
            CellOutcome(name, status_of_code(code), bool(code & _PASSED), bool(code & _SKIPPED), score, cost)
        )
    return outcomes
