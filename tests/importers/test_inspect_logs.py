"""Logs of Inspect, which its own reader reads, of one task or several."""

from __future__ import annotations

import gzip

import pytest

from evalwright.errors import InputError
from importers.transcripts import AT, imported


@pytest.mark.slow("imports inspect_ai")
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_log_of_inspect_is_read_by_inspect(tmp_path):
    pytest.importorskip("inspect_ai", reason="needs the extra inspect")
    from inspect_ai.log import EvalConfig, EvalDataset, EvalError, EvalLog, EvalSample, EvalSpec, write_eval_log
    from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelUsage
    from inspect_ai.scorer import Score

    def sampled(id: str | int, epoch: int, **more: object) -> EvalSample:
        messages = [ChatMessageUser(content="Q"), ChatMessageAssistant(content="yes")]
        usage = {"m": ModelUsage(input_tokens=3, output_tokens=1, input_tokens_cache_read=4)}
        scores = {"match": Score(value="C", explanation="same")}
        settings = {"scores": scores, "model_usage": usage, "total_time": 1.5, **more}
        return EvalSample(id=id, epoch=epoch, input="Q", target="yes", messages=messages, **settings)

    at = "2026-03-04T10:00:00+00:00"
    spec = EvalSpec(created=at, task="asks", dataset=EvalDataset(), model="lab/m", config=EvalConfig())
    error = EvalError(message="boom", traceback="", traceback_ansi="")
    samples = [sampled("one", 2), sampled("one", 1, scores={"match": Score(value="I")}), sampled(7, 1, error=error)]
    write_eval_log(EvalLog(eval=spec, samples=samples, status="cancelled"), str(tmp_path / "log.eval"))
    done, cases = imported(tmp_path, "inspect", tmp_path / "log.eval")
    by_id = {case["id"]: case for case in cases}
    first, second = by_id["one"]["embedded_trace"]
    assert [trace["metrics"]["custom"]["reward"] for trace in (first, second)] == [0, 1]
    assert (first["variant_name"], by_id["one"]["expected"]["facts"]) == ("lab/m", {"target": "yes"})
    assert (second["metrics"]["token_input"], second["latency_ms"]) == (7, 1500)
    assert by_id["7"]["embedded_trace"]["error"]["type"] == "sample_error"
    assert any("cancelled" in note for note in done.notes)


@pytest.mark.slow("imports inspect_ai")
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("suffix", [".eval", ".json", ".json.gz"])
def test_a_log_of_inspect_of_any_size_keeps_every_sample_in_order(tmp_path, suffix):
    pytest.importorskip("inspect_ai", reason="needs the extra inspect")
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
    from inspect_ai.model import ChatMessageUser

    spec = EvalSpec(
        created="2026-03-04T10:00:00+00:00", task="t", dataset=EvalDataset(), model="lab/m", config=EvalConfig()
    )
    samples = [
        EvalSample(id=id, epoch=epoch, input="q", target="", messages=[ChatMessageUser(content=f"{id} in {epoch}")])
        for id in [*range(1, 40), "a"]
        for epoch in (1, 2)
    ]
    file = (tmp_path / f"log{suffix}").with_suffix("") if suffix == ".json.gz" else tmp_path / f"log{suffix}"
    write_eval_log(EvalLog(eval=spec, samples=samples, status="success"), str(file))
    if suffix == ".json.gz":
        file = tmp_path / "log.json.gz"
        file.write_bytes(gzip.compress((tmp_path / "log.json").read_bytes()))
    _, cases = imported(tmp_path, "inspect", file)
    assert [case["id"] for case in cases] == [*map(str, range(1, 40)), "a"]
    messages = [[trace["messages"][0]["content"] for trace in case["embedded_trace"]] for case in cases]
    assert messages == [[f"{case['id']} in {epoch}" for epoch in (1, 2)] for case in cases]
    file.write_bytes(file.read_bytes()[:-400])
    with pytest.raises(InputError, match="is not a log of Inspect"):
        imported(tmp_path / "cut", "inspect", file)


