"""Langfuse's downloads of a trace, and the files of its scheduled exports."""

import json
from typing import Any

import pytest

from evalwright.errors import InputError
from evalwright.importers.detection import detected
from evalwright.importers.file_heads import head_of
from importers.platforms import OBSERVATIONS, observation
from importers.transcripts import imported, written

ASKED = "Where is order 7?"


def exported(one: dict[str, Any], **more: object) -> dict[str, Any]:
    """An observation in a file of a scheduled export: other names, and empty texts for what is not known."""
    return {
        "id": one["id"], "trace_id": "t", "project_id": "p", "type": one["type"], "name": one["name"],
        "parent_observation_id": one["parentObservationId"] or "",
        "start_time": one["startTime"].replace("T", " ").replace("Z", ".000000"),
        "end_time": one["endTime"].replace("T", " ").replace("Z", ".000000"),
        "input": json.dumps(one["input"]) if "input" in one else "",
        "output": json.dumps(one["output"]) if "output" in one else "", "level": "DEFAULT", "status_message": "",
        "provided_model_name": one.get("model", ""), "usage_details": one.get("usageDetails", {}),
        "cost_details": one.get("costDetails", {}), "total_cost": 0, **more,
    }  # fmt: skip


def score(name: str, value: float, **more: object) -> dict[str, Any]:
    return {"id": name, "project_id": "p", "trace_id": "t", "observation_id": None, "name": name, "value": value,
            "source": "EVAL", "comment": None, "data_type": "NUMERIC", "string_value": None, **more}  # fmt: skip


def test_files_of_a_scheduled_export_make_traces_with_their_scores(tmp_path):
    rows = [exported(one, session_id="s", tags=["new"], metadata={"tier": "gold"}) for one in OBSERVATIONS]
    rows[0]["input"] = ASKED
    scores = [
        score("helpful", 0.5), score("note", 0, data_type="TEXT", string_value="so so"),
        score("short", 1, observation_id="model"),
    ]  # fmt: skip
    files = [written(tmp_path / "o.jsonl", rows), written(tmp_path / "s.jsonl", scores)]
    assert [detected(head_of(file)) for file in files] == ["langfuse"] * 2
    _, [case] = imported(tmp_path, "langfuse", *files)
    trace = case["embedded_trace"]
    assert (case["input"]["user_message"], trace["output"]["final_answer"]) == (ASKED, "In Bonn")
    assert case["metadata"] == {"tier": "gold", "tags": ["new"], "session.id": "s"}
    used = trace["metrics"]
    assert (used["token_input"], used["token_output"], used["cost_usd"]) == (15, 3, 0.01)
    assert used["custom"] == {"cache_read_tokens": 5, "helpful": 0.5}
    nothing = {"passed": None, "reason": None, "source": "EVAL"}
    assert trace["extra"]["recorded_scores"] == [
        {"name": "helpful", "score": 0.5, **nothing},
        {"name": "note", "score": None, "label": "so so", **nothing},
        {"name": "short", "score": 1, "span": "model", **nothing},
    ]
    assert [span["parent_id"] for span in trace["spans"]] == [None, "agent", "agent"]


def test_the_file_of_traces_in_an_older_export_completes_their_root(tmp_path):
    told = {"id": "t", "timestamp": "2026-03-04 09:00:00.000000", "name": "shop", "project_id": "p", "user_id": "u",
            "bookmarked": False, "tags": ["new"], "input": ASKED, "output": "In Bonn"}  # fmt: skip
    rows = [exported(one) for one in OBSERVATIONS]
    rows[0]["output"] = ""
    files = [written(tmp_path / "o.jsonl", rows), written(tmp_path / "t.jsonl", [told])]
    assert detected(head_of(files[1])) == "langfuse"
    _, [case] = imported(tmp_path, "langfuse", *files)
    assert (case["input"]["user_message"], case["embedded_trace"]["output"]["final_answer"]) == (ASKED, "In Bonn")
    assert case["metadata"] == {"tags": ["new"], "user.id": "u"}


def test_a_downloaded_trace_is_beside_its_observations(tmp_path):
    trace = {"id": "t", "name": "shop", "input": json.dumps(ASKED), "scores": [{"name": "helpful", "value": 0.5}]}
    path = tmp_path / "trace-t.json"
    path.write_text(json.dumps({"trace": trace, "observations": OBSERVATIONS}, indent=2))
    assert detected(head_of(path)) == "langfuse"
    _, [case] = imported(tmp_path, "langfuse", path)
    found = case["embedded_trace"]
    assert (case["id"], case["input"]["user_message"], found["spans"][0]["name"]) == ("t", ASKED, "shop")
    assert found["metrics"]["custom"]["helpful"] == 0.5


