"""Calls `afterEach` and `afterAll` as a mirror of the run, which gets its records once they are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import copy_context
from typing import Any

from evalwright.formats.promptfoo.before_all import prompts_shown
from evalwright.formats.promptfoo.extensions import AFTER_ALL, AFTER_EACH, BEFORE_ALL, concerned, hooked, test_of
from evalwright.formats.promptfoo.faults import ScriptError
from evalwright.formats.promptfoo.numbering import TestNumbers
from evalwright.formats.promptfoo.result_file import result_column, result_columns, written_result, written_results
from evalwright.formats.promptfoo.values import as_javascript
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.summary import RunSummary
from evalwright.model.trace import Trace

__all__ = ["AfterHooks"]

_READ = ("namedScores", "metadata")
"""What promptfoo takes from the result that `afterEach` returns."""


class AfterHooks:
    """The extensions of a promptfoo configuration: `afterEach` with each result, `afterAll` with all of them.

    Keys: `extensions`, `folder`. In a resumed session `beforeAll` is called again, as what it had started is gone.
    """

    config_keys: tuple[str, ...] = ("extensions", "folder")

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._extensions: list[str] = config["extensions"]
        self._folder: str = config["folder"]
        self._context = copy_context()
        """Of the session: hooks are called in other threads."""
        self._results: dict[tuple[Any, ...], dict[str, Any]] | None = (
            {} if concerned(self._extensions, AFTER_ALL) else None
        )

    def start(self, plan: Plan) -> None:
        self._columns = result_columns(plan)
        self._suite: dict[str, Any] = {
            "description": plan.metadata.get("description"),
            "prompts": prompts_shown(_distinct(plan, "prompt")),
            "providers": [
                {"id": provider["id"], "label": provider["label"]} for provider in _distinct(plan, "provider")
            ],
        }

    def catch_up(self, run: RunReader) -> None:
        tests = [test_of(case) for case in run.cases()]
        if self._results is not None:
            numbers = [TestNumbers(i, 0) for i in range(len(tests))]
            for result in written_results(run, self._columns, numbers):
                self._note(result)
        self._call(BEFORE_ALL, {"suite": {**self._suite, "tests": tests, "defaultTest": {"assert": []}}})

    def cell(self, case: Case, trace: Trace, results: Sequence[EvaluationResult], verdict: CaseVerdict) -> None:
        if verdict.status == "skip":
            return
        seen: Mapping[str, Any] = trace.extra.get("promptfoo", {})
        variables = seen.get("vars", case.input)
        number = trace.case_index or 0  # repeats of a test share it: the other tests are not known here
        result = written_result(
            trace, verdict, [*results], case, number, result_column(self._columns, trace.variant_name)
        )
        if isinstance(variables, dict) and "sessionId" in variables:
            result["metadata"].setdefault("sessionId", variables["sessionId"])
        test = {**test_of(case), "vars": variables}
        result |= {"testCase": test, "vars": variables}
        if self._results is not None:
            self._note(result)
        self._call(AFTER_EACH, {"test": test, "result": result})

    def summary(self, summary: RunSummary) -> None:
        if self._results is None:
            return
        results = [self._results[key] for key in sorted(self._results)]
        native: Mapping[str, Any] = summary.native or {}
        prompts = [
            result_column(self._columns, column["variant"]).described(column) for column in native.get("prompts", ())
        ]
        tests = {result["testIdx"]: result["testCase"] for result in results}
        context = {
            "results": results,
            "prompts": prompts,
            "suite": {**self._suite, "tests": [*tests.values()]},
            "evalId": summary.run_id,
            "config": {"description": self._suite["description"]},
        }
        self._call(AFTER_ALL, context)

    def _note(self, result: dict[str, Any]) -> None:
        assert self._results is not None
        self._results[result["testIdx"], result["promptIdx"], result["repeatIndex"]] = result

    def _call(self, hook: str, context: dict[str, Any]) -> None:
        """Call the extensions at a hook, one after the other. Raises ScriptError."""
        from evalwright.sandbox.workers import awaited_now

        variables: dict[str, str] | None = {} if hook == BEFORE_ALL else None
        work = hooked(self._extensions, self._folder, hook, as_javascript(context), _unchanged_context, variables)
        self._context.copy().run(awaited_now, work)
        if variables:  # the store of a resumed run is open already, and would not mask them
            raise ScriptError(
                f"it set {', '.join(variables)}, which a resumed session does not take: run the suite again"
            )


def _distinct(plan: Plan, key: str) -> list[Any]:
    values: list[Any] = []
    for variant in plan.variants:
        if (value := variant.config.get(key)) not in values and isinstance(value, dict):
            values.append(value)
    return values


def _unchanged_context(context: dict[str, Any], returned: Any) -> dict[str, Any]:
    """The context itself: the result is stored already. Raises ScriptError if a hook returned other scores."""
    result = returned.get("result") if isinstance(returned, Mapping) else None
    if isinstance(result, Mapping) and "result" in context:
        before = context["result"]
        changed = [key for key in _READ if key in result and result[key] != before.get(key)]
        if changed:
            raise ScriptError(f"it returned other {' and '.join(changed)}, which are not read here")
    return context
