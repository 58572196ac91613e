"""Trajectories, fields, limits, code judges and composites, by the rules of AgentEvals."""

import asyncio
import inspect
import json
import sys
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.errors import EvaluatorError, InputError
from evalwright.evaluators.build import build_evaluator
from evalwright.evaluators.values.equality import deeply_equal
from evalwright.evaluators.values.field_accuracy import same_day
from evalwright.model.snapshot import Case
from evalwright.model.trace import Metrics, Output, ToolCall, Trace

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def trace(*calls, answer="done", metrics=None, latency=0, **extra):
    messages = [{"role": "assistant", "content": answer, "tool_calls": list(calls)}]
    return Trace(
        "c", "v", NOW, NOW, latency, "q", Output(answer), extra={"output_messages": messages, **extra},
        metrics=metrics or Metrics(),
    )  # fmt: skip


def call(tool, args=None, **more):
    return {"tool": tool, **({} if args is None else {"input": args}), **more}


def judged(kind, config, given_trace, case=None):
    found = build_evaluator(kind, config).evaluate(case or Case("c", "q"), given_trace)
    return asyncio.run(found) if inspect.isawaitable(found) else found


def tools(*names):
    return [{"tool": name} for name in names]


@pytest.mark.parametrize(
    ("config", "calls", "score"),
    [
        ({"minimums": {"a": 2}}, "aa", 1.0),
        ({"minimums": {"a": 2, "b": 1}}, "ac", 0.0),
        ({"minimums": {"a": 1}, "expected": tools("b")}, "ba", 1.0),
        ({"expected": tools("a", "a")}, "ab", 0.5),
        ({}, "abc", 1.0),
        ({"mode": "in_order", "expected": tools("a", "c")}, "abc", 1.0),
        ({"mode": "in_order", "expected": tools("c", "a")}, "abc", 0.5),
        ({"mode": "in_order", "expected": []}, "a", 1.0),
        ({"mode": "exact", "expected": tools("a", "b")}, "ab", 1.0),
        ({"mode": "exact", "expected": tools("a", "b")}, "abb", 2 / 3),
        ({"mode": "exact", "expected": tools("a", "b")}, "ba", 0.0),
        ({"mode": "exact", "expected": []}, "a", 1.0),
    ],
)
def test_calls_beside_a_trajectory(config, calls, score):
    assert judged("tool_trajectory", config, trace(*map(call, calls))).score == pytest.approx(score)


@pytest.mark.parametrize(
    ("wanted", "given", "met"),
    [
        ({"q": "cats"}, {"q": "cats", "n": 1}, True),
        ({"q": "cats"}, {"n": 1}, False),
        ({"n": 1}, {"n": "1"}, False),
        ({"n": 1}, {"n": True}, False),
        ({"n": 1}, {"n": 1.0}, True),
        ({"o": {"a": 1}}, {"o": {"a": 1, "b": 2}}, False),
        ({"l": [1, 2]}, {"l": [2, 1]}, False),
        ({"x": None}, {"x": None}, True),
        ("any", None, True),
        ({}, {}, True),
        ({}, None, False),
        ({"q": "any"}, {"q": "cats"}, False),
        ({"q": "cats"}, '{"q": "cats"}', True),
    ],
)
def test_arguments_beside_expected_ones(wanted, given, met):
    config = {"mode": "in_order", "expected": [{"tool": "a", "args": wanted}]}
    assert judged("tool_trajectory", config, trace(call("a", given))).score == float(met)


@pytest.mark.parametrize(("limit", "took", "score"), [(100, 100, 1.0), (100, 101, 0.5), (100, None, 1.0)])
def test_a_limit_of_time_is_one_more_requirement(limit, took, score):
    config = {"mode": "in_order", "expected": [{"tool": "a", "max_duration_ms": limit}]}
    timed = call("a") if took is None else call("a", duration_ms=took)
    assert judged("tool_trajectory", config, trace(timed)).score == score


def test_what_a_trajectory_does_not_check_is_said():
    config = {"mode": "in_order", "expected": [{"tool": "a", "max_duration_ms": 1}]}
    found = judged("tool_trajectory", config, trace(call("a")))
    assert (found.score, found.reason) == (1.0, "the call of a has no duration: its limit is not checked")
    found = judged("tool_trajectory", {"mode": "exact", "expected": []}, trace(call("a")))
    assert (found.score, found.reason) == (1.0, "no call is expected; calls made: 1")


