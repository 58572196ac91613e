"""Cases whose questions go on from what the system answered, and assertions that stand in files of their own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from evalwright.formats.agentv.report import AgentvResults
from evalwright.formats.loading import load_suite
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.suite import Suite
from evalwright.model.trace import Trace
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run

MEMORY = """\
def said(asked):
    texts = [message["content"] for message in asked["messages"]]
    return f"{len(texts)} messages, last {texts[-1]}, first {texts[0]}"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "memory.py").write_text(MEMORY)
    targets = [
        {"name": "default", "provider": "python", "callable": "memory:said", "judge_target": "judge"},
        {"name": "judge", "provider": "cli", "command": [sys.executable, "judge.py"]},
        {"name": "echo", "provider": "cli", "command": "echo {EVAL_ID} {PROMPT}"},
    ]
    (tmp_path / "targets.yaml").write_text(json.dumps({"targets": targets}))
    return tmp_path


def load(folder: Path, case: dict[str, Any], **head: Any) -> Suite:
    whole = {"id": "a", "mode": "conversation", "input": [{"role": "system", "content": "You count."}], **case}
    (folder / "suite.eval.yaml").write_text(json.dumps({"name": "suite", "tests": [whole], **head}))
    return load_suite(folder / "suite.eval.yaml", "agentv")


def ran(suite: Suite) -> tuple[CaseVerdict, EvaluationResult, Trace]:
    reader, _ = open_run(run_suite(suite, RunOptions(out=suite.source.parent / "runs")).run_dir)
    return (
        next(iter(reader.verdicts(CaseVerdict))),
        next(iter(reader.results(EvaluationResult))),
        next(iter(reader.traces(Trace))),
    )


def holds(value: str, **more: Any) -> dict[str, Any]:
    return {"type": "contains", "value": value, **more}


def test_each_turn_goes_on_from_the_answers_and_has_checks_of_its_own(folder: Path) -> None:
    turns = [
        {"input": "one", "assert": [holds("2 messages, last one, first You count.")]},
        {"input": "two", "assert": [holds("4 messages"), holds("gone")]},
        {"input": "three"},
    ]
    whole = [holds("user: one"), holds("assistant: 6 messages")]
    verdict, result, trace = ran(load(folder, {"turns": turns, "assert": whole}))
    assert verdict.score == pytest.approx((1 + 0.5 + 1 + 1) / 4)
    children = result.detail["children"]
    assert [(child["evaluator"], child["score"]) for child in children] == [
        ("turn-1", 1.0), ("turn-2", 0.5), ("turn-3", 1.0), ("conversation", 1.0),
    ]  # fmt: skip
    assert trace.output.final_answer == "6 messages, last three, first You count."
    assert "[turn-2] " in result.misses[0]


@pytest.mark.parametrize(("way", "score"), [("min", 0.0), ("max", 1.0), ("mean", 0.5)])
def test_scores_of_turns_are_put_together_as_the_case_says(folder: Path, way: str, score: float) -> None:
    turns = [{"input": "one", "assert": [holds("one")]}, {"input": "two", "assert": [holds("gone")]}]
    assert ran(load(folder, {"turns": turns, "aggregation": way}))[0].score == score


def test_what_follows_a_turn_that_failed_may_count_as_failed(folder: Path) -> None:
    failing = {"input": "one", "assertions": [holds("gone", required=True), holds("one", weight=9)]}
    turns = [failing, {"input": "two", "assert": [holds("two")]}]
    assert ran(load(folder, {"turns": turns}))[0].score == 0.5
    assert ran(load(folder, {"turns": turns, "on_turn_failure": "stop"}))[0].score == 0.0


def test_a_conversation_that_stops_is_judged_as_far_as_it_went(folder: Path) -> None:
    turns = [{"input": "one", "assert": [holds("gone")]}, {"input": "two"}]
    stopped = {"turns": turns, "on_turn_failure": "stop", "assert": [holds("user: one"), holds("user: two")]}
    children = ran(load(folder, stopped))[1].detail["children"]
    assert [(child["evaluator"], child["score"]) for child in children] == [
        ("turn-1", 0.0), ("turn-2", 0.0), ("conversation", 0.5),
    ]  # fmt: skip


def test_a_window_bounds_what_the_system_is_shown(folder: Path) -> None:
    turns = [{"input": text} for text in ("one", "two", "three")]
    _, _, trace = ran(load(folder, {"turns": turns, "window_size": 1}))
    assert trace.output.final_answer == "3 messages, last three, first You count."


