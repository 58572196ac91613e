"""NorthStar datasets as suites: read, run, judged again."""

from __future__ import annotations

import copy
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.model.recordings import conversation_in, recorded_of
from evalwright.model.result import CaseVerdict
from evalwright.model.snapshot import Case
from evalwright.model.trace import UNDATED, Output, ToolCall, ToolResult, Trace
from evalwright.reports.cells import Choice, chosen_cells
from evalwright.run.options import RunOptions
from evalwright.run.outcomes import Outcome
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from evalwright.scoring.fold import fold

SAID = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello there."}]
GOOD = {"id": "good", "messages": SAID, "expected": {"contains": ["hello"]}, "metrics": {"cost_usd": 0.5}}
BAD = {"id": "bad", "messages": SAID, "expected": {"contains": ["bye"]}}
MUTE = {"id": "mute", "messages": SAID}


ANSWERED = {"role": "assistant", "content": "a"}
CALL: dict[str, Any] = {"id": "1", "function": {"name": "f", "arguments": "{nope"}}


def written(folder: Path, *cases: dict[str, Any], name: str = "d.jsonl") -> Path:
    path = folder / name
    path.write_text("\n".join(map(json.dumps, cases)) if name.endswith("l") else json.dumps(cases))
    return path


def ran(path: Path, **options: Any) -> Outcome:
    return run_suite(load_suite(path, options=options), RunOptions(out=path.parent / "runs"))


def cells(outcome: Outcome) -> dict[str, int]:
    return {status: number for status, number in outcome.summary.variants[0].cells.items() if number}


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(InputError) as raised:
        list(load_suite(path, "northstar", options=options).cases)
    return str(raised.value)


@pytest.mark.parametrize("name", ["d.jsonl", "d.json"])
def test_a_file_of_conversations_is_found_out_and_graded(tmp_path: Path, name: str) -> None:
    outcome = ran(written(tmp_path, GOOD, BAD, MUTE, name=name))
    native = outcome.summary.native
    assert native is not None
    assert outcome.plan.dialect == "northstar"
    assert (native["total_cases"], native["evaluated_cases"], native["pass_rate"]) == (3, 2, 0.5)
    assert (native["skipped_grades"], outcome.exit_code) == (31, 1)


def test_numbers_that_are_none_are_kept_as_text_and_noted(tmp_path: Path) -> None:
    outcome = ran(written(tmp_path, {**GOOD, "input": {"x": float("nan")}}))
    reader, _ = open_run(outcome.run_dir)
    with closing(reader):
        [trace], [case] = reader.traces(Trace), reader.cases()
    assert (case.input, trace.extra["replaced"]) == ({"x": "nan"}, ["case.input.x: nan has no JSON form, kept as text"])


def test_other_records_are_not_taken_for_conversations(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="format not recognised"):
        load_suite(written(tmp_path, {**GOOD, "other": 1}))


def test_the_trace_holds_answer_calls_and_costs(tmp_path: Path) -> None:
    calling = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "t", "arguments": '{"a": 1}'}}]}
    back = {"role": "tool", "tool_call_id": "c", "content": [1]}
    outcome = ran(written(tmp_path, {**GOOD, "messages": [calling, back, *SAID]}))
    reader, _ = open_run(outcome.run_dir)
    (trace,) = reader.traces(Trace)
    assert (trace.output.final_answer, trace.metrics.cost_usd) == ("Hello there.", 0.5)
    assert (trace.tool_calls[0].arguments, trace.tool_results[0].content) == ({"a": 1}, "[1]")
    assert [message.role for message in trace.messages] == ["assistant", "tool", "user", "assistant"]


@pytest.mark.parametrize("cost", [-1, 1e308, float("inf")])
def test_a_cost_that_no_total_can_count_is_unknown_and_judged_as_it_is_written(tmp_path: Path, cost: float) -> None:
    limited = {**GOOD, "expected": {"max_cost_usd": 1}, "metrics": {"cost_usd": cost}}
    outcome = ran(written(tmp_path, limited, {**limited, "id": "b"}))
    (summary,) = outcome.summary.variants
    assert (summary.cost_n, summary.avg_cost_usd, summary.cost_total_usd) == (0, None, None)
    assert summary.cells["pass"] == (2 if cost < 1 else 0)