@pytest.mark.slow("imports inspect_ai")
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_logs_of_several_tasks_and_of_retries_are_not_mixed_up(tmp_path):
    """Tasks number their samples from 1, and the log of a retry has what the first run finished, too."""
    pytest.importorskip("inspect_ai", reason="needs the extra inspect")
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
    from inspect_ai.model import ChatMessageUser
    from inspect_ai.scorer import Score

    def write(name: str, task: str, *uuids: str) -> None:
        spec = EvalSpec(
            created="2026-03-04T10:00:00+00:00", task=task, dataset=EvalDataset(), model="lab/m", config=EvalConfig()
        )
        samples = [
            EvalSample(
                id=number, epoch=1, uuid=uuid, input=task, target="", messages=[ChatMessageUser(content=task)],
                scores={"tone": Score(value="rude"), "parts": Score(value=[1, 0])},
            )
            for number, uuid in enumerate(uuids, 1)
        ]  # fmt: skip
        write_eval_log(EvalLog(eval=spec, samples=samples, status="success"), str(tmp_path / "logs" / name))

    (tmp_path / "logs").mkdir()
    write("1.eval", "sums", "a")
    write("2-retried.eval", "sums", "a", "b")
    write("3.json", "words", "c")
    done, cases = imported(tmp_path, "inspect", *sorted((tmp_path / "logs").iterdir()))
    asked = {case["id"]: (case["group"], case["input"]["user_message"]) for case in cases}
    assert asked == {"sums/1": ("sums", "sums"), "sums/2": ("sums", "sums"), "words/1": ("words", "words")}
    assert done.traces == 3
    assert "lost: samples that an earlier log has, too: 1" in done.notes
    assert "lost: scores 'parts' that are no numbers: 3" in done.notes
    assert [score.get("label") for score in cases[0]["embedded_trace"]["extra"]["recorded_scores"]] == ["rude", None]
    _, (one, two) = imported(tmp_path / "alone", "inspect", tmp_path / "logs" / "2-retried.eval")
    assert (one["id"], two["id"]) == ("1", "2")


@pytest.mark.slow("imports inspect_ai")
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_models_and_calls_of_a_sample_have_their_times_and_costs(tmp_path):
    pytest.importorskip("inspect_ai", reason="needs the extra inspect")
    from inspect_ai.event import ModelEvent, ToolEvent
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
    from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, GenerateConfig, ModelOutput, ModelUsage
    from inspect_ai.tool import ToolCall

    call = ToolCall(id="c", function="look", arguments={})
    reply = ChatMessageAssistant(id="m", content="", model="m-2026", tool_calls=[call])
    output = ModelOutput.from_message(reply)
    asked = {"model": "lab/m", "input": [], "tools": [], "tool_choice": "auto", "config": GenerateConfig()}
    events = [
        ModelEvent(timestamp=AT.format(1), completed=AT.format(2), output=output, **asked),
        ToolEvent(timestamp=AT.format(3), completed=AT.format(4), id="c", function="look", arguments={}),
    ]
    messages = [reply, ChatMessageTool(content="ok", tool_call_id="c", function="look")]
    usage = {name: ModelUsage(input_tokens=1, output_tokens=1, total_cost=0.25) for name in ("lab/m", "lab/judge")}
    sample = EvalSample(id=1, epoch=1, input="q", target="", messages=messages, events=events, model_usage=usage)
    spec = EvalSpec(created=AT.format(0), task="t", dataset=EvalDataset(), model="lab/m", config=EvalConfig())
    write_eval_log(EvalLog(eval=spec, samples=[sample], status="success"), str(tmp_path / "log.eval"))
    _, [case] = imported(tmp_path, "inspect", tmp_path / "log.eval")
    trace = case["embedded_trace"]
    assert [(span["kind"], span["name"], span["started_at"], span["finished_at"]) for span in trace["spans"]] == [
        ("llm", "m-2026", "2026-03-04T09:00:01Z", "2026-03-04T09:00:02Z"),
        ("tool", "look", "2026-03-04T09:00:03Z", "2026-03-04T09:00:04Z"),
    ]
    assert (trace["metrics"]["cost_usd"], trace["extra"]["models"]) == (0.5, ["lab/judge", "lab/m"])
