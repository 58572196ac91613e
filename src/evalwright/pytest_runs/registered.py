"""Records that replace, in a stored run, objects that existed only in the test."""

from __future__ import annotations

from typing import Any, NoReturn

import msgspec

from evalwright.errors import EvaluatorError, InputError
from evalwright.model.plan import Variant
from evalwright.model.result import Evaluation, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace, TraceError

__all__ = ["StoredResult", "TestOutcome", "config_of_result", "target"]


def target(variant: Variant) -> NoReturn:
    """The target for a system that was called by tests. Raises InputError."""
    raise InputError(f"the cells of {variant.name!r} come from tests: run the tests again")


def config_of_result(result: EvaluationResult) -> dict[str, Any]:
    """The configuration of an evaluator that returns the same result again."""
    document: dict[str, Any] = msgspec.to_builtins(
        {name: getattr(result, name) for name in StoredResult.__struct_fields__}
    )
    return document


class StoredResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The result of an evaluator that only its test can build: re-evaluation keeps it unchanged."""

    uses_case = False

    passed: bool
    score: float | None = None
    reason: str = ""
    detail: dict[str, Any] = {}
    skipped: bool = False
    error: TraceError | None = None

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        if self.error is not None:
            raise EvaluatorError(self.error.message, self.error.type, self.detail)
        return Evaluation(self.passed, self.score, self.reason, self.detail, self.skipped)


class TestOutcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the test itself ended, which re-evaluation cannot change: `status` is passed, failed, error or skipped."""

    __test__ = False

    status: str
    reason: str = ""

    def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        if self.status == "error":
            raise EvaluatorError(self.reason, "test_error")
        return Evaluation(self.status == "passed", None, self.reason, skipped=self.status == "skipped")
