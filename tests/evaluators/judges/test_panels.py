"""Several models as one judge."""

from __future__ import annotations

from evaluators.scripted_models import Scripted, fails, holds, judged, says
from evalwright.model.chat import ChatReply


def panel(**replies: ChatReply | Exception) -> Scripted:
    return Scripted(by=lambda request: replies[request.model.partition("/")[2]])


PANEL = {"models": ["openai/one", "openai/two", "openai/three"], "nl_assertions": ["a"]}


def test_a_panel_asks_every_model_and_keeps_their_votes() -> None:
    evaluation = judged("llm_judge", PANEL, panel(one=holds(True), two=holds(False), three=holds(True)))
    assert evaluation.passed
    assert evaluation.detail["judge_model"] == "openai/one, openai/two, openai/three"
    assert [vote["passed"] for vote in evaluation.detail["votes"]] == [True, False, True]


def test_a_judge_without_a_word_is_borne_when_it_cannot_turn_the_majority() -> None:
    evaluation = judged("llm_judge", PANEL, panel(one=holds(True), two=says("hm"), three=holds(True)))
    assert (evaluation.passed, evaluation.detail["agreement"]) == (True, 2 / 3)
    assert "error" in evaluation.detail["votes"][1]


def test_a_judge_without_a_word_is_an_error_when_it_could_turn_the_majority() -> None:
    error = fails("llm_judge", PANEL, panel(one=holds(True), two=says("hm"), three=holds(False)))
    assert "openai/two" in str(error)
    assert [vote.get("passed") for vote in error.detail["votes"]] == [True, None, False]


def test_the_mean_needs_every_judge() -> None:
    models = panel(one=holds(True), two=says("hm"), three=holds(True))
    assert "openai/two" in str(fails("llm_judge", {**PANEL, "combine": "mean"}, models))


def test_no_judge_has_a_word() -> None:
    assert fails("llm_judge", PANEL, panel(one=says("?"), two=says("?"), three=says("?"))).type == "adapter_error"