def test_judging_again_says_the_same(tmp_path: Path) -> None:
    outcome = ran(written(tmp_path, GOOD, BAD, MUTE))
    assert re_evaluate(outcome.run_dir).summary.native == outcome.summary.native


def test_an_infinite_limit_is_a_limit_and_a_missing_latency_is_none(tmp_path: Path) -> None:
    limits = {"max_latency_ms": float("inf"), "max_cost_usd": float("inf")}
    measured = {**MUTE, "expected": limits, "metrics": {"latency_ms": 40, "cost_usd": float("inf")}}
    outcome = ran(written(tmp_path, measured, {**MUTE, "id": "unmeasured", "expected": limits}))
    for summary in (outcome.summary, re_evaluate(outcome.run_dir).summary):
        judged = {rollup.evaluator: rollup.by_variant["recorded"].n for rollup in summary.by_evaluator}
        assert (judged["latency_under"], judged["cost_under"]) == (2, 2)
        assert summary.variants[0].cells["pass"] == summary.variants[0].cells["fail"] == 1
        assert (summary.variants[0].avg_latency_ms, summary.variants[0].latency_n) == (40.0, 1)


def test_a_record_in_which_nobody_answered_is_graded_all_the_same(tmp_path: Path) -> None:
    silent = {"id": "silent", "messages": [], "expected": {"not_contains": ["bye"]}}
    outcome = ran(written(tmp_path, silent, {**MUTE, "messages": []}))
    assert cells(outcome) == {"fail": 1, "skip": 1}


def test_a_broken_trace_is_the_error_of_its_case_alone(tmp_path: Path) -> None:
    broken = {**GOOD, "id": "broken", "trace": {"run_id": "r", "runs": 5}}
    outcome = ran(written(tmp_path, broken, GOOD))
    assert cells(outcome) == {"error": 1, "pass": 1}
    native = outcome.summary.native or {}
    assert (outcome.exit_code, native["errored_cases"], native["failed_cases"]) == (3, 1, 0)


def test_a_judge_that_cannot_judge_is_an_error_of_the_case_and_a_failure_in_native(tmp_path: Path) -> None:
    (tmp_path / "judges.py").write_text("def mute(request):\n    return None\n")
    graders = tmp_path / "g.json"
    graders.write_text('{"graders": [{"name": "good", "model": "python:judges:mute", "rubric": "Is it good?"}]}')
    outcome = ran(written(tmp_path, MUTE, BAD), graders=graders)
    native = outcome.summary.native or {}
    assert (cells(outcome), outcome.exit_code) == ({"error": 2}, 3)
    assert (native["failed_cases"], native["errored_cases"], native["pass_rate"]) == (2, 0, 0.0)


def test_a_verdict_scores_1_or_0_whatever_the_scale_of_its_judge(tmp_path: Path) -> None:
    (tmp_path / "verdicts.py").write_text(
        'def no(request):\n    return \'{"passed": false, "reason": "r", "feedback": "f"}\'\n'
    )
    scoring = {"mode": "binary", "min_score": 1, "max_score": 5}
    grader = {"name": "good", "model": "python:verdicts:no", "rubric": "Is it good?", "scoring": scoring}
    (tmp_path / "g.json").write_text(json.dumps({"graders": [grader]}))
    outcome = ran(written(tmp_path, MUTE), graders=tmp_path / "g.json")
    judged = {rollup.evaluator: rollup.by_variant["recorded"] for rollup in outcome.summary.by_evaluator}
    assert (cells(outcome), judged["good"].avg_score) == ({"fail": 1}, 0.0)


@pytest.mark.parametrize(
    ("odd", "status"),
    [
        ({"id": "odd", "messages": [{"role": "user", "content": "\ud800"}]}, "skip"),
        ({**MUTE, "metadata": {"\udc00": "\ud800"}}, "skip"),
        ({**GOOD, "id": "\ud800"}, "pass"),
        ({**BAD, "expected": {"not_contains": ["\ud800"]}}, "error"),
        ({**BAD, "expected": {"tool_arguments": [{"name": "t", "arguments": {"x": float("nan")}}]}}, "error"),
    ],
)
def test_a_record_that_json_cannot_hold_spoils_no_other(tmp_path: Path, odd: dict[str, Any], status: str) -> None:
    judged = cells(ran(written(tmp_path, {**GOOD, "id": "kept"}, odd)))
    assert judged == ({"pass": 2} if status == "pass" else {"pass": 1, status: 1})


