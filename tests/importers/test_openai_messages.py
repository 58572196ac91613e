"""Recorded conversations become cases with traces and a suite that replays them."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.importers.openai_messages import OpenAIMessages
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from importers.messages import HELLO, call, cases, imported, suite, trace_of


def test_the_answer_is_the_last_text_of_the_assistant(tmp_path: Path) -> None:
    messages = [*HELLO, {"role": "user", "content": "Bye"}, {"role": "assistant", "content": None}]
    assert trace_of(tmp_path, messages).output.final_answer == "Hi"


def test_a_blank_text_is_no_answer(tmp_path: Path) -> None:
    messages = [*HELLO, {"role": "user", "content": "Bye"}, {"role": "assistant", "content": " \n"}]
    assert trace_of(tmp_path, messages).output.final_answer == "Hi"


def test_a_call_beside_an_empty_text_has_no_content(tmp_path: Path) -> None:
    message = {"role": "assistant", "content": "", "tool_calls": [call("search", "{}")]}
    assert trace_of(tmp_path, [message]).messages[0].content is None


def test_parts_of_which_only_the_type_is_kept_are_counted(tmp_path: Path) -> None:
    parts = [{"type": kind} for kind in ("image_url", "input_audio", "image_url")]
    done = imported(tmp_path, [{"id": "c", "messages": [{"role": "user", "content": parts}]}])
    assert done.notes == ["lost: blocks of type 'input_audio': 1", "lost: images: 2"]


def test_keys_of_messages_that_nothing_reads_are_named(tmp_path: Path) -> None:
    reply = {"role": "assistant", "content": "Hi", "annotations": [{"type": "url_citation"}], "tool_calls": None}
    done = imported(tmp_path, [{"id": "c", "messages": [HELLO[0], reply]}])
    assert done.notes == ["lost: keys 'annotations' of messages: 1"]


def test_what_a_reply_says_is_its_text(tmp_path: Path) -> None:
    reply = {"role": "assistant", "content": None, "audio": {"id": "a", "transcript": "Hi"}, "reasoning": "Greet."}
    output = trace_of(tmp_path, [HELLO[0], reply]).output
    assert (output.final_answer, output.thinking) == ("Hi", "Greet.")


def test_the_first_user_message_is_the_input(tmp_path: Path) -> None:
    imported(tmp_path, [{"id": "c", "messages": [*HELLO, {"role": "user", "content": "Bye"}]}])
    assert cases(tmp_path)[0]["input"] == {"user_message": "Hello"}


def test_each_call_of_an_assistant_message_becomes_a_message(tmp_path: Path) -> None:
    calls = [call("search", '{"q": "x"}', "a"), call("open", '{"n": 1}', "b")]
    trace = trace_of(tmp_path, [{"role": "assistant", "content": "Looking", "tool_calls": calls}])
    assert [(m.content, m.tool_call and m.tool_call.name) for m in trace.messages] == [
        ("Looking", "search"),
        (None, "open"),
    ]
    assert [(c.id, c.name, c.arguments) for c in trace.tool_calls] == [
        ("a", "search", {"q": "x"}),
        ("b", "open", {"n": 1}),
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", {}),
        (None, {}),
        ({"q": 1}, {"q": 1}),
        ('{"q": 1', {"_raw": '{"q": 1'}),
        ("[1]", {"_raw": "[1]"}),
    ],
)
def test_arguments_are_an_object_whatever_was_recorded(tmp_path: Path, arguments: object, expected: object) -> None:
    trace = trace_of(tmp_path, [{"role": "assistant", "tool_calls": [call("search", arguments)]}])
    assert trace.tool_calls[0].arguments == expected


def test_a_call_in_another_form_is_a_mistake(tmp_path: Path) -> None:
    block = {"type": "server_tool_use", "id": "1", "name": "web_search", "input": {}}
    with pytest.raises(InputError, match="tool call in another form"):
        imported(tmp_path, [{"id": "c", "messages": [*HELLO, {"role": "assistant", "content": [block]}]}])
    both = {"role": "assistant", "content": [block], "tool_calls": [call("web_search", "{}", "1")]}
    assert [tool_call.name for tool_call in trace_of(tmp_path, [*HELLO, both]).tool_calls] == ["web_search"]


def _of_vercel() -> list[dict[str, Any]]:
    call = {"type": "tool-call", "toolCallId": "a", "toolName": "search", "input": {"q": "x"}}
    output = {"type": "error-text", "value": "none"}
    result = {"type": "tool-result", "toolCallId": "a", "toolName": "search", "output": output}
    thought = {"type": "reasoning", "text": "Greet."}
    said = [thought, {"type": "text", "text": "I look."}, {"type": "file", "data": "YQ=="}, call]
    return [HELLO[0], {"role": "assistant", "content": said}, {"role": "tool", "content": [result]}]


def _of_bedrock() -> list[dict[str, Any]]:
    call = {"toolUse": {"toolUseId": "a", "name": "search", "input": {"q": "x"}}}
    result = {"toolResult": {"toolUseId": "a", "status": "error", "content": [{"text": "none"}]}}
    thought = {"reasoningContent": {"reasoningText": {"text": "Greet."}}}
    said = [thought, {"text": "I look."}, {"image": {"format": "png"}}, call]
    return [HELLO[0], {"role": "assistant", "content": said}, {"role": "user", "content": [result]}]


@pytest.mark.parametrize(
    ("messages", "attached"),
    [(_of_vercel(), "blocks of type 'file'"), (_of_bedrock(), "images")],
    ids=["Vercel's AI SDK", "Bedrock"],
)
def test_calls_and_results_may_be_parts_of_the_content(tmp_path: Path, messages: list[Any], attached: str) -> None:
    done = imported(tmp_path, [{"id": "c", "messages": messages}])
    trace = cases(tmp_path)[0]["embedded_trace"]
    _, said, result = trace["messages"]
    assert (said["content"].split("\n")[0], said["thinking"]) == ("I look.", "Greet.")
    assert [(made["id"], made["name"], made["arguments"]) for made in trace["tool_calls"]] == [
        ("a", "search", {"q": "x"})
    ]
    assert (result["role"], result["name"], result["content"]) == ("tool", "search", "none")
    assert trace["metrics"]["custom"] == {"failed_tool_results": 1}
    assert done.notes == [f"lost: {attached}: 1"]


@pytest.mark.parametrize("messages", [_of_vercel(), _of_bedrock()], ids=["Vercel's AI SDK", "Bedrock"])
def test_a_message_whose_calls_are_parts_keeps_its_other_keys(tmp_path: Path, messages: list[Any]) -> None:
    said = messages[1] | {"content": messages[1]["content"][1:], "reasoning_content": "Hm.", "weight": 1}
    done = imported(tmp_path, [{"id": "c", "messages": [messages[0], said]}])
    assert cases(tmp_path)[0]["embedded_trace"]["messages"][1]["thinking"] == "Hm."
    assert "lost: keys 'weight' of messages: 1" in done.notes


@pytest.mark.parametrize("messages", [_of_vercel(), _of_bedrock()], ids=["Vercel's AI SDK", "Bedrock"])
def test_a_message_whose_calls_are_parts_needs_a_known_role(tmp_path: Path, messages: list[Any]) -> None:
    with pytest.raises(InputError, match="found the string 'weird'"):
        imported(tmp_path, [{"id": "c", "messages": [messages[0], messages[1] | {"role": "weird"}]}])


@pytest.mark.parametrize(
    "messages",
    [HELLO, [{"type": "human", "data": {"content": "Hello"}}, {"type": "ai", "data": {"content": "Hi"}}]],
    ids=["chat completions", "LangChain"],
)
def test_a_list_of_messages_is_one_conversation(tmp_path: Path, messages: list[Any]) -> None:
    imported(tmp_path, messages)
    trace = cases(tmp_path)[0]["embedded_trace"]
    assert [(message["role"], message["content"]) for message in trace["messages"]] == [
        ("user", "Hello"),
        ("assistant", "Hi"),
    ]


def test_the_legacy_function_call_is_a_tool_call(tmp_path: Path) -> None:
    messages = [
        {"role": "assistant", "content": None, "function_call": {"name": "add", "arguments": '{"a": 1}'}},
        {"role": "function", "name": "add", "content": "2"},
    ]
    trace = trace_of(tmp_path, messages)
    assert (trace.tool_calls[0].name, trace.tool_calls[0].arguments) == ("add", {"a": 1})
    assert (trace.tool_results[0].name, trace.messages[1].role) == ("add", "tool")


def test_a_result_that_is_a_json_object_is_parsed_and_others_stay_text(tmp_path: Path) -> None:
    results = [
        {"role": "tool", "name": "t", "tool_call_id": "a", "content": content} for content in ('{"ok": 1}', "[1]")
    ]
    assert [r.content for r in trace_of(tmp_path, results).tool_results] == [{"ok": 1}, "[1]"]


def test_a_result_without_a_name_is_named_by_its_call(tmp_path: Path) -> None:
    messages = [
        {"role": "assistant", "tool_calls": [call("search", "{}", "a")]},
        {"role": "tool", "tool_call_id": "a", "content": "found"},
    ]
    result = trace_of(tmp_path, messages).tool_results[0]
    assert (result.name, result.tool_call_id) == ("search", "a")


def test_parts_are_joined_and_what_is_no_text_is_noted(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "See"}, {"type": "image_url", "image_url": {"url": "https://example.org"}}]
    assert trace_of(tmp_path, [{"role": "user", "content": parts}]).messages[0].content == "See\n[image_url]"


def test_reasoning_is_kept_apart_from_the_answer(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, [{"role": "assistant", "content": "4", "reasoning_content": "2 and 2"}])
    assert (trace.output.final_answer, trace.output.thinking) == ("4", "2 and 2")


def test_a_recording_without_times_has_a_fixed_one_and_no_latency(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, HELLO)
    assert (trace.started_at, trace.latency_ms) == (datetime(1970, 1, 1, tzinfo=UTC), None)


def test_recorded_times_give_the_latency(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, HELLO, started_at="2026-01-02T03:04:05Z", finished_at=1767323047.5)
    assert trace.latency_ms == 2500


def test_an_end_before_the_start_measures_nothing(tmp_path: Path) -> None:
    """Such as a time without a zone beside one with a zone; 0 would pass every limit."""
    times = {"started_at": "2026-01-02T10:00:00", "finished_at": "2026-01-02T10:00:05+02:00"}
    assert trace_of(tmp_path, HELLO, **times).latency_ms is None
    (tmp_path / "again").mkdir()
    done = imported(tmp_path / "again", [{"id": "a", "messages": HELLO, **times}])
    assert done.notes == ["1 recording ends before it starts: the latency is unknown"]


def test_a_trace_says_where_it_comes_from(tmp_path: Path) -> None:
    extra = trace_of(tmp_path, HELLO).extra
    assert extra == {"source": "import", "imported_from": {"file": "recorded.json", "record": 0}}


def test_trials_of_a_case_are_put_in_order(tmp_path: Path) -> None:
    records = [
        {"task_id": task, "trial": trial, "reward": task + trial, "traj": HELLO} for trial in (1, 0) for task in (7, 8)
    ]
    result = imported(tmp_path, records)
    rewards = {c["id"]: [t["metrics"]["custom"]["reward"] for t in c["embedded_trace"]] for c in cases(tmp_path)}
    assert rewards == {"7": [7, 8], "8": [8, 9]}
    assert (result.cases, result.trials, result.traces) == (2, 2, 4)


def test_recordings_without_trial_numbers_are_counted_as_they_come(tmp_path: Path) -> None:
    imported(tmp_path, [{"id": "c", "messages": HELLO, "reward": reward} for reward in (0, 1)])
    traces = cases(tmp_path)[0]["embedded_trace"]
    assert [(t["trial"], t["metrics"]["custom"]["reward"]) for t in traces] == [(0, 0), (1, 1)]


def test_records_that_name_no_case_are_numbered(tmp_path: Path) -> None:
    imported(tmp_path, [{"messages": HELLO}, {"messages": HELLO}])
    assert [case["id"] for case in cases(tmp_path)] == ["record-1", "record-2"]


def test_missing_trials_are_told(tmp_path: Path) -> None:
    result = imported(tmp_path, [{"id": i, "messages": HELLO} for i in ("a", "a", "b")])
    assert any("1 case has fewer than 2 trials" in note for note in result.notes)


def test_the_number_of_trials_is_counted_once_and_not_for_each_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []

    def counting(*given: Any) -> int:
        counts.append(max(*given))
        return counts[-1]

    monkeypatch.setattr("evalwright.importers.imported_cases.max", counting, raising=False)
    imported(tmp_path, [{"id": f"c{n}", "messages": HELLO} for n in range(50)])
    assert set(counts) == {1}
    assert len(counts) < 10


def test_mapped_fields_become_metadata_and_extra(tmp_path: Path) -> None:
    record = {"id": "c", "messages": HELLO, "info": {"user": "ann", "steps": [{"n": 1}, {"n": 2}]}}
    imported(tmp_path, [record], {"metadata.user": "info.user", "extra.n": "$.info.steps[*].n"})
    case = cases(tmp_path)[0]
    assert case["metadata"] == {"user": "ann"}
    assert case["embedded_trace"]["extra"]["n"] == [1, 2]


def test_a_mapped_list_inside_an_object_holds_the_records(tmp_path: Path) -> None:
    document = {"runs": {"all": [{"id": "c", "messages": HELLO}]}}
    assert imported(tmp_path, document, {"records": "runs.all"}).cases == 1


def test_json_lines_are_read_whatever_their_order(tmp_path: Path) -> None:
    source = tmp_path / "recorded.jsonl"
    rows = [{"id": f"c{n % 3}", "trial": n // 3, "messages": HELLO, "reward": n} for n in range(6)]
    source.write_text("\n\n".join(map(json.dumps, rows)))
    OpenAIMessages.import_files([source], tmp_path / "out")
    assert [t["extra"]["imported_from"]["line"] for t in cases(tmp_path)[1]["embedded_trace"]] == [3, 9]


def test_a_recorded_reward_decides_and_expected_actions_inform(tmp_path: Path) -> None:
    task = {"actions": [{"name": "book", "kwargs": {"seat": 1}}]}
    imported(tmp_path, [{"id": "c", "reward": 1.0, "messages": HELLO, "task": task}], {"actions": "task.actions"})
    assert suite(tmp_path)["pass_criteria"] == {"all_required": ["reward"]}
    assert {e["name"] for e in suite(tmp_path)["evaluators"]} == {"reward", "actions"}
    assert cases(tmp_path)[0]["expected"]["facts"]["actions"] == [{"name": "book", "arguments": {"seat": 1}}]


def test_expected_actions_decide_when_there_is_no_reward(tmp_path: Path) -> None:
    imported(tmp_path, [{"id": "c", "messages": HELLO, "actions": []}], {"actions": "actions"})
    assert suite(tmp_path)["pass_criteria"] == {"all_required": ["actions"]}


def test_a_suite_always_has_a_check(tmp_path: Path) -> None:
    imported(tmp_path, [{"id": "c", "messages": HELLO}])
    assert [e["name"] for e in suite(tmp_path)["evaluators"]] == ["answered"]


def test_the_suite_runs_every_trial(tmp_path: Path) -> None:
    imported(tmp_path, [{"id": "c", "messages": HELLO}, {"id": "c", "messages": HELLO}])
    assert suite(tmp_path)["run"]["trials"] == 2


def test_the_suite_replays_and_its_verdicts_follow_the_reward(tmp_path: Path) -> None:
    records = [
        {"id": case, "trial": trial, "messages": HELLO, "reward": int(trial < passed)}
        for case, passed in (("a", 2), ("b", 1))
        for trial in (0, 1)
    ]
    imported(tmp_path, records)
    outcome = run_suite(load_suite(tmp_path / "out" / "eval.yaml"), RunOptions(out=tmp_path / "runs"))
    statistics = outcome.summary.variants[0].trials
    assert statistics is not None
    assert statistics.pass_hat_k == [0.75, 0.5]


@pytest.mark.parametrize("mapping", [None, {"actions": "actions"}])
def test_the_suite_without_rewards_runs_as_it_is(tmp_path: Path, mapping: dict[str, str] | None) -> None:
    imported(tmp_path, [{"id": "c", "messages": HELLO, "actions": []}], mapping)
    outcome = run_suite(load_suite(tmp_path / "out" / "eval.yaml"), RunOptions(out=tmp_path / "runs"))
    assert outcome.exit_code == 0


def test_rewards_between_nothing_and_all_are_told(tmp_path: Path) -> None:
    result = imported(tmp_path, [{"id": "c", "messages": HELLO, "score": 0.5}])
    assert any("neither 0 nor 1" in note for note in result.notes)


def test_several_files_make_one_suite_and_may_be_packed(tmp_path: Path) -> None:
    """Records of one case in two files are its trials; a mistake names the file in which the other record is."""
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz", tmp_path / "c.json"]
    texts = [
        json.dumps({"id": id, "messages": [{"role": "user", "content": id}], "trial": trial}) for id, trial in CELLS
    ]
    files[0].write_text(texts[0] + "\n")
    files[1].write_bytes(gzip.compress(f"{texts[1]}\n{texts[2]}\n".encode()))
    files[2].write_text(f"[{texts[3]}]")
    result = OpenAIMessages.import_files(files, tmp_path / "out")
    assert (result.cases, result.traces, result.trials) == (2, 4, 3)
    made = [json.loads(line) for line in (tmp_path / "out" / "cases.jsonl").read_text().splitlines()]
    assert [trace["extra"]["imported_from"]["file"] for trace in made[0]["embedded_trace"]] == [
        "a.jsonl",
        "c.json",
        "b.jsonl.gz",
    ]
    files[2].write_text(f"[{texts[0]}]")
    with pytest.raises(InputError, match=r"trial 0 of case 'x' is already in line 1 of .*a\.jsonl"):
        OpenAIMessages.import_files(files, tmp_path / "again")
    for name in ("empty.jsonl", "broken.jsonl"):
        (tmp_path / name).write_text("{\n" if name == "broken.jsonl" else "")
    with pytest.raises(InputError) as raised:
        OpenAIMessages.import_files([tmp_path / "empty.jsonl", files[0], tmp_path / "broken.jsonl"], tmp_path / "no")
    assert {Path(problem.file).name for problem in raised.value.problems} == {"empty.jsonl", "broken.jsonl"}


CELLS = (("x", 0), ("x", 2), ("y", 0), ("x", 1))


@pytest.mark.parametrize(
    ("mapping", "left"),
    [
        ({}, ["2 keys of records are left out: cost, info; --map metadata.NAME=PATH or extra.NAME=PATH keeps a value"]),
        ({"metadata.tier": "info.tier", "extra.cost": "$.cost"}, []),
        ({"metadata.tier": "$..tier"}, []),
    ],
    ids=["unmapped", "mapped", "a path that may begin anywhere"],
)
def test_keys_of_records_that_nothing_reads_are_named(tmp_path: Path, mapping: dict[str, str], left: list[str]) -> None:
    more = {"info": {"tier": "gold"}, "cost": 3}
    done = imported(tmp_path, [{"id": "a", "messages": HELLO}, {"id": "b", "messages": HELLO, **more}], mapping)
    assert list(done.notes) == left
