"""Whatever an application hands over is stored as JSON, and never makes it fail."""

import contextvars
import json
from enum import Enum, StrEnum

import pytest

from evalwright.capture.listeners import listening
from evalwright.capture.observations import observe, start_observation
from evalwright.capture.values import JsonText, stored
from evalwright.capture.wrap import init_eval_output, wrap


class Unreadable:
    __slots__ = ()

    def __repr__(self):
        raise RuntimeError("no text")


class Dumps:
    def model_dump(self, mode):
        raise SystemExit(3)


class Fields:
    @property
    def __dict__(self):
        raise KeyError("x")


class Key:
    def __str__(self):
        raise ValueError("no key")


class Node:
    def __init__(self):
        self.parent = self.child = self


def linked():
    """A chain of objects each of which knows its neighbours."""
    nodes = [Node() for _ in range(30)]
    for node in nodes:
        node.others = nodes
    return nodes[0]


def shared():
    """A list that holds another twice, sixty times over."""
    value = [1]
    for _ in range(60):
        value = [value, value]
    return value


HOSTILE = {
    "without a text": Unreadable,
    "whose dump raises": Dumps,
    "whose fields raise": Fields,
    "with a key without a text": lambda: {Key(): 1},
    "with an integer too long to be written": lambda: [10**5000],
    "with half a character": lambda: {"\ud800": "\udfff"},
    "that contains itself": Node,
    "that refer to each other": linked,
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_an_application_does_not_fail_because_of_values(make):
    value = make()

    @observe()
    def step(given):
        return given

    with listening() as heard:
        assert step(value) is value
    for said in (heard.spans[0].input, heard.spans[0].output):
        json.loads(said)
        assert said.encode()

    outputs = contextvars.copy_context().run(lambda: (init_eval_output(), wrap(value, purpose="state", name="x"))[0])
    assert json.dumps(outputs, ensure_ascii=False).encode()


def test_a_value_shared_over_and_over_is_stored_to_a_hundred_thousand_lists():
    assert JsonText.of(shared()).count("[") == 100_000


def test_an_unreadable_part_is_noted_beside_everything_else():
    kept_values = stored({"good": (1, "a"), "bad": Unreadable(), "self": Node(), "half": "a\ud800"})
    assert kept_values == {
        "good": {"py/tuple": [1, "a"]},
        "bad": "(Unreadable that cannot be stored: RuntimeError)",
        "self": {"py/object": f"{__name__}.Node", "parent": repr(Node), "child": repr(Node)},
        "half": "a\ufffd",
    }


def test_a_value_that_is_there_twice_is_stored_twice():
    inner = [1]
    assert stored([inner, inner]) == [[1], [1]]
    assert JsonText.of({"a": inner, "b": inner}) == '{"a": [1], "b": [1]}'


def test_a_step_may_end_in_another_context_than_it_began_in():
    def steps():
        with start_observation(input=1, name="step"):
            yield 1

    with listening() as heard:
        running = steps()
        contextvars.copy_context().run(next, running)
        running.close()
    assert [span.name for span in heard.spans] == ["step"]


def test_members_of_enumerations_are_stored_as_their_values():
    plain, text = Enum("Plain", {"RED": (1, 2)}), StrEnum("Text", {"RED": "red"})
    assert stored([plain.RED, text.RED]) == [{"py/tuple": [1, 2]}, "red"]


@pytest.mark.parametrize(
    "colour",
    [Enum("Plain", {"RED": "red"}), Enum("Mixed", {"RED": "red"}, type=str), StrEnum("Text", {"RED": "red"})],
    ids=["plain", "str", "StrEnum"],
)
def test_keys_that_are_members_of_enumerations_are_stored_as_their_values(colour):
    assert stored({colour.RED: 1}) == {"red": 1}
