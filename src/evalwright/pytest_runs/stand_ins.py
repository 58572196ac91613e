"""What stands in a stored run for what was in a test."""

from __future__ import annotations

from typing import NoReturn

import msgspec

from evalwright.errors import EvaluatorError, InputError
from evalwright.model.plan import Variant
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace

__all__ = ["TestOutcome", "evaluator", "target"]


def evaluator(name: str) -> NoReturn:
    """For an evaluator that only its test can make. Raises InputError."""
    raise InputError(f"{name!r} lives in a test: run the tests again to judge by it again")


def target(variant: Variant) -> NoReturn:
    """For the system that the tests called. Raises InputError."""
    raise InputError(f"the cells of {variant.name!r} come from tests: run the tests again")


class TestOutcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the test itself ended, which nobody can judge again: `status` is passed, failed, error or skipped."""

    __test__ = False

    status: str
    reason: str = ""

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        if self.status == "error":
            raise EvaluatorError(self.reason, "test_error")
        return Evaluation(self.status == "passed", None, self.reason, skipped=self.status == "skipped")
