"""A suite becomes traces, results, verdicts and a summary."""

import msgspec
import pytest

from evalwright.errors import InputError
from evalwright.model.plan import EvaluatorSpec, RetryRule, Variant
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Trace
from evalwright.run.options import RunOptions
from evalwright.run.plan import config_hash
from evalwright.run.resumption import resume
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from evalwright.session import Session, refuse_network
from run.suites import SAYS_DONE, SAYS_LAST, suite


def records(outcome):
    reader, _ = open_run(outcome.run_dir)
    return (
        {(t.case_id, t.variant_name, t.trial): t for t in reader.traces(Trace)},
        list(reader.results(EvaluationResult)),
        {(v.case_id, v.variant_name, v.trial): v for v in reader.verdicts(CaseVerdict)},
    )


@pytest.mark.parametrize("target", ["agents:echo", "agents:echo_sync", "agents:awaitable"])
def test_every_target_kind_is_called_once_a_cell(tmp_path, agents, target):
    outcome = run_suite(suite(tmp_path, ["done", "no"], target))
    assert sorted(agents.calls) == ["c0", "c1"]
    traces, results, verdicts = records(outcome)
    assert {key[0]: t.output.final_answer for key, t in traces.items()} == {"c0": "done", "c1": "no"}
    assert {r.case_id: (r.passed, r.score) for r in results} == {"c0": (True, 1.0), "c1": (False, 0.0)}
    assert {key[0]: v.status for key, v in verdicts.items()} == {"c0": "pass", "c1": "fail"}
    assert outcome.exit_code == 1


def test_an_answer_without_anything_to_judge_is_an_error_unless_it_may_be(tmp_path):
    allowed = {"target": "agents:silent", "allow_missing": ["final_answer"]}
    variants = [
        Variant("strict", "python_function", {"target": "agents:silent"}),
        Variant("allowed", "python_function", allowed),
        Variant("evalh", "python_function", {"target": "agents:silent"}, evalh_rules=True),
    ]
    is_empty_answer = EvaluatorSpec("says", "contains_text", {"none_of": ["secret"]})
    outcome = run_suite(suite(tmp_path, ["x"], variants=variants, evaluators=[is_empty_answer]))
    traces, _, verdicts = records(outcome)
    assert {key[1]: v.status for key, v in verdicts.items()} == {"strict": "error", "allowed": "pass", "evalh": "pass"}
    assert "allow_missing" in traces["c0", "strict", 0].error.message
    assert traces["c0", "strict", 0].extra == {"seen": True}


def test_cells_are_cases_times_variants_times_trials(tmp_path):
    variants = [
        Variant("a", "python_function", {"target": "agents:echo"}),
        Variant("b", "python_function", {"target": "agents:echo"}, trials=1),
    ]
    outcome = run_suite(suite(tmp_path, ["done", "done"], variants=variants, trials=3))
    traces, _, verdicts = records(outcome)
    expected = {(c, "a", t) for c in ("c0", "c1") for t in range(3)} | {("c0", "b", 0), ("c1", "b", 0)}
    assert traces.keys() == verdicts.keys() == expected
    assert outcome.summary.cells_total == 8
    assert outcome.exit_code == 0


def test_retries_end_with_the_first_answer_and_are_recorded(tmp_path, agents):
    rule = RetryRule(max_attempts=3, on=["adapter_error"])
    outcome = run_suite(suite(tmp_path, [1, 2, 3, 4], "agents:flaky", evaluators=[SAYS_LAST], retry=rule))
    traces, _, verdicts = records(outcome)
    assert [agents.calls.count(f"c{i}") for i in range(4)] == [1, 2, 3, 3]
    assert [verdicts[f"c{i}", "main", 0].status for i in range(4)] == ["pass", "pass", "pass", "error"]
    assert traces["c2", "main", 0].metrics.custom["retries"] == 2
    assert outcome.exit_code == 3


def test_errors_that_are_not_listed_are_not_tried_again(tmp_path, agents):
    outcome = run_suite(suite(tmp_path, [2], "agents:flaky", retry=RetryRule(max_attempts=3)))
    assert agents.calls == ["c0"]
    assert records(outcome)[0]["c0", "main", 0].error.type == "adapter_error"


def test_a_late_call_is_a_timeout_and_keeps_its_input(tmp_path):
    outcome = run_suite(suite(tmp_path, [30, 0], "agents:slow", timeout=0.3))
    traces, _, verdicts = records(outcome)
    late = traces["c0", "main", 0]
    assert (late.error.type, late.input) == ("timeout", 30)
    assert 250 <= late.latency_ms < 5000
    assert verdicts["c1", "main", 0].status == "pass"


def test_no_time_passes_for_a_call_that_waits_for_money_in_two_places(tmp_path):
    outcome = run_suite(suite(tmp_path, ["x"], "agents:waits_for_two", timeout=0.8))
    assert records(outcome)[0]["c0", "main", 0].error is None


def test_a_target_cannot_change_what_others_see(tmp_path):
    outcome = run_suite(suite(tmp_path, [{"a": 1}], "agents:mutates", trials=2))
    traces, _, _ = records(outcome)
    assert all(trace.input == {"a": 1} for trace in traces.values())


def test_a_factory_is_called_once(tmp_path, agents):
    outcome = run_suite(suite(tmp_path, [1, 2], "agents:Factory", config={"init_kwargs": {"word": "done"}}))
    assert agents.Factory.made == 1
    assert outcome.exit_code == 0