@pytest.mark.parametrize(
    ("kind", "config", "key"),
    [
        ("tool_trajectory", {"expected": [{"tool": "a", "arg": {}}]}, "arg"),
        ("field_accuracy", {"fields": [{"path": "a", "wieght": 2}]}, "wieght"),
    ],
)
def test_an_entry_with_a_key_that_nothing_reads_is_refused(kind, config, key):
    with pytest.raises(InputError, match=key):
        build_evaluator(kind, config)


def test_native_traces_have_trajectories_too():
    native = Trace("c", "v", NOW, NOW, 0, "q", Output("x"), tool_calls=[ToolCall("a", "1", {"q": 1})])
    config = {"mode": "exact", "expected": [{"tool": "a", "args": {"q": 1}}]}
    assert judged("tool_trajectory", config, native).score == 1.0


def test_without_a_trace_there_is_no_trajectory():
    nothing = Trace("c", "v", NOW, NOW, 0, "q", Output())
    assert judged("tool_trajectory", {"minimums": {"a": 0}}, nothing).misses == ["No trace available"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(JSON)
def test_plain_data_equals_its_copy(value):
    assert deeply_equal(value, json.loads(json.dumps(value)))


def fields(expected, answer, *paths, aggregation="weighted_average"):
    case = Case("c", "q", extra={"expected_messages": [{"role": "assistant", "content": expected}]})
    config = {"fields": [p if isinstance(p, dict) else {"path": p} for p in paths], "aggregation": aggregation}
    return judged("field_accuracy", config, trace(answer=answer), case)


@pytest.mark.parametrize(
    ("answer", "score"), [("[1, 2]", 0.5), ("null", 0.5), ("```json\n3\n```", 0.5), ("NaN", 0.0), ("done", 0.0)]
)
def test_an_answer_may_be_any_json(answer, score):
    assert fields({"a": 1}, answer, "a", "not.expected").score == score


def test_steps_into_a_list_that_is_the_answer():
    assert fields({"0": 7}, "[7, 8]", "[0]").score == 1


@pytest.mark.parametrize(
    ("field", "expected", "given", "met"),
    [
        ({"path": "a"}, 1, 1.0, True),
        ({"path": "a"}, "1", 1, False),
        ({"path": "a", "match": "numeric_tolerance", "tolerance": 1}, "10 USD", 11, True),
        ({"path": "a", "match": "numeric_tolerance", "tolerance": 1}, 10, "$10", False),
        ({"path": "a", "match": "numeric_tolerance", "tolerance": 0.1, "relative": True}, 100, 109, True),
        ({"path": "a", "match": "numeric_tolerance", "tolerance": 1}, 10, 10**400, False),
        ({"path": "a", "match": "numeric_tolerance", "tolerance": 1}, 10**400, 10, False),
        ({"path": "a", "match": "date"}, "2024-03-05", "05-MAR-2024", True),
        ({"path": "a", "match": "contains"}, "cat", "a cat", True),
        ({"path": "a", "match": "regex"}, r"^\d+$", 12, True),
        ({"path": "a", "match": "contains"}, "true", True, True),
        ({"path": "a", "match": "regex"}, "^null$", None, True),
        ({"path": "a", "match": "contains"}, '{"b":[1,2]', {"b": [1, 2], "c": 3}, True),
    ],
)
def test_a_field_is_compared_in_its_way(field, expected, given, met):
    answer = f"```json\n{json.dumps({'a': given})}\n```"
    assert fields({"a": expected}, answer, field).score == float(met)


@pytest.mark.parametrize(
    ("aggregation", "score"), [("weighted_average", 0.75), ("all_or_nothing", 0.0), ("minimum", 0.0)]
)
def test_fields_are_put_together(aggregation, score):
    found = fields('{"a": 1, "b": 2}', '{"a": 1}', {"path": "a", "weight": 3}, "b", aggregation=aggregation)
    assert found.score == score


def test_a_field_that_may_be_missing_does_not_count():
    assert fields({"a": 1, "b": 2}, '{"a": 1}', "a", {"path": "b", "required": False}).score == 1.0


@pytest.mark.parametrize("answer", ["no json", "[1]", "", '{"a": 1, "b": NaN}'])
def test_an_answer_without_json_scores_nothing(answer):
    assert fields({"a": 1}, answer, "a").score == 0.0


@pytest.mark.parametrize(
    ("answer", "equal"), [("\ufeff hello\u3000\n", True), ("hello\x1f", False), ("hello\x85", False)]
)
def test_texts_are_trimmed_as_in_the_original(answer, equal):
    assert judged("text_check", {"check": "equals", "value": "hello"}, trace(answer=answer)).passed is equal


@pytest.mark.parametrize(
    ("answer", "is_json"), [(" [1, 1.5e3]\n", True), ("9" * 5000, True), ("NaN", False), ('{"a": -Infinity}', False)]
)
def test_json_has_no_nan_and_integers_of_any_length(answer, is_json):
    found = judged("text_check", {"check": "is_json"}, trace(answer=answer))
    assert (found.passed, found.hits + found.misses) == (is_json, ["is json"])


@pytest.mark.parametrize(
    ("a", "b", "formats", "same"),
    [
        ("2024-03-05T23:00:00Z", "2024-03-05", [], True),
        ("13/02/2024", "2024-02-13", [], True),
        ("03/05/2024", "2024-03-05", [], True),
        ("03/05/2024", "2024-05-03", ["DD/MM/YYYY"], True),
        ("03/05/2024", "2024-05-03", ["DD-MMM-YYYY", "YYYY-MM-DD"], True),
        ("03/05/2024", "2024-03-05", ["DD/MM/YYYY", "MM-DD-YYYY"], True),
        ("March 5, 2024", "2024-03-05", [], True),
        ("Tue, 5 Mar. 2024 10:00", "Sept 5 2024", [], False),
        ("Tuesday, Mar. 5 2024", "5 March, 2024", [], True),
        ("2024/3/5", "2024.03.05", [], True),
        ("2024-02-30", "2024-02-30", [], False),
        ("soon", "soon", [], False),
    ],
)
def test_days(a, b, formats, same):
    assert same_day(a, b, formats) is same


USED = Metrics(token_input=100, token_output=50, cost_usd=0.02)


@pytest.mark.parametrize(
    ("config", "score"),
    [
        ({"max_tool_calls": 1}, 1.0),
        ({"max_tool_calls": 0}, 0.0),
        ({"max_tokens": 150, "max_cost_usd": 0.01}, 0.5),
        ({"max_tokens": 150, "max_cost_usd": 0.01, "all_or_nothing": True}, 0.0),
        ({"max_duration_ms": 30, "max_llm_calls": 1}, 1.0),
        ({"target_exploration_ratio": 1.0}, 1.0),
        ({"target_exploration_ratio": 0.5}, 0.0),
    ],
)
def test_limits_of_what_is_used(config, score):
    assert judged("execution_metrics", config, trace(call("read"), metrics=USED, latency=30)).score == score


@pytest.mark.parametrize(
    ("kind", "config", "passed"),
    [
        ("latency", {"threshold": 30}, True),
        ("latency", {"threshold": 29}, False),
        ("cost", {"budget": 0.02}, True),
        ("token_usage", {"max_total": 160, "max_input": 100}, True),
        ("token_usage", {"max_total": 159}, False),
    ],
)
def test_single_limits(kind, config, passed):
    given = trace(metrics=USED, latency=30, token_usage={"cached": 10})
    assert judged(kind, config, given).passed is passed


def test_what_was_not_reported_was_not_kept():
    assert judged("cost", {"budget": 1}, trace()).passed is False
    half = trace(metrics=Metrics(token_input=5))
    assert judged("token_usage", {"max_total": 9}, half).passed is False
    assert judged("execution_metrics", {"max_tokens": 9}, half).misses == ["tokens: not reported, the limit is 9"]


def judge(tmp_path, code):
    path = tmp_path / "judge.py"
    path.write_text("import json, sys\nasked = json.load(sys.stdin)\n" + code)
    return {"script": [sys.executable, str(path)]}


def test_a_program_judges(tmp_path):
    code = "print(json.dumps({'score': 1.7, 'hits': [asked['candidate_answer'], 3, ' '], 'reasoning': asked['note']}))"
    config, case = judge(tmp_path, code), Case("c", "q", note="be kind")
    with pytest.raises(EvaluatorError, match=r"score 1\.7, expected one from 0 to 1"):
        judged("code_judge", config, trace(answer="yes"), case)
    found = judged("code_judge", {**config, "lenient": True}, trace(answer="yes"), case)
    assert (found.score, found.hits, found.reason, found.detail["verdict"]) == (1.0, ["yes"], "be kind", "pass")


def test_a_program_is_told_in_both_spellings_and_users_data_is_left_alone(tmp_path):
    code = "print(json.dumps({'score': 1, 'details': {'a': asked['candidateAnswer'], 'm': asked['metadata']}}))"
    found = judged("code_judge", judge(tmp_path, code), trace(), Case("c", "q", metadata={"isValid": True}))
    assert found.detail["details"] == {"a": "done", "m": {"isValid": True}}


@pytest.mark.parametrize("said", ["no json", "[1]", '{"score": "0.9"}', '{"score": true}', "{}", "log\\n{}"])
def test_what_a_program_says_unreadably_is_an_error_or_scores_nothing_as_in_agentv(tmp_path, said):
    config = judge(tmp_path, f"print('{said}')")
    with pytest.raises(EvaluatorError, match="the output of the code judge"):
        judged("code_judge", config, trace())
    found = judged("code_judge", {**config, "lenient": True}, trace())
    assert found.score == 0.0
    assert "the output of the code judge" in found.reason


@pytest.mark.parametrize(
    "said",
    [
        '{"score": 0, "score": 1}',
        '{"assertions": [{"text": "a", "passed": "false"}]}',
        '{"assertions": [{"text": "a"}]}',
        '{"score": 1, "assertions": {"a": false}}',
    ],
)
def test_what_a_program_says_ambiguously_is_no_verdict(tmp_path, said):
    with pytest.raises(EvaluatorError, match=r"the output of the code judge (is not clear|has 'assertions')"):
        judged("code_judge", judge(tmp_path, f"print('{said}')"), trace())


def test_assertions_of_a_program_are_its_score(tmp_path):
    said = '{"assertions": [{"text": "a", "passed": true}, {"text": "b", "passed": false}]}'
    found = judged("code_judge", judge(tmp_path, f"print('{said}')"), trace())
    assert (found.score, found.hits, found.misses) == (0.5, ["a"], ["b"])


def test_a_program_gets_its_configuration_as_it_is_written(tmp_path):
    config = {"labels": ["a"], "config": {"give": 1}}
    code = "print(json.dumps({'score': 1, 'details': asked['config']}))"
    found = judged("code_judge", {**judge(tmp_path, code), "config": config}, trace())
    assert found.detail["details"] == config


def test_a_program_that_fails_is_an_error(tmp_path):
    config = judge(tmp_path, "sys.stderr.write('broken')\nprint('{}')\nsys.exit(3)")
    with pytest.raises(EvaluatorError, match=r"exit code 3: broken; standard output: \{\}"):
        judged("code_judge", config, trace())


def test_a_program_gets_no_variable_but_those_that_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "s")
    monkeypatch.setenv("WANTED", "w")
    seen = "{**os.environ, 'home': os.listdir(os.environ['HOME'])}"
    code = f"import os\nprint(json.dumps({{'score': 1, 'details': {seen}}}))"
    found = judged("code_judge", {**judge(tmp_path, code), "env": ["WANTED"]}, trace()).detail["details"]
    assert found.keys() - {"LC_CTYPE"} <= {"PATH", "HOME", "LANG", "WANTED", "home"}
    assert (found["WANTED"], found["home"]) == ("w", [])
    with pytest.raises(EvaluatorError, match="not set: NOWHERE"):
        judged("code_judge", {**judge(tmp_path, code), "env": ["NOWHERE"]}, trace())


