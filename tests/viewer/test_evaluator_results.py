"""The rows of a cell's evaluators."""

from __future__ import annotations

import pytest

from evalwright.model.plan import EvaluatorSpec
from evalwright.testing import a_plan
from evalwright.viewer.pages.blocks import Blocks
from evalwright.viewer.pages.evaluator_results import evaluator_results


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        (EvaluatorSpec("e", "llm_judge", {"pass_threshold": 4}), "4"),
        (EvaluatorSpec("e", "similarity", {"threshold": 0.9}, threshold=0.8), "0.8"),
        (EvaluatorSpec("e", "latency", {"threshold": 60_000}), ""),  # milliseconds, and no score
    ],
)
def test_a_threshold_is_the_lowest_score_that_passes(spec: EvaluatorSpec, shown: str) -> None:
    [row] = evaluator_results([{"evaluator": "e", "passed": True}], a_plan(evaluators=[spec]), Blocks(str))
    assert row.threshold == shown
