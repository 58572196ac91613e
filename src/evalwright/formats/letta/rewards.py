"""The reward of a sample, from a function in a user's file."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

from pydantic import ValidationError

from evalwright.errors import EvaluatorError
from evalwright.evaluators.conversation.turns import blocks_of, turns_of
from evalwright.formats.letta.functions import final_state_of, function_at
from evalwright.formats.letta.rows import grade_of, sample_timing, sample_usage
from evalwright.formats.letta.surface.messages import trajectory_of
from evalwright.formats.letta.surface.models import GradeResult, RewardOutput, sample_of
from evalwright.formats.letta.surface.results import RewardContext, Timing, Usage
from evalwright.formats.letta.totals import grades_of
from evalwright.formats.shared.findings import joined_mistakes
from evalwright.model.result import Evaluation, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["PythonReward"]


class PythonReward:
    """A `@reward_composer` function: one score for a sample, made from all its grades. `function` is `path.py:name`.

    It is not called for a sample with a missing grade: a grader that failed has measured nothing, not 0, and neither
    has a first grader that found nothing to grade.
    """

    uses_results = True

    imports_code = True

    def __init__(self, function: str) -> None:
        self._function = function_at(function, "reward_composer", "reward")

    async def evaluate(self, case: Case, trace: Trace, results: Sequence[EvaluationResult]) -> Evaluation:
        counted = grades_of(results, first=results[0].evaluator if results else "")
        if counted is None:
            failed = ", ".join(repr(row.evaluator) for row in results if row.error is not None)
            raise EvaluatorError(f"no reward, because grades are missing: {failed}", "not_measured")
        used = sample_usage(trace)
        context = RewardContext(
            sample=sample_of(case),
            grades={row.evaluator: GradeResult(**grade_of(row, counted[row.evaluator])) for row in results},
            submissions={row.evaluator: row.detail.get("submission", "") for row in results},
            trajectory=trajectory_of(turns_of(trace)),
            agent_id=trace.extra.get("agent_id"),
            model_handle=trace.extra.get("model"),
            agent_state=final_state_of(blocks_of(trace)),
            usage=None if used is None else Usage(**used),
            timing=Timing(**sample_timing(trace, {row.evaluator: row.latency_ms / 1000 for row in results})),
        )
        try:
            given = self._function(context)
            given = await given if isinstance(given, Awaitable) else given
        except Exception as error:
            raise EvaluatorError(
                f"the reward composer raised {type(error).__name__}: {error}", "grader_error"
            ) from error
        try:
            returned = {"score": given} if given is None or isinstance(given, (int, float)) else given
            reward = RewardOutput.model_validate(returned, from_attributes=True)
        except ValidationError as error:
            raise EvaluatorError(
                f"the reward composer returned no reward: {joined_mistakes(error)}", "grader_error"
            ) from error
        return Evaluation(True, reward.score, "", {"metadata": reward.metadata} if reward.metadata else {})
