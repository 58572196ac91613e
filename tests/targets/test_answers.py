"""What a Python target may return as an answer, and what is rejected."""

import dataclasses
import re

import msgspec
import pydantic
import pytest

from evalwright.errors import TargetError
from evalwright.model.trace import Answer, Output, ToolCall
from evalwright.targets.answers import answer_of


@pytest.mark.parametrize(
    ("returned", "found"), [(None, "NoneType"), (3, "int"), ([1], "list"), (object(), "object"), (b"text", "bytes")]
)
def test_what_is_no_answer_is_refused_by_its_type(returned, found):
    with pytest.raises(TargetError, match=rf"found {found}; e\.g\. return \"text\""):
        answer_of(returned)


def test_a_refused_answer_names_the_place_of_the_function():
    with pytest.raises(TargetError, match=r"found NoneType \(test_answers\.py:\d+\)"):
        answer_of(None, test_a_refused_answer_names_the_place_of_the_function)


def test_a_text_is_the_answer():
    assert answer_of("done") == Answer(output=Output(final_answer="done"))


def test_an_answer_is_taken_as_it_is():
    answer = Answer(output=Output(final_answer="done"))
    assert answer_of(answer) == answer


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (Answer.of("x", tool_calls=[ToolCall("look", {"day": 1})]), "tool_calls[0].id"),  # type: ignore[arg-type]
        (Answer.of(5), "output.final_answer"),  # type: ignore[arg-type]
        (Answer.of("x", cost_usd="0.01"), "metrics.cost_usd"),  # type: ignore[arg-type]
        (Answer.of("x", tokens_in=1.5), "metrics.token_input"),  # type: ignore[arg-type]
        (Answer.of("x", extra={"it": object()}), "type object"),
        (Answer.of("x\ud800"), "surrogates"),
    ],
)
def test_an_answer_that_no_reader_could_read_back_is_an_error(answer: Answer, named: str):
    with pytest.raises(TargetError, match=re.escape(named)):
        answer_of(answer)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (
            {"answer": "yes"},
            "nothing reads the key 'answer', as other values belong under extra; did you mean \"final_answer\"?",
        ),
        (
            {"final_answer": "x", "metrics": {"token_inputs": 3}},
            "nothing reads the key 'token_inputs' in metrics, as other numbers belong under custom; "
            'did you mean "token_input"?',
        ),
        (
            {"final_answer": "x", "tool_calls": ["f", {"name": "f", "tool": "g"}]},
            "nothing reads the key 'tool' in tool_calls[1] (known: args, arguments, custom, function, id, input, name, "
            "started_at, type)",
        ),
        ({"final_answer": "x", "tool_calls": [{"arguments": {}}]}, "tool_calls[0] has no 'name'"),
        (
            {"final_answer": "x", "tool_results": [{"result": 1}]},
            "nothing reads the key 'result' in tool_results[0] (known: content, name, role, tool_call_id)",
        ),
    ],
)
def test_keys_that_nothing_reads_are_rejected_by_name(returned, message):
    with pytest.raises(TargetError) as raised:
        answer_of(returned)
    assert str(raised.value) == message


def test_every_key_that_nothing_reads_is_reported():
    with pytest.raises(TargetError, match=r"'label'.*'score'"):
        answer_of({"final_answer": "x", "label": "spam", "score": 1})


@pytest.mark.parametrize(
    "returned",
    [{}, {"final_answer": None}, {"thinking": "hm"}, {"tool_calls": [], "extra": {}}],
)
def test_a_mapping_that_answers_nothing_is_refused_unless_it_may(returned):
    with pytest.raises(TargetError, match=r"no answer: .*test_answers\.py.*allow_missing"):
        answer_of(returned, test_a_mapping_that_answers_nothing_is_refused_unless_it_may)
    assert answer_of(returned, optional=["final_answer"]).output.final_answer is None
    assert answer_of(returned, evalh_rules=True).output.final_answer is None


def test_what_a_call_without_an_answer_has_cost_is_kept():
    answer = answer_of({"final_answer": None, "metrics": {"cost_usd": 0.5}})
    assert answer.error.message.startswith("no answer: final_answer is None")
    assert answer.metrics.cost_usd == 0.5


@pytest.mark.parametrize(
    "returned",
    [{"final_answer": ""}, {"structured": {}}, {"tool_calls": ["f"]}, {"messages": [{"role": "tool", "content": "x"}]}],
)
def test_an_empty_text_and_what_was_done_are_answers(returned):
    answer = answer_of(returned)
    parts = {
        "final_answer": answer.output.final_answer, "structured": answer.output.structured,
        "tool_calls": [call.name for call in answer.tool_calls],
        "messages": [{"role": message.role, "content": message.content} for message in answer.messages],
    }  # fmt: skip
    assert {name: parts[name] for name in returned} == returned


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        ({"label": "spam", "score": 0.9}, None),
        ({"answer": "yes", "text": "no"}, "yes"),
        ({"output": {"a": 1}, "content": "c"}, "c"),
    ],
)
def test_where_any_mapping_is_taken_one_without_known_keys_is_structured(returned, text):
    assert answer_of(returned, any_mapping=True).output == Output(final_answer=text, structured=returned)
    with pytest.raises(TargetError, match="'answer'"):
        answer_of({"final_answer": "x", "answer": "y"}, any_mapping=True)


def test_by_evalh_s_rules_other_keys_are_ignored():
    assert answer_of({"final_answer": "a", "answer": "x", "metrics": {"n": 1}}, evalh_rules=True).output == Output("a")


def test_objects_with_declared_fields_are_mappings():
    @dataclasses.dataclass
    class Plain:
        final_answer: str
        thinking: str = "hm"

    class Checked(pydantic.BaseModel):
        final_answer: str
        thinking: str = "hm"

    class Packed(msgspec.Struct):
        final_answer: str
        thinking: str = "hm"

    class Other(pydantic.BaseModel):
        reply: str

    assert [answer_of(kind("x")).output for kind in (Plain, Packed)] == [Output("x", "hm")] * 2
    assert answer_of(Checked(final_answer="x")).output == Output("x", "hm")
    with pytest.raises(TargetError, match="'reply'"):
        answer_of(Other(reply="x"))
