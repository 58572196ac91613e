"""Assertions on the steps and spans that were traced while a provider ran."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.errors import EvaluatorError
from evalwright.files.key_paths import as_written
from evalwright.files.numbers import is_number
from evalwright.formats.promptfoo.checks.traced_steps import NO_ARGUMENTS, TracedStep, traced_spans, traced_steps
from evalwright.formats.promptfoo.evaluator import AssertionInput, expected_or_forbidden
from evalwright.formats.promptfoo.javascript_operators import number_of
from evalwright.model.result import Evaluation
from evalwright.model.trace import Span

__all__ = [
    "error_spans", "span_count", "span_duration", "step_count", "tool_args_match", "tool_sequence", "tool_used",
]  # fmt: skip

_FLAGS = ("error", "exception", "failed", "failure")
_FAILED = re.compile(r"error|failed|failure|exception|timeout|abort", re.IGNORECASE)


def tool_used(question: AssertionInput) -> Evaluation:
    """All tools in the value were called, or one as often as `min` and `max` say; inverted, none of them was."""
    tools = _tools(question)
    value = question.value
    if isinstance(value, Mapping):
        least, most = _range(value)
        wanted_tool = _as_mapping(value, question.kind)
        count = sum(_matches(step, wanted_tool) for step in tools)
        least = 1 if least is None else least
        wanted = f"{least} to {most}" if most is not None else f"at least {least}"
        message = f"{_label(value)}: called {count} times"
        return question.of(count >= least and (most is None or count <= most), *expected_or_forbidden(message, wanted))
    wanted_tools = [value] if isinstance(value, str) else value
    if (
        not isinstance(wanted_tools, list)
        or not wanted_tools
        or not all(isinstance(tool, str) for tool in wanted_tools)
    ):
        raise _unusable(
            question, f"expected the name of a tool, a list of names or a mapping, found {as_written(value)}"
        )
    called = [any(_matches(step, {"pattern": name}) for step in tools) for name in wanted_tools]
    passed = not any(called) if question.negated else all(called)
    reason = (
        f"called {_listed_tools(tools)}, {'forbidden' if question.negated else 'expected'} {', '.join(wanted_tools)}"
    )
    return Evaluation(passed, float(passed), "" if passed else reason)


def tool_sequence(question: AssertionInput) -> Evaluation:
    """The tools were called in this order, with others between them unless `mode` is `exact`."""
    value = question.value
    settings = {"steps": value} if isinstance(value, list) else value
    if not isinstance(settings, Mapping) or not isinstance(settings.get("steps"), list) or not settings["steps"]:
        raise _unusable(question, f"expected a list of steps, or a mapping with steps, found {as_written(value)}")
    if (mode := settings.get("mode", "in_order")) not in ("in_order", "exact"):
        raise _unusable(question, f"mode: expected in_order or exact, found {as_written(mode)}")
    wanted = [
        _as_mapping({"pattern": step} if isinstance(step, str) else step, question.kind) for step in settings["steps"]
    ]
    tools = _tools(question)
    if mode == "exact":
        fits = len(tools) == len(wanted) and all(map(_matches, tools, wanted))
    else:
        rest = iter(tools)
        fits = all(any(_matches(step, wanted_step) for step in rest) for wanted_step in wanted)
    steps = f"{', '.join(map(_label, wanted))} ({mode})"
    return question.of(fits, *expected_or_forbidden(f"called {_listed_tools(tools)}", steps))


def tool_args_match(question: AssertionInput) -> Evaluation:
    """Some call of the tool had these `args`: at least them, or exactly them, without those in `ignore` and those that
    equal `defaults`."""
    value = question.value
    if not isinstance(value, Mapping) or not {"args", "arguments"} & value.keys():
        raise _unusable(question, f"expected a mapping with name and args, found {as_written(value)}")
    wanted = value["args"] if "args" in value else value["arguments"]
    if (mode := value.get("mode", "partial")) not in ("partial", "exact"):
        raise _unusable(question, f"mode: expected partial or exact, found {as_written(mode)}")
    defaults, ignored = value.get("defaults", {}), value.get("ignore", [])
    ignored = [ignored] if isinstance(ignored, str) else ignored
    if not isinstance(defaults, Mapping):
        raise _unusable(question, f"defaults: expected a mapping, found {as_written(defaults)}")
    if not isinstance(ignored, list) or not all(isinstance(name, str) and name.strip() for name in ignored):
        raise _unusable(question, f"ignore: expected names of arguments, found {as_written(ignored)}")
    matcher = _as_mapping(value, question.kind)
    calls = [step for step in _tools(question) if _matches(step, matcher)]
    arguments = [step.args for step in calls if step.args is not NO_ARGUMENTS]
    expected = _without(wanted, ignored, {})
    fits = _is_equal if mode == "exact" else _contains
    found = any(fits(_without(actual, ignored, defaults), expected) for actual in arguments)
    shown = "; ".join(json.dumps(actual, default=str) for actual in arguments) or (
        "no arguments" if calls else "no call"
    )
    message = f"{_label(value)}: found {shown:.300}"
    return question.of(found, *expected_or_forbidden(message, f"{json.dumps(wanted, default=str):.200}"))


def step_count(question: AssertionInput) -> Evaluation:
    """There were from `min` to `max` steps of this `type` and name."""
    value = question.value
    if not isinstance(value, Mapping) or _range(value) == (None, None):
        raise _unusable(question, f"expected a mapping with min or max, found {as_written(value)}")
    least, most = _range(value)
    count = sum(_matches(step, value) for step in traced_steps(question))
    within = (least is None or count >= least) and (most is None or count <= most)
    return question.of(within, *expected_or_forbidden(f"{count} steps", _wanted_range(least, most)))


def span_count(question: AssertionInput) -> Evaluation:
    """From `min` to `max` spans have a name that fits `pattern`."""
    value = question.value
    if not isinstance(value, Mapping) or not value.get("pattern"):
        raise _unusable(question, f"expected a mapping with pattern, found {as_written(value)}")
    least, most = _range(value)
    count = len(_fitting(question, value))
    passed = (least is None or count >= least) and (most is None or count <= most)
    return _plain_evaluation(passed, f"{count} spans fit {value['pattern']!r}, expected {_wanted_range(least, most)}")


def span_duration(question: AssertionInput) -> Evaluation:
    """The spans, or their `percentile`, took at most `max` ms."""
    value = question.value
    if not isinstance(value, Mapping) or not is_number(value.get("max")):
        raise _unusable(question, f"expected a mapping with max, in milliseconds, found {as_written(value)}")
    share = value.get("percentile", 100)
    if not is_number(share) or not 0 <= share <= 100:
        raise _unusable(question, f"percentile: expected a number from 0 to 100, found {as_written(share)}")
    took = sorted(
        (span.finished_at - span.started_at).total_seconds() * 1000
        for span in _fitting(question, value)
        if span.started_at is not None and span.finished_at is not None
    )
    if not took:
        return Evaluation(True, 1.0)
    duration = took[max(0, math.ceil(share / 100 * len(took)) - 1)]
    return _plain_evaluation(duration <= value["max"], f"{duration:.0f} ms, expected at most {value['max']:g} ms")


def error_spans(question: AssertionInput) -> Evaluation:
    """At most `max_count` spans failed, by default none, or at most `max_percentage` of them."""
    value = question.value
    limits = {"max_count": value} if is_number(value) else value if isinstance(value, Mapping) else {}
    most, share = limits.get("max_count"), limits.get("max_percentage")
    if most is None and share is None:
        most = 0
    spans = _fitting(question, limits)
    failed = [span for span in spans if _has_failed(span)]
    passed = (most is None or len(failed) <= most) and (
        share is None or not spans or 100 * len(failed) / len(spans) <= share
    )
    names = ", ".join(f"{span.name} ({span.error})" if span.error else span.name for span in failed[:3])
    return _plain_evaluation(passed, f"{len(failed)} of {len(spans)} spans failed: {names}")


def _plain_evaluation(passed: bool, reason: str) -> Evaluation:
    """As in promptfoo, `not-` does not invert what is asked of spans."""
    return Evaluation(passed, float(passed), "" if passed else reason)


def _tools(question: AssertionInput) -> list[TracedStep]:
    return [step for step in traced_steps(question) if step.type == "tool"]


def _as_mapping(value: Any, kind: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not (value.get("pattern") or value.get("name")):
        raise EvaluatorError(f"{kind}: expected name or pattern of a step, found {as_written(value)}", "bad_value")
    return value


def _matches(step: TracedStep, wanted: Mapping[str, Any]) -> bool:
    types = wanted.get("type")
    if types and step.type not in (types if isinstance(types, list) else [types]):
        return False
    pattern = wanted.get("pattern") or wanted.get("name")
    return not pattern or any(_fits(name, str(pattern)) for name in step.aliases)


def _fits(name: str, pattern: str) -> bool:
    """Whether a name is the pattern, in which `*` and `?` stand for any characters, in upper or lower case."""
    parts = {"*": ".*", "?": "."}
    written = "".join(parts.get(sign, re.escape(sign)) for sign in pattern)
    return re.fullmatch(written, name, re.IGNORECASE) is not None


def _fitting(question: AssertionInput, value: Mapping[str, Any]) -> list[Span]:
    pattern = str(value.get("pattern") or "*")
    return [span for span in traced_spans(question) if _fits(span.name, pattern)]


def _has_failed(span: Span) -> bool:
    known = span.attributes
    return (
        span.status == "error"
        or any((flag := known.get(key)) is True or flag == "true" or isinstance(flag, (dict, list)) for key in _FLAGS)
        or ((code := known.get("http.status_code")) is not None and number_of(code) >= 400)
        or "ERROR" in (known.get("otel.status_code"), known.get("status.code"))
        or bool(_FAILED.search(span.error or ""))
    )


def _without(args: Any, ignored: Sequence[str], defaults: Mapping[str, Any]) -> Any:
    if not _is_mapping(args):
        return args
    return {
        key: value
        for key, value in args.items()
        if not any(_fits(str(key), pattern) if set("*?") & set(pattern) else key == pattern for pattern in ignored)
        and not (key in defaults and _is_equal(value, defaults[key]))
    }


def _contains(actual: Any, wanted: Any) -> bool:
    """Whether all that is wanted is there; lists have the same length."""
    if isinstance(wanted, list):
        return isinstance(actual, list) and len(actual) == len(wanted) and all(map(_contains, actual, wanted))
    if _is_mapping(wanted):
        return _is_mapping(actual) and all(
            key in actual and _contains(actual[key], value) for key, value in wanted.items()
        )
    return _is_equal(actual, wanted)


def _is_equal(actual: Any, wanted: Any) -> bool:
    """Equality in which true is not 1."""
    if isinstance(wanted, list):
        return isinstance(actual, list) and len(actual) == len(wanted) and all(map(_is_equal, actual, wanted))
    if _is_mapping(wanted):
        return (
            _is_mapping(actual)
            and actual.keys() == wanted.keys()
            and all(_is_equal(actual[k], wanted[k]) for k in wanted)
        )
    return isinstance(actual, bool) == isinstance(wanted, bool) and bool(actual == wanted)


def _range(value: Mapping[str, Any]) -> tuple[float | None, float | None]:
    least, most = (bound if is_number(bound := value.get(key)) else None for key in ("min", "max"))
    return least, most


def _wanted_range(least: float | None, most: float | None) -> str:
    if least is None or most is None:
        return f"at most {most}" if least is None else f"at least {least}"
    return f"{least} to {most}"


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _label(wanted: Mapping[str, Any]) -> str:
    return str(wanted.get("pattern") or wanted.get("name"))


def _listed_tools(steps: Sequence[TracedStep]) -> str:
    return ", ".join(step.name for step in steps) or "no tool"


def _unusable(question: AssertionInput, why: str) -> EvaluatorError:
    return EvaluatorError(f"{question.kind}: {why}", "bad_value")