def test_ids_that_are_stored_alike_are_numbered(tmp_path: Path) -> None:
    outcome = ran(written(tmp_path, {**GOOD, "id": "a\ud800"}, {**GOOD, "id": "a\udc00"}))
    reader, _ = open_run(outcome.run_dir)
    assert [verdict.case_key for verdict in reader.verdicts(CaseVerdict)] == ["a\ufffd", "a\ufffd#2"]


def test_every_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    message = refusal(written(tmp_path, GOOD, {"id": 1, "messages": []}, {**GOOD, "expected": {"contain": "x"}}))
    for part in ("d.jsonl:2", "d.jsonl:3", "line 2", 'did you mean "contains"?'):
        assert part in message


SAME = [GOOD, {**BAD, "id": "good"}, {**GOOD, "id": ""}, {**GOOD, "id": "good#2"}]


@pytest.mark.parametrize("name", ["d.jsonl", "d.json"])
def test_rows_with_one_id_are_cases_of_their_own_wherever_a_run_is_read(tmp_path: Path, name: str) -> None:
    outcome = ran(written(tmp_path, *SAME, name=name))
    reader, plan = open_run(outcome.run_dir)
    again = re_evaluate(outcome.run_dir).summary
    for summary in (outcome.summary, again, fold(reader, plan).summary(plan, outcome.summary.finished_at)):
        assert summary.native == outcome.summary.native
        assert (summary.variants[0].cases_total, summary.variants[0].cases_passed) == (4, 3)
    assert [cell.trace.case_key for cell in chosen_cells(reader, plan, [], Choice(failed=True))] == ["good#2"]
    assert [verdict.case_key for verdict in reader.verdicts(CaseVerdict)] == ["good", "good#2", "#1", "good#2#1"]
    assert {verdict.case_id for verdict in reader.verdicts(CaseVerdict)} == {"good", "", "good#2"}


def test_rows_with_one_id_are_told_and_strictly_refused(tmp_path: Path) -> None:
    path = written(tmp_path, *SAME)
    expected = ["2: the id occurs more than once: this row is the case 'good#2'", "3: the id is empty: this row is"]
    warned = [f"{problem.line}: {problem.message}" for problem in load_suite(path).warnings]
    assert [found.startswith(start) for found, start in zip(warned, expected, strict=True)] == [True, True]
    assert all(start[3:] in refusal(path, strict=True) for start in expected)


@pytest.mark.parametrize("greeting", ["hi", r"hi\u003a"])
def test_a_key_that_is_there_twice_is_told_whatever_the_texts_look_like(tmp_path: Path, greeting: str) -> None:
    path = written(tmp_path, MUTE, GOOD)
    path.write_text(path.read_text().replace('"hi"', f'"{greeting}"').replace("0.5", '9, "cost_usd": 0.5'))
    warnings = ran(path).summary.warnings
    assert [line for line in warnings if "d.jsonl:2" in line and "'cost_usd' occurs more than once" in line]


def test_a_key_that_is_there_twice_is_told_where_as_many_others_are_missing(tmp_path: Path) -> None:
    path = written(tmp_path, MUTE)  # neither expected nor metrics
    path.write_text(path.read_text().replace('"id"', '"id": "a", "id": "b", "id"'))
    assert [line for line in ran(path).summary.warnings if "'id' occurs more than once" in line]