def test_tool_use_is_derived_from_messages(tmp_path):
    outcome = run_suite(suite(tmp_path, [1], "agents:tools_in_messages"))
    trace = records(outcome)[0]["c0", "main", 0]
    assert [(c.name, c.arguments) for c in trace.tool_calls] == [("look", {"at": 3})]
    assert [(r.name, r.content) for r in trace.tool_results] == [("look", {"seen": True})]


def test_what_a_target_says_of_its_tools_goes_before_its_messages(tmp_path):
    outcome = run_suite(suite(tmp_path, [1], "agents:tools_in_messages_and_results"))
    trace = records(outcome)[0]["c0", "main", 0]
    assert [(c.name, c.arguments) for c in trace.tool_calls] == [("look", {"at": 3})]
    assert [(r.name, r.content) for r in trace.tool_results] == [("look", "said elsewhere")]


def test_the_runner_measures_and_the_target_reports(tmp_path):
    outcome = run_suite(suite(tmp_path, [1], "agents:measures"))
    trace = records(outcome)[0]["c0", "main", 0]
    assert trace.latency_ms >= 50
    assert trace.latency_ms == int((trace.finished_at - trace.started_at).total_seconds() * 1000)
    assert outcome.summary.variants[0].cost_total_usd == 0.25


@pytest.mark.slow("starts isolated workers")
def test_isolated_targets_answer_like_others(tmp_path):
    variants = [Variant("main", "python_function", {"target": "agents:echo"}, isolation="process")]
    outcome = run_suite(suite(tmp_path, ["done"] * 5, variants=variants))
    traces, _, _ = records(outcome)
    assert {t.output.final_answer for t in traces.values()} == {"done"}


@pytest.mark.slow("starts an isolated worker")
def test_isolated_targets_have_no_network_where_the_run_has_none(tmp_path):
    variants = [Variant("main", "python_function", {"target": "agents:connects"}, isolation="process")]
    with Session():
        refuse_network()
        outcome = run_suite(suite(tmp_path, ["x"], variants=variants))
    assert "--no-network" in records(outcome)[0]["c0", "main", 0].error.message


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (RunOptions(cases=["c[01]", "c9"]), {"c0", "c1"}),
        (RunOptions(limit=2), {"c0", "c1"}),
        (RunOptions(limit=0), set()),
    ],
)
def test_options_choose_cases(tmp_path, options, ids):
    chosen = suite(tmp_path, ["done"] * 12)
    if not ids:
        with pytest.raises(InputError, match="no case"):
            run_suite(chosen, options)
        assert not list((tmp_path / "runs").glob("*"))
        return
    traces, _, _ = records(run_suite(chosen, options))
    assert {key[0] for key in traces} == {*ids, *({"c9"} if "c9" in options.cases else ())}


def test_another_target_can_be_named(tmp_path):
    outcome = run_suite(suite(tmp_path, ["x"], "agents:echo"), RunOptions(target="agents:measures"))
    assert records(outcome)[0]["c0", "main", 0].output.final_answer == "done"
    with pytest.raises(InputError, match="main"):
        run_suite(suite(tmp_path, ["x"]), RunOptions(target="mian"))


def test_a_target_that_cannot_be_built_is_told_before_there_is_a_run_folder(tmp_path):
    with pytest.raises(InputError, match="nothing_here"):
        run_suite(suite(tmp_path, ["x"]), RunOptions(target="agents:nothing_here"))
    assert not (tmp_path / "runs").exists()


def test_a_run_says_in_which_folder_it_was_put(tmp_path):
    made = suite(tmp_path, ["x"])
    assert open_run(run_suite(made).run_dir)[1].store == made.store
    stored = open_run(run_suite(made, RunOptions(out=tmp_path / "here")).run_dir)[1].store
    assert (stored.type, stored.config) == ("local_files", {"path": str(tmp_path / "here")})


def test_an_evaluator_that_raises_spoils_only_its_own_row(tmp_path):
    bad = EvaluatorSpec("bad", "contains_text", {"field": "$[?", "all_of": ["x"]})
    outcome = run_suite(suite(tmp_path, ["done"], evaluators=[bad, SAYS_DONE]))
    _, results, verdicts = records(outcome)
    by_name = {row.evaluator: row for row in results}
    assert by_name["bad"].error is not None
    assert by_name["says_done"].passed
    assert verdicts["c0", "main", 0].status != "pass"


def test_stored_records_are_plain_json_lines(tmp_path):
    outcome = run_suite(suite(tmp_path, ["line one\u2028line two\x85"]))
    for name in ("traces.jsonl", "results.jsonl", "verdicts.jsonl", "cases.jsonl"):
        text = (outcome.run_dir / name).read_text()
        assert [msgspec.json.decode(line) for line in text.splitlines()]


def test_a_summary_that_is_lost_is_made_again_byte_for_byte(tmp_path, agents):
    outcome = run_suite(suite(tmp_path, ["done", "no"], "agents:echo"))
    path = outcome.run_dir / "summary.yaml"
    before = path.read_bytes()
    path.unlink()
    resume(outcome.run_dir)
    assert path.read_bytes() == before


def test_every_result_has_a_reason(tmp_path, agents):
    _, results, _ = records(run_suite(suite(tmp_path, ["done", "no"], "agents:echo")))
    assert all(row.reason for row in results)


def test_the_hash_of_a_suite_is_that_of_what_it_says_in_whatever_order(tmp_path):
    made = suite(tmp_path, ["x"])
    made.document = {"run": {"trials": 2, "seed": 1}, "eval": {"name": "t"}}
    hashed = config_hash(made)
    made.document = {"eval": {"name": "t"}, "run": {"seed": 1, "trials": 2}}
    assert config_hash(made) == hashed
    made.document = {"eval": {"name": "t"}, "run": {"seed": 1, "trials": 3}}
    assert config_hash(made) != hashed
