"""The rows of a cell's evaluators."""

from __future__ import annotations

import pytest

from evalwright.model.plan import EvaluatorSpec
from evalwright.run.plan import score_rules
from evalwright.testing import a_plan
from evalwright.viewer.pages.blocks import Blocks
from evalwright.viewer.pages.evaluator_results import evaluator_results


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        (EvaluatorSpec("e", "llm_judge", {"model": "openai/m", "rubric": "r", "pass_threshold": 4}), "4"),
        (EvaluatorSpec("e", "semantic_similarity", {"threshold": 0.9}, threshold=0.7), "0.7"),
        (EvaluatorSpec("e", "semantic_similarity"), "0.8"),
        (EvaluatorSpec("e", "contains_text", threshold=0.7, threshold_op="lt"), ""),  # no score is the lowest
        (EvaluatorSpec("e", "latency", {"threshold": 60_000}), ""),  # milliseconds, and no score
    ],
)
def test_a_threshold_is_the_lowest_score_that_passes(spec: EvaluatorSpec, shown: str) -> None:
    [row] = evaluator_results(
        [{"evaluator": "e", "passed": True}], a_plan(evaluators=[spec], score_rules=score_rules([spec])), Blocks(str)
    )
    assert row.threshold == shown


def test_what_a_judge_cost_is_told_as_everywhere() -> None:
    call = {"model": "m", "messages": [], "reply": "{}", "cost_usd": 0.000096, "latency_ms": 43}
    result = {"evaluator": "e", "passed": True, "detail": {"judge_calls": [call]}}
    [row] = evaluator_results([result], a_plan(evaluators=[EvaluatorSpec("e", "llm_judge")]), Blocks(str))
    assert row.calls[0].facts == "$0.00010 · 43 ms"
