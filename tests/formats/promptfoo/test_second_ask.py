"""A grader whose reply cannot be read is asked again with the complaint, so often as its provider's `config` says."""

import json

import msgspec
import pytest

from evaluators.scripted_models import Scripted, case, judged, says, trace
from evalwright.errors import EvaluatorError, InputError
from evalwright.formats.loading import load_suite

BAD = says("I would rather not say.", cost_usd=0.25)
KINDS = {
    "llm-rubric": says({"pass": True, "score": 1, "reason": "r"}, cost_usd=0.5),
    "factuality": says({"category": "C"}, cost_usd=0.5),
    "model-graded-closedqa": says("It does.\nY", cost_usd=0.5),
    "context-recall": says("It is on its way. [Attributed]", cost_usd=0.5),
}


def given(kind, models, **config):
    """The result of an assertion whose provider has this `config`."""
    provider = {"id": "openai:gpt-4o", "label": "openai:gpt-4o", "config": config}
    seen = {"prompt": "q", "vars": {"context": "c"}, "output": "On its way."}
    on = msgspec.structs.replace(trace(), extra={"promptfoo": seen})
    config = {"assertion": {"type": kind, "value": "x", "provider": provider}}
    return judged("promptfoo", config, models, on=on, of=case())


@pytest.mark.parametrize("kind", KINDS)
def test_one_complaint_gets_a_verdict(kind):
    models = Scripted(BAD, KINDS[kind])
    evaluation = given(kind, models)
    assert (evaluation.passed, evaluation.cost_usd, len(evaluation.detail["asked_again"])) == (True, 0.75, 1)
    assert [message.role for message in models.requests[1].messages][-2:] == ["assistant", "user"]
    assert evaluation.detail["asked_again"][0] in models.requests[1].messages[-1].content


def test_a_reply_that_can_be_read_is_asked_for_once():
    models = Scripted(KINDS["llm-rubric"])
    assert "asked_again" not in given("llm-rubric", models).detail
    assert len(models.requests) == 1


@pytest.mark.parametrize(("config", "asked"), [({}, 2), ({"replyRetries": 0}, 1), ({"replyRetries": 3}, 4)])
def test_then_it_is_an_error_that_says_what_it_cost(config, asked):
    models = Scripted(BAD)
    with pytest.raises(EvaluatorError) as raised:
        given("llm-rubric", models, **config)
    assert (raised.value.type, raised.value.cost_usd, len(models.requests)) == ("unreadable_reply", 0.25 * asked, asked)
    assert len(raised.value.detail.get("asked_again", [])) == asked - 1


@pytest.mark.parametrize("times", [4, -1, True, "once"])
def test_only_as_many_as_make_sense_are_accepted(tmp_path, times):
    provider = {"id": "openai:gpt-4o", "config": {"replyRetries": times}}
    config = {"prompts": ["q"], "providers": [provider], "tests": [{"vars": {}}]}
    (tmp_path / "promptfooconfig.yaml").write_text(json.dumps(config))
    with pytest.raises(InputError, match="expected a whole number from 0 to 3"):
        load_suite(tmp_path / "promptfooconfig.yaml")
