"""Keys of an original that reading it passes over: nothing holds them, so nothing can write them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evalwright.errors import Problem
from evalwright.model.suite import Suite

__all__ = ["unread_keys"]

_PASSED_OVER = ("nothing reads", "unknown key")
"""How warnings of the formats name keys that nobody reads."""
_AGENTV = {
    "": {
        "name", "dataset", "description", "evalcases", "eval_cases", "cases", "tests", "execution", "target",
        "metadata", "tags", "assert", "assertions",
    },
    "execution": {"target", "timeout_seconds", "evaluators"},
    "case.execution": {"target", "timeout_seconds", "evaluators", "skip_defaults"},
}  # fmt: skip
_LETTA_TARGET = {
    "kind", "backend", "callable", "function", "endpoint", "url", "model", "path", "agent_id", "agent_script",
    "model_handles", "model_configs", "timeout", "max_retries",
}  # fmt: skip
_LETTA_GRADER = ("display_name", "agent_file", "agent_id", "judge_tool_name")
_PIXIE = {
    "": {"name", "runnable", "evaluators", "entries", "items"},
    "entry": {
        "entry_kwargs", "input_data", "eval_input", "description", "expectation", "expected_output", "eval_metadata",
        "evaluators",
    },
}  # fmt: skip


def unread_keys(suite: Suite) -> Iterator[Problem]:
    """One problem for each such key, with its path."""
    told = set()
    for problem in (*suite.warnings, *getattr(suite.cases, "unknown_keys", tuple)()):
        if any(words in problem.message for words in _PASSED_OVER):
            told.add(problem.key)
            yield Problem("suite", problem.message, key=problem.key)
    finder = {"agentv": _agentv, "evalh": _evalh, "letta": _letta, "pixie": _pixie}.get(suite.dialect)
    for key in finder(suite.document) if finder is not None else ():
        if key not in told:
            yield Problem("suite", "has no effect here", key=key)


def _strangers(value: Any, known: set[str], place: str) -> Iterator[str]:
    for key in value if isinstance(value, dict) else ():
        if key not in known:
            yield f"{place}{key}"


def _agentv(document: dict[str, Any]) -> Iterator[str]:
    yield from _strangers(document, _AGENTV[""], "")
    yield from _strangers(document.get("execution"), _AGENTV["execution"], "execution.")
    for name in ("evalcases", "eval_cases", "cases", "tests"):
        cases = document.get(name)
        for i, case in enumerate(cases if isinstance(cases, list) else ()):
            execution = case.get("execution") if isinstance(case, dict) else None
            yield from _strangers(execution, _AGENTV["case.execution"], f"{name}[{i}].execution.")


def _evalh(document: dict[str, Any]) -> Iterator[str]:
    head = document.get("eval") or {}
    yield from (f"eval.{key}" for key in ("owner", "tags") if head.get(key))
    if (document.get("trace") or {}).get("capture"):
        yield "trace.capture"
    first = (document.get("output") or [{}])[0]
    if (first.get("type"), first.get("path")) != ("local_files", "runs"):
        yield "output[0]"


def _letta(document: dict[str, Any]) -> Iterator[str]:
    if "sandbox" in document:
        yield "sandbox"
    target = document.get("target")
    used = _LETTA_TARGET | ({"base_url"} if isinstance(target, dict) and target.get("kind") == "openai" else set())
    yield from _strangers(target, used, "target.")
    graders = document.get("graders") or {"default": document.get("grader")}
    for name, grader in graders.items() if isinstance(graders, dict) else ():
        yield from (f"graders.{name}.{key}" for key in _LETTA_GRADER if isinstance(grader, dict) and key in grader)


def _pixie(document: dict[str, Any]) -> Iterator[str]:
    for dataset in document.get("datasets", ()):
        yield from _strangers(dataset, _PIXIE[""], "")
        for name in ("entries", "items"):
            entries = dataset.get(name)
            for i, entry in enumerate(entries if isinstance(entries, list) else ()):
                yield from _strangers(entry, _PIXIE["entry"], f"{name}[{i}].")
