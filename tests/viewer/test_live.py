"""A run while it is written: what the page says of it, without a lock and without reading anything twice."""

from __future__ import annotations

import os
from contextlib import closing

from evalwright.cli.viewed_runs import StoredRun, runs_at
from evalwright.model.plan import Shard
from evalwright.run.start import run_suite
from evalwright.stores.sqlite import Sqlite
from evalwright.testing import a_case, a_plan, a_result, a_trace, a_verdict
from evalwright.viewer.live import LiveRun
from run.suites import suite
from viewer.reading import page, seen
from viewer.runs import cut_short, made_run, site, site_of


def test_progress_counts_whole_lines_as_they_come(tmp_path):
    run = made_run(tmp_path, trials=2)
    verdicts = (run / "verdicts.jsonl").read_bytes().splitlines(keepends=True)
    (run / "verdicts.jsonl").write_bytes(b"".join(verdicts[:5]) + verdicts[5][:20])
    (run / ".lock").write_text(f"{os.getpid()} {os.uname().nodename}\n")
    source = StoredRun(run)
    live = LiveRun(source, source.open()[1], lambda position: f"case-{position}", scored=False)
    begun = live._look()
    assert (begun.state, begun.done, begun.total, begun.text) == ("running", 5, 14, "5 of 14 cells")
    assert begun.running == ["case-2, agent, trial 2: waits for its evaluators"]
    assert begun.spent.startswith("$0.0")
    (run / "verdicts.jsonl").write_bytes(b"".join(verdicts))
    (run / ".lock").write_text("")
    over = live._look()
    assert (over.state, over.done, over.failed, over.errors, over.running) == ("finished", 14, 5, 2, [])
    assert over.spent == begun.spent
    assert source.appended("verdicts", live._offsets["verdicts"]) == ([], live._offsets["verdicts"])


def test_the_progress_of_a_shard_is_that_of_its_own_cells(tmp_path):
    run = made_run(tmp_path, trials=2, shard=Shard(2, 3))
    (run / "manifest.json").unlink()
    verdicts = (run / "verdicts.jsonl").read_bytes().splitlines(keepends=True)
    (run / "verdicts.jsonl").write_bytes(b"".join(verdicts[:3]))
    (run / ".lock").write_text(f"{os.getpid()} {os.uname().nodename}\n")
    source = StoredRun(run)
    live = LiveRun(source, source.open()[1], lambda position: f"case-{position}", scored=False)
    begun = live._look()
    assert (begun.state, begun.done, begun.total) == ("running", 3, 4)
    assert begun.running == ["case-4, agent, trial 2: waits for its evaluators"]
    (run / "verdicts.jsonl").write_bytes(b"".join(verdicts))
    (run / ".lock").write_text("")
    over = live._look()
    assert (over.state, over.done, over.total) == ("finished", 4, 4)


def test_the_page_of_a_run_says_whether_it_goes_on(tmp_path):
    run = made_run(tmp_path, trials=1)
    cut_short(run)
    with site(run.parent) as client:
        assert "running" in seen(page(client, "/"))
        text = page(client, f"/runs/{run.name}")
        assert 'aria-valuetext="6 of 7 cells' in text
        assert '<ul aria-label="Running now" data-running><li>attack' in text
        assert "agent: waits for the system</li>" in text
        (run / ".lock").unlink()
        said = client.get(f"/runs/{run.name}/events").text
        assert '"state":"interrupted"' in said
        assert "Resume with: evalwright resume" in seen(page(client, f"/runs/{run.name}"))


def test_a_run_whose_system_was_stopped_for_its_errors_is_continued_by_retry(tmp_path):
    suite_of_errors = suite(tmp_path, ["word"] * 5, "agents:broken_or_not", stop_after_errors=2, max_concurrency=1)
    run = run_suite(suite_of_errors).run_dir
    with site(run.parent) as client:
        text = seen(page(client, f"/runs/{run.name}"))
    assert "interrupted" in text
    assert "Resume with: evalwright retry" in text


def test_the_list_says_that_a_finished_run_is_being_retried(tmp_path):
    run = made_run(tmp_path, trials=1)
    with site(run.parent) as client:
        assert "running" not in seen(page(client, "/"))
        (run / ".lock").write_text(f"{os.getpid()} {os.uname().nodename}\n")
        assert "running" in seen(page(client, "/"))


def test_the_page_of_a_run_in_a_database_says_whether_it_goes_on(tmp_path):
    file = tmp_path / "runs.sqlite"
    with site_of(lambda: runs_at([file])) as client:
        with closing(Sqlite(file).create(a_plan(), [a_case(), a_case(id="c2")], {})) as writer:
            writer.append_trace(a_trace(case_index=0))
            writer.append_results([a_result()])
            writer.append_verdict(a_verdict(case_index=0))
            text = page(client, f"/runs/{writer.plan.run_id}")
            assert 'aria-valuetext="1 of 2 cells' in text
            assert "Resume with" not in text
        assert "Resume with: evalwright resume" in seen(page(client, f"/runs/{writer.plan.run_id}"))
