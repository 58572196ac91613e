"""Marked points of an application, inside and outside of a test."""

import asyncio
import contextvars

import pytest

from evalwright.capture.values import served, stored
from evalwright.capture.wrap import WrapRegistryMissError, init_eval_output, set_eval_input, wrap


def inside(values, function):
    def body():
        set_eval_input(values)
        outputs = init_eval_output()
        return function(), outputs

    return contextvars.copy_context().run(body)


def test_outside_of_a_test_data_is_returned_itself():
    data = {"a": 1}
    assert all(wrap(data, purpose=purpose, name="x") is data for purpose in ("input", "output", "state"))


def test_an_input_is_served_in_place_of_the_call():
    def real():
        raise AssertionError("the real thing was called")

    value, _ = inside({"db": [1]}, lambda: wrap(real, purpose="input", name="db")())
    assert value == [1]


def test_an_input_without_a_value_is_named():
    with pytest.raises(WrapRegistryMissError, match="profile"):
        inside({}, lambda: wrap(1, purpose="input", name="profile"))


def test_outputs_and_states_are_kept_in_order_with_their_purpose():
    def app():
        wrap(lambda: 1, purpose="output", name="a")()
        wrap("s", purpose="state", name="b")

    _, outputs = inside({}, app)
    assert [(output["name"], output["value"], output["purpose"]) for output in outputs] == [
        ("a", 1, "output"),
        ("b", "s", "state"),
    ]


class Asked:
    async def __call__(self):
        return "real"


async def asked():
    return "real"


@pytest.mark.parametrize("real", [asked, Asked()], ids=["function", "object"])
def test_of_an_asynchronous_call_what_it_awaits_is_served_and_kept(real):
    async def app():
        return await wrap(real, purpose="input", name="in")(), await wrap(real, purpose="output", name="out")()

    found, outputs = inside({"in": "given"}, lambda: asyncio.run(app()))
    assert (found, [output["value"] for output in outputs]) == (("given", "real"), ["real"])


def test_an_unknown_purpose_is_refused():
    with pytest.raises(ValueError, match="side"):
        wrap(1, purpose="side", name="x")


def test_capture_reaches_tasks_and_threads():
    async def app():
        await asyncio.to_thread(wrap, 1, purpose="output", name="thread")
        await asyncio.create_task(later())

    async def later():
        wrap(2, purpose="output", name="task")

    _, outputs = inside({}, lambda: asyncio.run(app()))
    assert [output["value"] for output in outputs] == [1, 2]


@pytest.mark.parametrize("value", [(1, 2), {3}, [(1,), {"k": (2,)}]])
def test_tuples_and_sets_survive(value):
    assert served(stored(value)) == value


def test_a_class_that_a_file_names_is_not_imported():
    assert served({"py/object": "os.system", "tier": "gold"}) == {"tier": "gold"}