def test_a_turn_fails_below_the_threshold_of_its_case(folder: Path) -> None:
    turns = [{"input": "one", "assert": [holds("one"), holds("gone")]}, {"input": "two", "assert": [holds("two")]}]
    stopping = {"turns": turns, "on_turn_failure": "stop"}
    assert ran(load(folder, {**stopping, "execution": {"threshold": 0.5}}))[0].score == 0.75
    assert ran(load(folder, {**stopping, "execution": {"threshold": 0.51}}))[0].score == 0.25


def test_commands_get_the_conversation_as_text(folder: Path) -> None:
    turns = [{"input": "one"}, {"input": "two"}]
    _, _, trace = ran(load(folder, {"turns": turns}, target="echo"))
    said = str(trace.output.final_answer)
    assert said.startswith("a/turn-2 @[System]:\nYou count.\n\n@[User]:\none\n\n@[Assistant]:\na/turn-1 ")


def test_texts_are_judged_by_what_was_said_until_then(folder: Path) -> None:
    (folder / "judge.py").write_text(
        "import json, sys\nasked = sys.stdin.read()\nopen('asked', 'a').write(asked)\n"
        "print(json.dumps({'checks': [{'id': 'rubric-1', 'satisfied': 'user: two' not in asked, 'reasoning': ''}]}))"
    )
    turns = [{"input": one, "assert": ["keeps count"], "expected_output": f"says {one}"} for one in ("one", "two")]
    outcome = run_suite(load(folder, {"turns": turns}), RunOptions(out=folder / "runs"))
    reader, plan = open_run(outcome.run_dir)
    assert next(iter(reader.verdicts(CaseVerdict))).score == 0.5
    assert "says two" in (folder / "asked").read_text()
    reader.plan = plan
    row = json.loads(AgentvResults().render(reader, outcome.summary))
    members = row["evaluator_results"][0]["evaluator_results"]
    assert [member["name"] for member in members] == ["turn-1", "turn-2"]


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ({"turns": []}, "at least one turn"),
        ({"turns": [{"assert": ["x"]}]}, "turns[0]"),
        ({"turns": [{"input": "x"}], "mode": "chat"}, "expected 'conversation'"),
        ({"turns": [{"input": "x"}], "aggregation": "median"}, "expected one of mean, min, max"),
        ({"turns": [{"input": "x"}], "on_turn_failure": "skip"}, "expected one of continue, stop"),
        ({"turns": [{"input": "x"}], "window_size": 0}, "at least 1"),
        ({"turns": [{"input": "x", "assert": [{"type": "magic"}]}]}, "magic"),
    ],
)
def test_mistakes_of_turns_are_told(folder: Path, case: dict[str, Any], said: str) -> None:
    (read,) = load(folder, case).cases
    assert said in read.extra["load_error"]


def test_assertions_may_stand_in_files_of_their_own(folder: Path) -> None:
    templates = folder / ".agentv" / "templates"
    templates.mkdir(parents=True)
    (templates / "polite.yaml").write_text("assertions: [{type: contains, value: hi}, {include: ./more.yml}]")
    (templates / "more.yml").write_text("assertions: [{name: long, type: regex, value: h}, {include: ../../far.yaml}]")
    (folder / "far.yaml").write_text("assertions: [{type: contains, value: far}]")
    case = {"mode": None, "input": "hi", "assertions": [{"include": "polite"}, holds("own")]}
    (read,) = load(folder, case).cases
    assert [spec["name"] for spec in read.evaluators or ()] == ["contains-hi", "long", "contains-far", "contains-own"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there is no file of assertions 'polite'"),
        ("assertions: [{include: polite}]", "includes itself"),
        ("assertions: {}", "a list 'assertions'"),
        ("assertions: [{include: far, weight: 2}]", "no other key beside it, found weight"),
        ("assertions: [{type: magic}]", "magic"),
    ],
)
def test_files_of_assertions_that_cannot_be_used_are_told(folder: Path, text: str | None, said: str) -> None:
    templates = folder / ".agentv" / "templates"
    templates.mkdir(parents=True)
    if text is not None:
        (templates / "polite.yml").write_text(text)
    (read,) = load(folder, {"mode": None, "input": "hi", "assertions": [{"include": "polite"}]}).cases
    assert said in read.extra["load_error"]
