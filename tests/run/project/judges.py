"""Evaluators that wait, as those that ask models do."""

import asyncio

import msgspec

from evalwright.errors import EvaluatorError
from evalwright.model.result import Evaluation

most_at_once = 0
_at_once = 0


class Waiting(msgspec.Struct, frozen=True):
    """Waits longer for earlier cases, so that they are judged in another order than they come."""

    calls_models = True

    async def evaluate(self, case, trace):
        global _at_once, most_at_once
        _at_once += 1
        most_at_once = max(most_at_once, _at_once)
        await asyncio.sleep(0.05 - 0.005 * int(case.id[1:]))
        _at_once -= 1
        if trace.output.final_answer == "refuse":
            raise EvaluatorError("no reply", "refused")
        return Evaluation(True, 1.0, cost_usd=0.25, hits=[case.id])