def test_a_program_is_not_told_what_was_not_measured(tmp_path):
    code = "print(json.dumps({'score': 1, 'details': asked}))"
    told = judged("code_judge", judge(tmp_path, code), trace(answer="yes")).detail["details"]
    assert {key for key, value in told.items() if value is None} == {"config"}
    assert not {"cost_usd", "token_usage"} & told["trace_summary"].keys()
    assert None not in told["trace_summary"].values()


def test_a_program_that_does_not_end_is_stopped(tmp_path):
    config = {**judge(tmp_path, "import time\ntime.sleep(60)"), "timeout_seconds": 0.5}
    with pytest.raises(EvaluatorError, match=r"timed out after 0\.5 seconds"):
        judged("code_judge", config, trace())


def member(name, score, **more):
    """A member with a known score."""
    config = {"script": [sys.executable, "-c", f'print(\'{{"score": {score}, "misses": ["m"]}}\')']}
    return {"name": name, "type": "code_judge", "config": config, **more}


def composed(members, errors="error", **aggregator):
    given = {"aggregator": aggregator} if aggregator else {}
    return judged("composite", {"evaluators": members, "errors": errors, **given}, trace())


@pytest.mark.parametrize(
    ("aggregator", "score", "verdict"),
    [
        ({}, 0.75, "borderline"),
        ({"type": "weighted_average", "weights": {"a": 3}}, 0.875, "pass"),
        ({"type": "weighted_average", "weights": {"a": 0, "b": 0}}, 0.0, "fail"),
        ({"type": "minimum"}, 0.5, "fail"),
        ({"type": "maximum"}, 1.0, "pass"),
        ({"type": "safety_gate", "required": ["b"]}, 0.0, "fail"),
        ({"type": "safety_gate", "required": ["a"]}, 0.75, "borderline"),
        ({"type": "all_or_nothing"}, 0.0, "fail"),
        ({"type": "all_or_nothing", "threshold": 0.5}, 0.75, "borderline"),
        ({"type": "threshold", "threshold": 0.5}, 0.5, "pass"),
    ],
)
def test_members_are_put_together(aggregator, score, verdict):
    found = composed([member("a", 1), member("b", 0.5)], **aggregator)
    assert (found.score, found.detail["verdict"], found.passed) == (score, verdict, verdict == "pass")


