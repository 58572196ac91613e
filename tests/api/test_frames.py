"""Runs as frames of pandas and of polars."""

import pytest

import evalwright as ew
from api import agents
from api.shouting import evaluate


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_frames(backend):
    pytest.importorskip(backend)
    cases = [
        ew.Case("a", {"q": 1}, ew.Expected(answer_should_include=["x"]), {"lang": "de"}, ["t"]),
        ew.Case("b", "text", group="g"),
    ]

    def system(case):
        return {"final_answer": "x", "tool_calls": [{"name": "look", "arguments": {"at": 1}}]}

    run = evaluate(cases, system, evaluators="answered", trials=2)
    frame = run.to_frame(backend=backend)
    assert list(frame.columns) == [
        "case", "variant", "trial", "status", "score", "input", "output", "expected", "error", "latency_s", "cost_usd",
        "tokens_in", "tokens_out", "tags", "group", "answered.passed", "answered.score", "answered.reason",
        "metadata.lang",
    ]  # fmt: skip
    assert list(frame["case"]) == ["a", "a", "b", "b"]
    assert list(frame["trial"]) == [0, 1, 0, 1]
    assert len(run.to_frame("results", backend=backend)) == 4
    assert list(run.to_frame("tool_calls", backend=backend)["arguments"]) == ['{"at":1}'] * 4
    assert type(frame).__module__.startswith(backend)


def test_what_was_not_judged_has_neither_passed_nor_failed():
    def careful(output):
        if output == "BOOM":
            raise ValueError("no scale")
        return output == "YES"

    frame = evaluate(["yes", "no", "boom"], agents.upper, evaluators=careful).to_frame(backend="polars")
    assert list(frame["careful.passed"]) == [True, False, None]
    assert "no scale" in frame["careful.reason"][2]


def test_a_frame_without_rows_has_its_columns():
    frame = evaluate(["a"], agents.upper).to_frame("tool_calls", backend="pandas")
    assert list(frame.columns) == ["case", "variant", "trial", "position", "name", "id", "arguments"]


def test_frames_of_another_kind_or_library_are_refused(run):
    with pytest.raises(ew.InputError, match="kind: expected one of cells, results, tool_calls"):
        run.to_frame("cell")
    with pytest.raises(ew.InputError, match="backend: expected 'pandas' or 'polars'"):
        run.to_frame(backend="numpy")


def test_without_a_library_the_extra_is_named(run, monkeypatch):
    monkeypatch.setattr("evalwright.api.frames.find_spec", lambda name: None)
    with pytest.raises(ew.InputError, match=r"evalwright\[frames\]"):
        run.to_frame()
