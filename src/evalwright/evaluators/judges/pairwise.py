"""An answer compared with a reference, in both orders, so that a judge's position bias cancels out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from evalwright.errors import EvaluatorError, Problem
from evalwright.evaluators.judges.calls import JudgeOutcome, Prompt, ask, cost, failure, spending
from evalwright.evaluators.judges.prompt_data import DATA_RULE, data_blocks, field_of, fields_of
from evalwright.evaluators.judges.replies import BadReply, only_object, reason_in
from evalwright.evaluators.judges.votes import Panel, first_error, panel_problems
from evalwright.evaluators.similarity.cosine import configured_reference, reference_problems
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["PairwiseJudge"]

_SCHEMA = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "better": {"type": "string", "enum": ["A", "B", "tie"]}},
    "required": ["reason", "better"],
    "additionalProperties": False,
}
_TASK = (
    "You compare two answers, A and B, to the same question. Their order is arbitrary and says nothing about them. "
    "Judge by the criteria alone; neither length nor style counts unless they say so. "
    "Reply with one JSON object and nothing else."
)
_REPLY = 'Reply with this JSON object:\n{"reason": one or two sentences, "better": "A", "B" or "tie"}'
_POINTS = {"answer": 1.0, "tie": 0.5, "reference": 0.0}
_CHOICES = ("A", "B", "tie")

_Choice = tuple[str, str]
"""Which of the two is better, in the reply's own terms, and why."""


class PairwiseJudge(Panel, frozen=True, kw_only=True):
    """Whether an answer is as good as a reference (or better); each of them is shown first once.

    The score is the share of comparisons that the answer wins; a tie counts half. `consistency` in the detail is the
    share of pairs in which the same one won in both orders.
    """

    criteria: str
    reference_text: str | None = None
    reference_path: str | None = None
    """Into `{case: ...}`, for example `case.expected.facts.best_answer`."""
    field: str = "output.final_answer"
    include_in_prompt: list[str] = msgspec.field(default_factory=lambda: ["input"])
    pass_when: Literal["not_worse", "better"] = "not_worse"

    @staticmethod
    def config_problems(values: Mapping[str, Any]) -> list[Problem]:
        problems = [*panel_problems(values), *reference_problems(values)]
        criteria = values.get("criteria")
        if isinstance(criteria, str) and not criteria.strip():
            problems.append(Problem("", "'criteria' must not be blank", key="criteria"))
        return problems

    async def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        reference = configured_reference(self.reference_text, self.reference_path, case)
        orders = self._prompts(case, trace, reference)
        detail = {"judge_model": self.label, "judge_prompt_hash": orders[0].digest}
        questions = [(model, prompt, repeat) for model, repeat in self.planned_calls for prompt in orders]
        outcomes: list[JudgeOutcome[_Choice]] = []
        try:
            outcomes = await ask(self, questions, _SCHEMA, _read)
            if any(outcome.value is None for outcome in outcomes):
                raise first_error(outcomes)
        except EvaluatorError as error:
            raise failure(error, detail, outcomes) from error
        return self._evaluation(outcomes, {**detail, **spending(outcomes)})

    def _evaluation(self, outcomes: Sequence[JudgeOutcome[_Choice]], detail: dict[str, Any]) -> Evaluation:
        winners = [_winner(outcome, i % 2) for i, outcome in enumerate(outcomes)]
        pairs = list(zip(winners[::2], winners[1::2], strict=True))
        score = sum(_POINTS[winner] for winner in winners) / len(winners)
        consistency = sum(one == other for one, other in pairs) / len(pairs)
        comparisons = [
            {
                "model": outcome.model,
                "first": "reference" if i % 2 else "answer",
                "winner": winner,
                "reason": outcome.value[1] if outcome.value else "",
            }
            for i, (outcome, winner) in enumerate(zip(outcomes, winners, strict=True))
        ]
        detail |= {"consistency": consistency, "comparisons": comparisons}
        passed = score > 0.5 if self.pass_when == "better" else score >= 0.5
        wins, ties = winners.count("answer"), winners.count("tie")
        reason = f"won {wins}, tied {ties}, lost {len(winners) - wins - ties} of {len(winners)} comparisons"
        return Evaluation(passed, score, reason, detail, cost_usd=cost(outcomes))

    def _prompts(self, case: Case, trace: Trace, reference: str) -> list[Prompt]:
        """The question with the answer first, and with the reference first."""
        answer = field_of(self.field, case, trace)
        context = fields_of(self.include_in_prompt, case, trace)
        system = f"{_TASK}\n\n{DATA_RULE}\n\nCriteria:\n{self.criteria}\n\n{_REPLY}"
        return [
            Prompt(system, data_blocks([*context, ("A", a), ("B", b)]))
            for a, b in ((answer, reference), (reference, answer))
        ]


def _winner(outcome: JudgeOutcome[_Choice], reference_first: int) -> str:
    choice = outcome.value[0] if outcome.value else "tie"
    if choice == "tie":
        return "tie"
    return "answer" if (choice == "A") != bool(reference_first) else "reference"


def _read(text: str) -> _Choice:
    reply = only_object(text, ("better",))
    choice = str(reply.get("better")).strip()
    if choice not in _CHOICES:
        raise BadReply(f"expected 'A', 'B' or 'tie' as 'better', found {choice[:80]!r}")
    return choice, reason_in(reply.get("reason"))