@pytest.mark.parametrize(
    ("aggregator", "score"),
    [({"type": "safety_gate", "required": ["a"]}, 0.6), ({"type": "all_or_nothing", "threshold": 0.6}, 0.6)],
)
def test_what_lies_below_a_bound_by_the_error_of_floats_reaches_it(aggregator, score):
    assert composed([member("a", 0.59999999999)], **aggregator).score == pytest.approx(score)


def test_members_results_are_kept_with_their_names():
    inner = {"name": "i", "type": "composite", "config": {"evaluators": [member("x", 0.25)]}}
    found = composed([inner, member("b", 1, weight=3)])
    assert [child["evaluator"] for child in found.detail["children"]] == ["i", "b"]
    assert found.score == pytest.approx(0.8125)
    assert found.misses == ["[i] [x] m", "[b] m"]


BROKEN = {"name": "b", "type": "code_judge", "config": {"script": [sys.executable, "-c", "raise SystemExit(1)"]}}
OFF = {
    "name": "o",
    "type": "python_code",
    "config": {"code": "def validate(o, c, r): return {'passed': 1 > 0, 'score': 7}"},
}


@pytest.mark.parametrize("broken", [BROKEN, OFF])
@pytest.mark.parametrize("kind", ["weighted_average", "minimum", "maximum", "threshold"])
def test_a_member_with_an_error_makes_it_an_error(broken, kind):
    with pytest.raises(EvaluatorError, match=r"its member '[bo]' had an error") as raised:
        composed([member("a", 1), broken], type=kind)
    assert [child["evaluator"] for child in raised.value.detail["children"]] == ["a", broken["name"]]