EXPORT = {"sessions": [{"id": "s"}], "runs": [{"id": "r", "session_id": "s", "name": "n", "names": []}]}
DOUBTS: list[tuple[dict[str, Any], str, str]] = [
    ({"messages": [{"role": "user"}, ANSWERED]}, "messages[0].content", "says nothing"),
    ({"messages": [{"role": "usr", "content": "a"}, ANSWERED]}, "messages[0].role", "'usr'"),
    ({"messages": [{"content": "a"}, ANSWERED]}, "messages[0].role", "no role"),
    ({"messages": [{**ANSWERED, "tool_calls": [CALL]}]}, "messages[0].tool_calls[0].function.arguments", "'{nope'"),
    ({"messages": [{**ANSWERED, "tool_calls": [{"arguments": {}}]}]}, "messages[0].tool_calls[0].name", "unknown_tool"),
    ({"messages": [{**ANSWERED, "tool_calls": {"name": "rm"}}]}, "messages[0].tool_calls", 'found {"name": "rm"}'),
    ({"messages": [{**ANSWERED, "tool_calls": "rm"}]}, "messages[0].tool_calls", 'found "rm"'),
    ({"messages": [{**ANSWERED, "tool_calls": ["rm"]}]}, "messages[0].tool_calls[0]", 'found "rm"'),
    ({"messages": [{**ANSWERED, "tool_calls": 5}]}, "messages[0].tool_calls", "found 5"),
    ({"expected": {}}, "expected", "nothing is expected"),
    ({"expected": {"contains": [""]}}, "expected.contains", "every answer"),
    ({"expected": {"required_tools": []}}, "expected.required_tools", "every answer"),
    ({"expected": {"contains": "a", "rubric": "be kind"}}, "expected.rubric", "--plan quality"),
    ({"trace": {"run_id": "r", "runs": 5}}, "trace", "runs: expected a list, found 5: the case will be an error"),
    ({"trace": EXPORT}, "trace.runs[0].names", 'nothing reads this key; did you mean "name"?'),
    ({"input": {"trace": EXPORT}}, "input.trace.runs[0].names", "nothing reads this key"),
    ({"input": {"trace": {"spans": []}}}, "input.trace", "neither a run_id nor a first run with an id"),
]


@pytest.mark.parametrize(("change", "key", "said"), DOUBTS, ids=range(len(DOUBTS)))
def test_what_is_most_likely_not_meant_is_told_and_strictly_refused(
    tmp_path: Path, change: dict[str, Any], key: str, said: str
) -> None:
    path = written(tmp_path, {"id": "x", "messages": [ANSWERED], "expected": {"contains": "a"}, **change})
    outcome = ran(path)
    told = outcome.summary.warnings[0]
    assert told.startswith(f"{path}:1  {key}  ")
    assert said in told
    assert said in refusal(path, strict=True)


def test_a_doubt_about_many_cases_is_told_once_and_hides_no_other(tmp_path: Path) -> None:
    silent = [
        {"id": f"c{i}", "messages": [{"role": "user"}, ANSWERED], "expected": {"contains": "a"}} for i in range(150)
    ]
    path = written(tmp_path, *silent, {"id": "x", "messages": [ANSWERED]})
    *first, last, other = ran(path).summary.warnings
    assert [told.startswith(f"{path}:{i}  messages[0].content  ") for i, told in enumerate(first, 1)] == [True, True]
    assert last.endswith("says nothing (case 'c2') (and in 147 more places)")
    assert other.startswith(f"{path}:151  expected  nothing is expected")


def test_a_sound_conversation_leaves_no_doubt(tmp_path: Path) -> None:
    asked = [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "q"}]}]
    called = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{**CALL, "function": {"name": "f", "arguments": ""}}],
    }
    called["tool_calls"][0]["function"]["arguments"] = "{}"
    messages = [*asked, called, {"role": "tool", "content": "r"}, ANSWERED]
    path = written(tmp_path, {"id": "x", "messages": messages, "expected": {"max_tool_calls": 1}, "trace": {}})
    assert ran(path).summary.warnings == []
    judged = written(tmp_path, {"id": "x", "messages": messages, "expected": {"rubric": "be kind"}})
    suite = load_suite(judged, options={"plan": "quality"})
    assert (len(list(suite.cases)), list(suite.cases.unknown_keys())) == (1, [])


def keys_of(path: Path, ids: list[str]) -> list[str]:
    path.write_text("".join(json.dumps({"id": case_id, "messages": []}) + "\n" for case_id in ids))
    cases = load_suite(path, "northstar").cases
    return [case.key for case in cases if isinstance(case, Case)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["", "a", "a#1", "a#2", "#1", "b", "a#2#1"])))
def test_no_two_rows_share_a_key(tmp_path: Path, ids: list[str]) -> None:
    keys = keys_of(tmp_path / "ids.jsonl", ids)
    assert len(set(keys)) == len(ids)
    assert keys == ids or len(set(ids)) < len(ids) or "" in ids