def test_an_observation_that_was_exported_before_it_ended_is_the_ended_one(tmp_path):
    ended = exported(OBSERVATIONS[0])
    open_ = {**ended, "end_time": None, "output": ""}
    for name, rows in {"after": [open_, ended], "before": [ended, open_]}.items():
        _, [case] = imported(tmp_path / name, "langfuse", written(tmp_path / f"{name}.jsonl", rows))
        trace = case["embedded_trace"]
        assert (trace["error"], trace["output"]["final_answer"]) == (None, "In Bonn")
        assert "warnings" not in trace["extra"]


def test_a_total_of_zero_is_no_cost_and_hides_none(tmp_path):
    """The newer API gives it for whatever nobody counted, such as an event below a call of a model."""
    model = observation("model", "GENERATION", None, 0, 4, usageDetails={"input": 10, "output": 3}, totalCost=0)
    below = observation("first token", "EVENT", "model", 1, 1, usageDetails={}, costDetails={}, totalCost=0)
    _, [case] = imported(tmp_path, "langfuse", written(tmp_path / "x.jsonl", [model, below]))
    used = case["embedded_trace"]["metrics"]
    assert (used["token_input"], used["token_output"], used["cost_usd"]) == (10, 3, None)


LISTED = {"id": "t", "timestamp": "2026-03-04T09:00:00Z", "name": "shop", "input": ASKED, "output": "In Bonn",
          "observations": [one["id"] for one in OBSERVATIONS], "scores": []}  # fmt: skip


def test_a_listed_trace_is_completed_by_its_observations(tmp_path):
    listed = {"data": [{**LISTED, "observations": [*LISTED["observations"], "absent"]}]}
    path = tmp_path / "traces.json"
    path.write_text(json.dumps(listed))
    assert detected(head_of(path)) == "langfuse"
    _, [case] = imported(tmp_path, "langfuse", path, written(tmp_path / "o.jsonl", [*OBSERVATIONS]))
    trace = case["embedded_trace"]
    assert (trace["output"]["final_answer"], trace["metrics"]["token_input"]) == ("In Bonn", 15)
    assert trace["extra"]["warnings"] == ["span absent: is listed, but the span itself is missing"]


def test_a_listed_trace_without_its_observations_is_refused_with_what_to_export(tmp_path):
    path = tmp_path / "traces.json"
    path.write_text(json.dumps({"data": [LISTED]}))
    with pytest.raises(InputError) as refused:
        imported(tmp_path, "langfuse", path)
    [problem] = refused.value.problems
    assert problem.message.startswith("trace t: none of its spans is in the file")
    assert problem.message.endswith("export the spans, too")


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ({"role": "assistant", "content": "In Bonn"}, "In Bonn"),
        ({"role": "assistant", "content": [{"type": "text", "text": "In Bonn"}]}, "In Bonn"),
        ({"output": {"type": "ai", "content": "In Bonn", "additional_kwargs": {}}}, "In Bonn"),
        ({"lc": 1, "id": ["langchain", "AIMessage"], "kwargs": {"content": "In Bonn"}}, "In Bonn"),
        ({"role": "admin", "content": "In Bonn"}, '{"role":"admin","content":"In Bonn"}'),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "track"}}]}, None),
    ],
)
def test_a_trace_whose_output_is_a_message_answers_with_its_text(tmp_path, output, answer):
    whole = {"id": "t", "name": "shop", "input": ASKED, "output": output, "observations": [OBSERVATIONS[2]]}
    _, [case] = imported(tmp_path, "langfuse", written(tmp_path / "t.jsonl", [whole]))
    assert case["embedded_trace"]["output"]["final_answer"] == answer


@pytest.mark.parametrize(("unit", "tokens"), [("TOKENS", 10), (None, 10), ("CHARACTERS", None)])
def test_only_tokens_are_counted_as_tokens(tmp_path, unit, tokens):
    model = {key: value for key, value in OBSERVATIONS[1].items() if key != "usageDetails"}
    model |= {"usage": {"input": 10, "output": 3, "unit": unit}}
    _, [case] = imported(tmp_path, "langfuse", written(tmp_path / "o.jsonl", [OBSERVATIONS[0], model]))
    assert case["embedded_trace"]["metrics"]["token_input"] == tokens
