"""The verdict of each evaluator on each answer of a stored run: the newest one on the newest attempt."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from evalwright.files.numbers import is_number
from evalwright.model.cell import Attempt, OfCase
from evalwright.model.facts import CellKey, ResultFacts
from evalwright.model.protocols import RunReader

__all__ = ["JudgedAnswers", "Judgement", "judged_answers", "verdicts_by_variant"]

_NOTHING = msgspec.Raw(b"null")


class _Answer(OfCase, gc=False):
    variant_name: str
    trial: int = 0
    attempt: Attempt = 1
    output: msgspec.Raw = _NOTHING
    messages: msgspec.Raw = _NOTHING
    tool_calls: msgspec.Raw = _NOTHING
    tool_results: msgspec.Raw = _NOTHING
    group: str | msgspec.UnsetType = msgspec.UNSET

    def fingerprint(self) -> bytes:
        """Equal for equal answers to the same case, in whichever cell."""
        digest = blake2b(digest_size=12)
        for part in (self.case_key.encode("utf-8", "replace"), self.output, self.messages, self.tool_calls):
            # The zero byte makes texts differ when content moves from one part to the next.
            digest.update(bytes(part) + b"\0")
        digest.update(bytes(self.tool_results))
        return digest.digest()

    def length(self) -> int | None:
        """Characters of the final answer; None if it is not text."""
        output = msgspec.json.decode(self.output, type=_Output | None)
        return len(output.final_answer) if output is not None and isinstance(output.final_answer, str) else None


class _Output(msgspec.Struct, gc=False):
    final_answer: Any = None


class _Row(ResultFacts, gc=False):
    detail: dict[str, Any] = msgspec.field(default_factory=dict)


class Judgement(msgspec.Struct, gc=False):
    """One evaluator's verdict; `passed` is None if it errored or skipped. `threshold` is the lowest passing score."""

    passed: bool | None
    score: float | None
    threshold: float | None
    orders: tuple[tuple[str, str], ...] = ()
    """For an evaluator that compares the answer with a reference: the winner with the answer shown first, and with the
    reference first, one pair per comparison: `answer`, `reference` or `tie`."""
    votes: tuple[tuple[str, bool], ...] = ()
    """For an evaluator that asked several times: each model with its verdict."""


class JudgedAnswers(msgspec.Struct):
    """The answers of a run in the order of their cells, and the verdicts on them by evaluator."""

    attempts: dict[CellKey, int]
    answers: dict[CellKey, bytes]
    """The fingerprint of each answer: cells with equal ones have the same answer to the same case."""
    lengths: dict[CellKey, int]
    """Characters of each answer that is a text."""
    judgements: dict[str, dict[CellKey, Judgement]]
    groups: dict[str, str] = {}
    """By case; cases without a group are absent."""

    def unit(self, key: CellKey) -> Hashable:
        """What answers must not share to be independent: their group, or else their case."""
        return self.groups.get(key[0], (key[0],))


def verdicts_by_variant(judgements: Mapping[CellKey, Judgement]) -> dict[str, dict[CellKey, bool]]:
    """For each variant, its cells that the evaluator passed or failed."""
    verdicts: dict[str, dict[CellKey, bool]] = {}
    for key, judgement in judgements.items():
        if judgement.passed is not None:
            verdicts.setdefault(key[1], {})[key] = judgement.passed
    return verdicts


def judged_answers(reader: RunReader, evaluators: Collection[str]) -> JudgedAnswers:
    """The verdicts of the named evaluators. Keeps one record per cell and evaluator in memory."""
    answers = JudgedAnswers({}, {}, {}, {name: {} for name in evaluators})
    for trace in reader.traces(_Answer):
        key = (trace.case_key, trace.variant_name, trace.trial)
        if trace.group is not msgspec.UNSET:
            answers.groups[trace.case_key] = trace.group
        # As in `newest`: of two records of one attempt the last one counts.
        if trace.attempt >= answers.attempts.get(key, 0):
            answers.attempts[key], answers.answers[key] = trace.attempt, trace.fingerprint()
            if (length := trace.length()) is not None:
                answers.lengths[key] = length
    for row in _rows(reader, answers):
        judgement = _judgement_of(row)
        answers.judgements[row.evaluator][row.case_key, row.variant_name, row.trial] = judgement
    return answers


def _rows(reader: RunReader, answers: JudgedAnswers) -> Iterator[_Row]:
    for row in reader.results(_Row):
        newest = answers.attempts.get((row.case_key, row.variant_name, row.trial))
        if row.evaluator in answers.judgements and row.attempt == newest:
            yield row


def _judgement_of(row: _Row) -> Judgement:
    """The score that human labels also have: the rubric's own, if the evaluator stores it separately."""
    rubric = row.detail.get("rubric")
    part = rubric if isinstance(rubric, dict) else {**row.detail, "score": row.score}
    judged = row.error is None and not row.skipped
    orders = _orders(row.detail.get("comparisons")) if judged else ()
    score, threshold = _number(part.get("score")), _number(part.get("threshold"))
    return Judgement(row.passed if judged else None, score, threshold, orders, _votes(row.detail.get("votes")))


def _votes(votes: Any) -> tuple[tuple[str, bool], ...]:
    """Verdicts by model; a judge without one has no vote."""
    rows = [row for row in votes if isinstance(row, dict)] if isinstance(votes, list) else []
    return tuple((str(row.get("model")), row["passed"]) for row in rows if isinstance(row.get("passed"), bool))


def _orders(comparisons: Any) -> tuple[tuple[str, str], ...]:
    """Winners by pair of orders, as `pairwise_judge` stores them one after the other; empty for anything else."""
    if not isinstance(comparisons, list):
        return ()
    rows = [row if isinstance(row, dict) else {} for row in comparisons]
    pairs = zip(rows[::2], rows[1::2], strict=False)
    return tuple(
        (str(pair.get("winner")), str(other.get("winner")))
        for pair, other in pairs
        if (pair.get("first"), other.get("first")) == ("answer", "reference")
    )


def _number(value: Any) -> float | None:
    # `true` is a number in Python, but not a score.
    return float(value) if is_number(value) else None