def test_plans_and_configurations_choose_the_graders(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    assert load_suite(path, options={"plan": "quality", "judge_model": "m"}).evaluators[-1].config == {"model": "m"}
    config = tmp_path / "graders.json"
    config.write_text(json.dumps({"graders": [{"name": "tone", "model": "n", "rubric": "Be kind."}]}))
    spec = load_suite(path, options={"graders": config, "judge_model": "m"}).evaluators[-1]
    assert (spec.name, spec.type, spec.config) == ("tone", "rubric_judge", {"model": "n", "rubric": "Be kind."})
    assert "expected one of them" in refusal(path, graders=config, plan="quality")
    assert "unknown plan 'qality'" in refusal(path, plan="qality")


def test_an_eval_yaml_may_use_the_graders(tmp_path: Path) -> None:
    (tmp_path / "cases.yaml").write_text(
        "cases:\n  - {id: a, input: {}, expected: {conversation: {max_tool_calls: 0, contains: hello}}}\n"
    )
    (tmp_path / "agent.py").write_text("def answer(case, variant):\n    return {'final_answer': 'Hello.'}\n")
    suite = tmp_path / "eval.yaml"
    suite.write_text(
        "eval: {name: e}\n"
        "dataset: {type: yaml, path: cases.yaml}\n"
        "systems: [{name: s, adapter: python_function, target: 'agent:answer'}]\n"
        "evaluators:\n"
        "  - {name: few, type: max_tool_calls}\n"
        "  - {name: says, type: contains}\n"
        "  - {name: bye, type: not_contains, config: {phrases: [bye]}}\n"
        "output: [{type: local_files, path: runs}]\n"
    )
    assert run_suite(load_suite(suite), RunOptions(out=tmp_path / "runs")).exit_code == 0


def test_a_conversation_is_stored_once_and_replayed_whole(tmp_path: Path) -> None:
    call = {"id": "1", "function": {"name": "look", "arguments": '{"at": "sea"}'}}
    returned = {"role": "tool", "tool_call_id": "1", "name": "look", "content": ["blue"]}
    messages = [*SAID, {"role": "assistant", "tool_calls": [call]}, returned, ANSWERED]
    with closing(open_run(ran(written(tmp_path, {"id": "c", "messages": messages})).run_dir)[0]) as run:
        (case,), (trace,) = run.cases(), run.traces(Trace)
    assert bytes(case.recorded).count(b"Hello there.") == 1
    assert (trace.output.final_answer, len(trace.messages)) == ("a", 5)
    assert trace.tool_calls == [ToolCall("look", "1", {"at": "sea"})]
    assert trace.tool_results == [ToolResult("look", '["blue"]', "1")]


def test_a_recording_that_a_run_has_stored_whole_is_replayed_as_it_is(tmp_path: Path) -> None:
    """As runs of earlier versions have."""
    (case,) = load_suite(written(tmp_path, GOOD)).cases
    once = recorded_of(case)
    assert isinstance(once, Trace)
    once.messages = once.messages[1:]
    case.recorded = msgspec.Raw(msgspec.json.encode(once))
    assert recorded_of(case) == once


def test_a_number_in_place_of_calls_is_the_error_of_its_case(tmp_path: Path) -> None:
    outcome = ran(written(tmp_path, GOOD, {"id": "n", "messages": [{"role": "assistant", "tool_calls": 2}]}))
    assert cells(outcome) == {"pass": 1, "error": 1}
    with closing(open_run(outcome.run_dir)[0]) as run:
        errors = [trace.error.message for trace in run.traces(Trace) if trace.error is not None]
    assert errors == ["messages[0].tool_calls: expected a list of calls, found 2"]


def test_what_is_no_message_in_a_recording_is_passed_over() -> None:
    """As by whoever judges it: a run folder may come from anyone."""
    recording = {"messages": [5, *SAID, None, ANSWERED]}
    stored = Trace("c", "recorded", UNDATED, UNDATED, None, None, Output(), extra={"recording": recording})
    found = recorded_of(Case("c", None, recorded=msgspec.Raw(msgspec.json.encode(stored))))
    assert isinstance(found, Trace)
    assert (found.output.final_answer, len(found.messages)) == ("a", 3)


def test_messages_that_were_replayed_can_be_copied_and_stored_like_any_list(tmp_path: Path) -> None:
    (case,) = load_suite(written(tmp_path, GOOD)).cases
    replayed = recorded_of(case)
    assert isinstance(replayed, Trace)
    messages = replayed.extra["recording"]["messages"]
    copies = [copy.copy(messages), copy.deepcopy(messages)]
    assert copies == [SAID] * 2
    assert [conversation_in(one) for one in copies] == [conversation_in(SAID)] * 2
    assert msgspec.json.encode(messages) == msgspec.json.encode(SAID)
