"""What evaluators declare to look at is all that they look at, whatever is in cases and traces.

When stored answers are judged again, everything else is left out. An evaluator that is added to a register is tried,
too, unless it asks a model or starts a program.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from any_records import PATHS, cases, traces
from evalwright.errors import InputError
from evalwright.evaluators.build import BuiltEvaluator, build, calls_models, declared, parts_read
from evalwright.evaluators.catalogue import catalogue, describe
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case, Expected
from evalwright.model.trace import Trace
from evalwright.model.trace_parts import trace_with
from evalwright.registry import load

DECLARED = ("uses_case", "expected_keys", "reads")
CHECKS = [
    evaluator.name
    for evaluator in catalogue()
    if any(hasattr(load("evaluators", evaluator.name), key) for key in DECLARED)
    and not declared("evaluators", evaluator.name).imports_code
    and not calls_models(evaluator.name, describe(evaluator.name).example or {})
    and evaluator.group not in ("code", "workspace")
]


OTHERS: dict[str, Any] = {
    "field": PATHS,
    "expected_from": ("answer", "actions"),
    "args_match": ({"order": "{{case.input.text}}"}, {"order": "{{case.expected.facts.answer}}"}),
}
"""Values of keys that lead an evaluator to another part of the trace, or to the case."""


def said(built: BuiltEvaluator, case: Case, trace: Trace) -> Any:
    """What an evaluator makes of a trace, also if that is an error."""
    beside = (None,) if built.traits.uses_artifact or built.traits.uses_results else ()

    async def evaluated() -> Evaluation:
        given: Any = built.evaluate(case, trace, *beside)  # type: ignore[call-arg]
        return await given if inspect.isawaitable(given) else given

    try:
        return msgspec.to_builtins(asyncio.run(evaluated()))
    except Exception as error:
        return type(error), str(error)


@st.composite
def specs(draw: st.DrawFn, name: str) -> EvaluatorSpec:
    """An evaluator with its example as configuration, less some keys, with other paths and flags."""
    described = describe(name)
    config: dict[str, Any] = {}
    for key in described.keys:
        if key.name in OTHERS and draw(st.booleans()):
            config[key.name] = draw(st.sampled_from(OTHERS[key.name]))
        elif isinstance(key.default, bool) and draw(st.booleans()):
            config[key.name] = not key.default
        elif key.name in (described.example or {}) and (key.required or draw(st.booleans())):
            config[key.name] = (described.example or {})[key.name]
    spec = EvaluatorSpec(name, name, config)
    try:
        build(spec)
    except InputError:
        assume(False)
    return spec


@pytest.mark.parametrize("name", CHECKS)
@given(data=st.data())
def test_an_evaluator_looks_at_nothing_but_what_it_declares(name: str, data: st.DataObject) -> None:
    spec, case = data.draw(specs(name)), data.draw(cases())
    one = build(spec)
    line = msgspec.json.encode(data.draw(traces()))
    traits = one.traits
    everything = said(one, case, msgspec.json.decode(line, type=Trace))
    part = msgspec.json.decode(line, type=trace_with(parts_read(spec)))
    if not traits.uses_case:
        case = Case("", None)
    elif traits.expected_keys is not None:
        case = Case("", None, Expected(**{key: getattr(case.expected, key) for key in traits.expected_keys}))
    assert said(one, case, part) == everything


def test_the_checks_that_declare_something_are_found() -> None:
    assert {"answered", "contains_text", "cost_under", "field_check", "skill_transcript", "tool_called"} <= {*CHECKS}
