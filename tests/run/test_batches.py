"""`re-evaluate --batch`: stored traces judged by models that are asked in batches."""

from contextlib import closing

import pytest

from evalwright.errors import InputError
from evalwright.files.user_folder import user_folder
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.result import EvaluationResult
from evalwright.run.batches import JudgeCalls, in_batches
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from evalwright.testing import MemoryStore, a_case, a_plan
from llm.providers import judge, providing_in_a_thread
from run.suites import suite

MODELS = ("gpt-4o-mini", "claude-haiku-4-5")


@pytest.fixture
def server(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    with providing_in_a_thread(judge) as server:
        server.polls_until_done = 1
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        yield server


def judged(tmp_path):
    specs = [EvaluatorSpec(model, "llm_judge", {"model": model, "nl_assertions": ["x"]}) for model in MODELS]
    return run_suite(suite(tmp_path, ["a", "b", "c"], evaluators=specs))


def costs(run):
    reader, _ = open_run(run)
    return {(row.case_id, row.evaluator): (row.passed, row.cost_usd) for row in reader.results(EvaluationResult)}


def test_all_traces_are_judged_in_one_batch_a_model_for_half_the_money(tmp_path, server):
    first = judged(tmp_path)
    live = costs(first.run_dir)
    server.requests.clear()
    again = re_evaluate(first.run_dir, batch=True)
    assert again.exit_code == 0
    assert costs(first.run_dir) == {key: (True, pytest.approx(cost / 2)) for key, (_, cost) in live.items()}
    assert len(live) == 6
    assert [len(questions) for _, questions in server.batches.values()] == [3, 3]
    assert not [path for _, path, *_ in server.requests if path in ("/v1/chat/completions", "/v1/messages")]
    assert again.plan.run.evaluator_timeout_seconds == 60
    re_evaluate(first.run_dir, batch=True)  # nothing is left of the first: what is asked again is paid again
    assert len(server.batches) == 4


def test_what_cannot_be_asked_in_batches_is_told_before_anything_is_replaced(tmp_path, server):
    first = judged(tmp_path)
    spec = EvaluatorSpec("own", "llm_judge", {"model": "python:llm.test_models:gateway", "nl_assertions": ["x"]})
    other = suite(tmp_path / "other", ["a"], evaluators=[spec])
    before = costs(first.run_dir)
    with pytest.raises(InputError, match="does not support batches"):
        re_evaluate(first.run_dir, suite=other, batch=True)
    assert costs(first.run_dir) == before


@pytest.mark.parametrize("status", [404, 405, 401, 500])
def test_a_server_that_takes_no_batches_costs_no_verdict(tmp_path, server, monkeypatch, status):
    first = judged(tmp_path)
    before = costs(first.run_dir)
    server.refuses_batches = status
    with pytest.raises(InputError, match=f"--batch: HTTP {status}: .* Earlier results are kept"):
        re_evaluate(first.run_dir, batch=True)
    assert costs(first.run_dir) == before
    assert not [*(user_folder() / "batches").iterdir()]
    server.refuses_batches = 0
    assert re_evaluate(first.run_dir, batch=True).exit_code == 0


def test_the_user_s_folder_is_private_whoever_makes_it_first(tmp_path, server, monkeypatch):
    first = judged(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "new" / "cache"))
    re_evaluate(first.run_dir, batch=True)
    ours = tmp_path / "new" / "cache" / "evalwright"
    ours.chmod(0o755)  # as an earlier version left it
    re_evaluate(first.run_dir, batch=True)
    assert {oct(path.stat().st_mode)[-3:] for path in (ours.parent, ours, ours / "batches")} == {"700"}


@pytest.mark.parametrize(("asked", "at_once"), [(None, 10_000), (3, 3)])
def test_ten_thousand_cells_wait_for_a_batch_unless_another_number_is_asked_for(asked, at_once, server):
    with closing(MemoryStore().create(a_plan(), [a_case()], {})) as writer:
        assert in_batches(JudgeCalls(a_plan(), None, asked), writer).concurrency == at_once