def test_an_aggregator_with_an_error_makes_it_an_error():
    with pytest.raises(EvaluatorError, match="the aggregator failed"):
        composed([member("a", 1)], type="code_judge", path="exit 1")


def test_errors_count_as_0_where_the_suite_says_so():
    found = composed([member("a", 1), BROKEN], errors="count")
    assert found.score == 0.5
    assert found.detail["children"][1]["error"]["type"] == "exit_code"


def test_a_command_puts_members_together(tmp_path):
    code = "print(json.dumps({'score': asked['results']['a']['score'] / 2, 'verdict': 'pass'}))"
    command = " ".join(judge(tmp_path, code)["script"])
    found = composed([member("a", 1)], type="code_judge", path=command)
    assert (found.score, found.passed) == (0.5, True)


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"evaluators": []}, "evaluators"),
        ({"evaluators": [{"name": "a", "type": "nope"}]}, "evaluators[0]"),
        ({"evaluators": [{"name": "a", "type": "cost", "config": {"budget": -1}}]}, "evaluators[0].budget"),
        ({"evaluators": [{"name": "a", "type": "cost", "config": {"budget": 1}}], "aggregator": {"type": "vote"}},
         "aggregator.type"),
        ({"evaluators": [{"name": "a", "type": "cost", "config": {"budget": 1}}],
          "aggregator": {"type": "safety_gate", "required": ["z"]}}, "aggregator.required"),
        ({"evaluators": [{"name": "a", "type": "cost", "config": {"budget": 1}}],
          "aggregator": {"type": "weighted_average", "weights": {"z": 1}}}, "aggregator.weights"),
        ({"evaluators": [{"name": "a", "type": "cost", "config": {"budget": 1}}],
          "aggregator": {"type": "minimum", "threshold": 0.5}}, "aggregator.threshold"),
        ({"evaluators": [{"name": "a", "type": "contains_text", "all_of": ["x"]}]}, "evaluators[0].all_of"),
    ],
)  # fmt: skip
def test_composites_that_cannot_be_built_are_refused(config, key):
    with pytest.raises(InputError) as raised:
        build_evaluator("composite", config)
    assert raised.value.problems[0].key == key
