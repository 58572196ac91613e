"""evalwright tests LLM agents and applications: cases in, traces, results and decisions out.

PYTEST_DONT_REWRITE: without this word pytest warns if this package was imported first.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers know it: importing `typing` would take longer than the rest of this module
if TYPE_CHECKING:
    from typing import Any

    from evalwright.api.again import re_evaluate, resume
    from evalwright.api.cells import Cell
    from evalwright.api.comparisons import Comparison
    from evalwright.api.decide import decide
    from evalwright.api.decisions import Decision
    from evalwright.api.evaluation import aevaluate, evaluate, stream
    from evalwright.api.evaluators import Evaluator, Judge, evaluator
    from evalwright.api.pairs import compare
    from evalwright.api.planning import CasesPlan, plan
    from evalwright.api.runs import Run, open_run
    from evalwright.api.suites import load
    from evalwright.api.summaries import Summary
    from evalwright.api.systems import System
    from evalwright.errors import EvalwrightError, InputError, StorageError
    from evalwright.model.result import Evaluation
    from evalwright.model.result import EvaluationResult as Result
    from evalwright.model.snapshot import Case, Expected
    from evalwright.model.suite import Suite
    from evalwright.model.trace import Answer, ToolCall, Trace

__all__ = [
    "Answer",
    "Case",
    "CasesPlan",
    "Cell",
    "Comparison",
    "Decision",
    "Evaluation",
    "Evaluator",
    "EvalwrightError",
    "Expected",
    "InputError",
    "Judge",
    "Result",
    "Run",
    "StorageError",
    "Suite",
    "Summary",
    "System",
    "ToolCall",
    "Trace",
    "__version__",
    "aevaluate",
    "compare",
    "decide",
    "evaluate",
    "evaluator",
    "load",
    "open_run",
    "plan",
    "re_evaluate",
    "resume",
    "stream",
]

__version__ = "0.1.0"

_PLACES = {
    "Answer": "model.trace",
    "Case": "model.snapshot",
    "CasesPlan": "api.planning",
    "Cell": "api.cells",
    "Comparison": "api.comparisons",
    "Decision": "api.decisions",
    "Evaluation": "model.result",
    "Evaluator": "api.evaluators",
    "EvalwrightError": "errors",
    "Expected": "model.snapshot",
    "InputError": "errors",
    "Judge": "api.evaluators",
    "Result": "model.result:EvaluationResult",
    "Run": "api.runs",
    "StorageError": "errors",
    "Suite": "model.suite",
    "Summary": "api.summaries",
    "System": "api.systems",
    "ToolCall": "model.trace",
    "Trace": "model.trace",
    "aevaluate": "api.evaluation",
    "compare": "api.pairs",
    "decide": "api.decide",
    "evaluate": "api.evaluation",
    "evaluator": "api.evaluators",
    "load": "api.suites",
    "open_run": "api.runs",
    "plan": "api.planning",
    "re_evaluate": "api.again",
    "resume": "api.again",
    "stream": "api.evaluation",
}
"""Where each name is defined. It is imported on first use, so that importing the package stays fast."""


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, _, other = _PLACES[name].partition(":")
    attribute = getattr(import_module(f"{__name__}.{module}"), other or name)
    # In messages, documentation and pickles users see the name by which they import it.
    attribute.__module__, attribute.__name__, attribute.__qualname__ = __name__, name, name
    globals()[name] = attribute
    return attribute


def __dir__() -> list[str]:
    return sorted(__all__)
