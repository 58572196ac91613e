"""How functions of all shapes are called, and what becomes of what they give back."""

import asyncio
import functools

import pytest

from evalwright.errors import InputError, TargetError
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.session.named_objects import with_objects
from evalwright.targets.python_function import PythonFunction

CASE = Case("c1", {"word": "ha"}, tags=["t"])


def target_for(function, config=None, **fields):
    with with_objects({"here:it": function}):
        return PythonFunction(Variant("v", "python_function", {"target": "here:it", **(config or {})}, **fields))


def answer(function, trial=0, **fields):
    target = target_for(function, {"times": 2}, **fields)

    async def call():
        await target.open()
        try:
            return await target.run(CASE, trial)
        finally:
            await target.close()

    return asyncio.run(call())


def says(function, trial=0):
    reply = answer(function, trial)
    assert reply.error is None, reply.error
    return reply.output.final_answer


class Agent:
    def __call__(self, text):
        return text["word"]

    def method(self, text):
        return text["word"]


class AsyncAgent:
    async def __call__(self, text):
        return text["word"]


async def awaits(text):
    await asyncio.sleep(0)
    return text["word"]


def wants_more(prompt, text):
    return prompt + text["word"]


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda text: text["word"], "ha"),
        (lambda text, *, model="m": text["word"] + model, "ham"),
        (lambda text, model="m": text["word"] + model, "ham"),
        (lambda text="x": text["word"], "ha"),
        (lambda *, text: text["word"], "ha"),
        (lambda case: case.input["word"] + case["id"], "hac1"),
        (lambda case: str(case.expected.must_call_tools), "[]"),
        (lambda example, settings: example["input"]["word"] * settings["config"]["times"], "haha"),
        (lambda case, variant: case["input"]["word"] * variant["config"]["times"], "haha"),
        (lambda case, variant=None: case["input"]["word"] * variant.config["times"], "haha"),
        (lambda *both: both[0]["input"]["word"] * both[1]["config"]["times"], "haha"),
        (lambda text, trial: f"{text['word']}{trial}", "ha3"),
        (lambda text, case: text["word"] + case.id, "hac1"),
        (lambda text, *, variant: text["word"] * variant.config["times"], "haha"),
        (lambda case, variant, trial: f"{case.id}{variant.name}{trial}", "c1v3"),
        (functools.partial(wants_more, "oh "), "oh ha"),
        (functools.partial(wants_more, prompt="oh "), "oh ha"),
        (Agent(), "ha"),
        (Agent().method, "ha"),
        (AsyncAgent(), "ha"),
        (awaits, "ha"),
        (functools.partial(awaits), "ha"),
        (lambda text: awaits(text), "ha"),
        (str, "{'word': 'ha'}"),
    ],
)
def test_a_function_gets_what_its_parameters_ask_for(function, said):
    assert says(function, 3) == said


@pytest.mark.parametrize("function", [lambda: "x", lambda a, b, c: "x", lambda trial, a, b: "x"])
def test_other_shapes_are_refused_before_anything_runs(function):
    with pytest.raises(InputError, match="expected a function of one parameter"):
        target_for(function)


def test_each_call_gets_data_of_its_own():
    def changes(text):
        text["word"] += "!"
        return text["word"]

    assert (says(changes), says(changes)) == ("ha!", "ha!")


def yields(text):
    yield text["word"]
    yield "!"


async def yields_later(text):
    yield text["word"]
    await asyncio.sleep(0)
    yield "!"


@pytest.mark.parametrize("function", [yields, yields_later, lambda text: yields_later(text)])
def test_what_a_generator_yields_is_joined_and_timed(function):
    reply = answer(function)
    assert reply.output.final_answer == "ha!"
    assert (reply.metrics.stream_chunks, reply.metrics.stream_completed) == (2, True)
    assert 0 <= reply.metrics.latency_first_token_ms <= reply.metrics.latency_last_token_ms


def test_what_a_generator_returns_besides_its_pieces_is_not_lost():
    def returns_too(text):
        yield "ha!"
        return {"tool_calls": [{"name": "look"}]}

    with pytest.raises(TargetError, match="also returns dict"):
        answer(returns_too)


def test_an_error_names_the_innermost_line_of_user_code():
    def fails(text):
        return {}[text["word"]]

    error = answer(fails).error
    line = fails.__code__.co_firstlineno + 1
    assert (error.type, error.message) == ("adapter_error", f"KeyError: 'ha' in test_python_function.py:{line}")


def test_a_library_that_raises_is_not_the_place():
    import json

    def fails(text):
        return json.loads("{")

    assert f"in test_python_function.py:{fails.__code__.co_firstlineno + 1}" in answer(fails).error.message


def test_a_function_without_a_name_says_which_to_pass():
    with pytest.raises(InputError, match="resume=True"):
        PythonFunction(Variant("v", "python_function", {"target": "somewhere:<lambda>"}))


def test_objects_are_seen_by_their_own_run_only():
    async def both():
        async def one(value):
            with with_objects({"here:it": lambda text: value}):
                await asyncio.sleep(0)
                target = PythonFunction(Variant("v", "python_function", {"target": "here:it"}))
                await target.open()
                return (await target.run(CASE, 0)).output.final_answer

        return await asyncio.gather(one("a"), one("b"))

    assert asyncio.run(both()) == ["a", "b"]


@pytest.mark.parametrize(
    "function",
    [lambda case, variant: "text", lambda example, settings: "text", lambda *both: "text"],
)
def test_where_only_mappings_are_allowed_text_of_a_case_and_a_variant_is_an_error(function):
    with pytest.raises(TargetError, match=r"a mapping \(a dict .*, found str \(.*leave out --format evalh"):
        answer(function, evalh_rules=True)
    assert answer(function).output.final_answer == "text"


@pytest.mark.parametrize("function", [lambda text: "text", lambda case: "text", lambda text, trial: iter(["te", "xt"])])
def test_a_function_of_the_input_may_return_text_everywhere(function):
    assert answer(function, evalh_rules=True).output.final_answer == "text"


def test_a_mapping_is_an_answer_where_only_mappings_are_allowed():
    assert answer(lambda case, variant: {"final_answer": "text"}, evalh_rules=True).output.final_answer == "text"
    made = target_for(lambda prefix: lambda case, variant: prefix, {"init_kwargs": {"prefix": "a"}}, evalh_rules=True)
    asyncio.run(made.open())
    with pytest.raises(TargetError, match="found str"):
        asyncio.run(made.run(CASE, 0))


class CutShort(Exception):
    final_answer = "half of it"


def cut_short(text):
    raise CutShort("no more")


def test_a_function_that_raises_may_leave_a_partial_answer():
    reply = answer(cut_short)
    assert (reply.output.final_answer, reply.error.message.startswith("CutShort: no more")) == ("half of it", True)


class Graph:
    """An agent like those of LangGraph: it is invoked, not called."""

    def invoke(self, state):
        return state


def test_an_object_that_is_invoked_is_refused_with_what_to_write():
    with pytest.raises(InputError, match="not callable; name a function that calls its `invoke`"):
        target_for(Graph())
