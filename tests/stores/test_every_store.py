"""What holds in every store that outlives its process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from evalwright.errors import InputError, RunLockedError, StorageError
from evalwright.files.masker import MASKED, Masker
from evalwright.model.artifact import FilesystemArtifact, FilesystemDiff
from evalwright.model.plan import Variant
from evalwright.model.protocols import RunWriter
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.trace import Output, Trace
from evalwright.testing import a_case, a_plan, a_result, a_summary, a_trace, a_verdict
from stores.stores import Kept, an_artifact, append_cell, filled

SECRET = "sk-5ecret/with+odd%chars"


def test_cases_with_one_id_are_kept_apart(kept: Kept) -> None:
    writer = kept.store().create(a_plan(), [a_case(), a_case(occurrence=2)], {})
    for number, occurrence in enumerate(({}, {"occurrence": 2})):
        writer.append_trace(a_trace(case_index=number, **occurrence))
        writer.append_results([a_result(**occurrence)])
        writer.append_verdict(a_verdict(**occurrence))
    writer.close()
    reader = kept.store().read(writer.plan.run_id)
    records = [*reader.traces(Trace), *reader.results(EvaluationResult), *reader.verdicts(CaseVerdict)]
    assert [record.case_key for record in records] == ["c1", "c1#2"] * 3
    assert [case.key for case in reader.cases()] == ["c1", "c1#2"]
    reader.close()


def test_a_mistake_in_the_cases_goes_through_and_leaves_nothing(kept: Kept) -> None:
    def cases() -> Iterator[Case]:
        yield a_case()
        raise InputError("cases.jsonl:2 is wrong")

    with pytest.raises(InputError, match="is wrong"):
        kept.store().create(a_plan(), cases(), {})
    assert kept.store().run_ids() == []


def test_the_plan_says_how_many_cases_there_are(kept: Kept) -> None:
    run_id = filled(kept)
    with closing(kept.store().read(run_id)) as reader:
        assert reader.plan is not None
        assert reader.plan.cases_total == 3


def test_a_reader_knows_whether_a_run_is_being_written(kept: Kept) -> None:
    other = filled(kept)
    writer = kept.store().create(a_plan(), [a_case()], {})
    assert [kept.store().is_written(run_id) for run_id in (writer.plan.run_id, other)] == [True, False]
    writer.close()
    assert not kept.store().is_written(writer.plan.run_id)


def test_a_taken_id_gets_a_number(kept: Kept) -> None:
    assert [filled(kept, 1) for _ in range(3)] == [a_plan().run_id + ending for ending in ("", "-2", "-3")]


def test_runs_are_listed_by_their_start(kept: Kept) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for days, name in ((2, "a"), (1, "c"), (3, "b")):
        plan = a_plan(run_id=name, started_at=start + timedelta(days=days))
        kept.store().create(plan, [], {}).close()
    assert kept.store().run_ids() == ["c", "a", "b"]


def test_an_unknown_run_is_refused(kept: Kept) -> None:
    run_id = filled(kept, 1)
    for ask in (kept.store().read, kept.store().open):
        with pytest.raises(InputError, match=run_id):
            ask(run_id + "x")


def test_a_second_writer_is_told_who_the_first_is(kept: Kept) -> None:
    run_id = filled(kept, 1)
    first = kept.store().open(run_id)
    with pytest.raises(RunLockedError, match=f"process {os.getpid()} on host "):
        kept.store().open(run_id)
    other = kept.store().create(a_plan(), [a_case()], {})  # another run is another matter
    append_cell(other, "c0")
    other.close()
    first.close()
    kept.store().open(run_id).close()


HOLDING = """
import os, sys, time
from pathlib import Path
from stores.stores import Kept
kept = Kept(sys.argv[1], Path(sys.argv[2]))
kept.schema = sys.argv[4]
writer = kept.store().open(sys.argv[3])
if os.fork() == 0:
    print(os.getpid(), flush=True)
    time.sleep(60)
time.sleep(0.2)
os.kill(os.getpid(), 9)
"""


@pytest.mark.slow("processes that are killed")
def test_the_death_of_a_writer_frees_its_run_whatever_its_children_do(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = filled(kept, 1)
    code = HOLDING
    if kept.kind == "postgres":
        from postgres_server import server_dsn

        monkeypatch.setenv("TEST_DSN", server_dsn())
        code = f'import os, stores.stores as s\ns.server_dsn = lambda: os.environ["TEST_DSN"]\n{HOLDING}'
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    command = [sys.executable, "-c", code, kept.kind, str(kept.folder), run_id, kept.schema]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.wait()
        try:
            opened_soon(kept, run_id).close()
        finally:
            os.kill(child, 9)


def opened_soon(kept: Kept, run_id: str) -> RunWriter:
    """The run for writing; a server may need a moment to miss a dead client."""
    for _ in range(200):
        try:
            return kept.store().open(run_id)
        except RunLockedError:
            threading.Event().wait(0.02)
    return kept.store().open(run_id)


def test_a_closed_writer_refuses_more(kept: Kept) -> None:
    writer = kept.store().create(a_plan(), [a_case()], {})
    writer.close()
    with pytest.raises(StorageError, match="closed"):
        writer.append_trace(a_trace())


def test_what_was_synced_is_seen_by_others_while_the_run_goes_on(kept: Kept) -> None:
    writer = kept.store().create(a_plan(), [a_case()], {})
    append_cell(writer, "a")
    writer.sync()
    reader = kept.store().read(a_plan().run_id)
    assert [v.case_id for v in reader.verdicts(CaseVerdict)] == ["a"]
    append_cell(writer, "b")
    writer.sync()
    assert [v.case_id for v in reader.verdicts(CaseVerdict)] == ["a", "b"]
    reader.close()
    writer.close()


@pytest.mark.slow("writes thousands of records")
def test_what_was_written_leaves_nothing_in_memory(kept: Kept) -> None:
    trace, results, verdict = a_trace(), (a_result(),), a_verdict()
    with closing(kept.store().create(a_plan(), [a_case()], {})) as writer:

        def blocks_after(times: int) -> int:
            for _ in range(times):
                writer.append_trace(trace)
                writer.append_results(results)
                writer.append_verdict(verdict)
            writer.sync()
            return sys.getallocatedblocks()

        listed = [blocks_after(300) for _ in range(5)]
    # of several rounds, as caches fill and collections happen in any of them
    assert min(later - earlier for earlier, later in pairwise(listed)) < 150


def test_syncing_from_another_thread_loses_and_doubles_nothing(kept: Kept) -> None:
    writer = kept.store().create(a_plan(), [a_case()], {})
    done = threading.Event()

    def keep_durable() -> None:
        while not done.is_set():
            writer.sync()

    thread = threading.Thread(target=keep_durable)
    thread.start()
    for number in range(400):
        append_cell(writer, f"c{number}")
    done.set()
    thread.join()
    writer.close()
    reader = kept.store().read(a_plan().run_id)
    for records in (reader.traces(Trace), reader.results(EvaluationResult), reader.verdicts(CaseVerdict)):
        assert [record.case_id for record in records] == [f"c{number}" for number in range(400)]
    reader.close()


def test_a_judgement_anew_is_seen_whole_or_not_at_all(kept: Kept) -> None:
    run_id = filled(kept)
    writer = kept.store().open(run_id)
    reader = kept.store().read(run_id)
    judgements = writer.rewrite_judgements()
    share = judgements.share(0)
    share.append_results([a_result(case_id="c9")])
    share.append_verdict(a_verdict(case_id="c9"))
    share.close()
    half = reader.results(EvaluationResult)
    seen = [next(half).case_id]
    judgements.commit()
    seen += [result.case_id for result in half]
    assert seen == ["c0", "c1", "c2"]
    assert [result.case_id for result in reader.results(EvaluationResult)] == ["c9"]
    reader.close()
    writer.close()


def test_a_share_that_was_never_finished_forbids_the_commit(kept: Kept) -> None:
    writer = kept.store().open(filled(kept))
    judgements = writer.rewrite_judgements()
    judgements.share(0).append_results([a_result()])
    with pytest.raises(StorageError, match="share 0"):
        judgements.commit()
    judgements.abandon()
    assert len(list(writer.results(EvaluationResult))) == 3
    writer.close()


def test_no_secret_is_kept(kept: Kept) -> None:
    masker = Masker({"API_KEY": SECRET})
    store = kept.store(masker, {"team": SECRET})
    cases = [a_case(id=f"c-{SECRET}", input=SECRET)]
    writer = store.create(a_plan(metadata={"key": SECRET}), cases, {"config.yaml": f"k: {SECRET}\n".encode()})
    append_cell(writer, f"c-{SECRET}", output=Output(SECRET))
    writer.save_summary(a_summary(config_path=SECRET))
    writer.save_plan(a_plan(run_id=a_plan().run_id, metadata={"key": SECRET, "more": 1}))
    writer.save_artifact(an_artifact(diff=FilesystemDiff(added=[SECRET])))
    judgements = writer.rewrite_judgements()
    judgements.share(0).append_results([a_result(case_id=f"c-{SECRET}", reason=SECRET)])
    judgements.share(0).close()
    judgements.commit()
    writer.close()
    assert [found for found in kept.everything() if SECRET.encode() in found] == []
    reader = kept.store().read(a_plan().run_id)
    assert reader.plan is not None
    assert (reader.plan.metadata["more"], SECRET in str(reader.plan.metadata["key"])) == (1, False)
    assert [trace.case_id for trace in reader.traces(Trace)] == [f"c-{MASKED}"]
    reader.close()


def test_a_new_run_is_read_back_with_its_secrets_until_it_is_closed(kept: Kept) -> None:
    masker = Masker({"API_KEY": SECRET})
    with closing(kept.store(masker).create(a_plan(metadata={"key": SECRET}), [a_case(input=SECRET)], {})) as writer:
        assert [case.input for case in writer.cases()] == [SECRET]
        assert writer.plan.metadata["key"] == SECRET
        assert writer.mask(f"say {SECRET}") == f"say {MASKED}"
    with closing(kept.store(masker).open(a_plan().run_id)) as writer:
        assert [SECRET in str(case.input) for case in writer.cases()] == [False]
        assert writer.mask(f"say {SECRET}") == f"say {MASKED}"


def test_the_newest_artifact_of_a_cell_is_kept_in_its_folder(kept: Kept) -> None:
    writer = kept.store().create(a_plan(), [a_case()], {})
    for attempt in (1, 2):
        writer.save_artifact(an_artifact(attempt=attempt))
    writer.close()
    reader = kept.store().read(a_plan().run_id)
    stored = (reader.artifacts / "c0" / "v1" / "artifact.json").read_bytes()
    reader.close()
    assert msgspec.json.decode(stored, type=FilesystemArtifact).attempt == 2
    if kept.kind != "local_files":
        assert kept.query("SELECT case_id, attempt FROM artifacts") == [("c0", 2)]


@pytest.mark.parametrize("path", ["../c0", "artifacts/../../c0", "/etc", "artifacts"])
def test_an_artifact_stays_in_its_run(kept: Kept, path: str) -> None:
    writer = kept.store().create(a_plan(), [a_case()], {})
    with pytest.raises(StorageError, match="not an artifact folder"):
        writer.save_artifact(an_artifact(artifacts_path=path))
    writer.close()


def test_documents_and_summary_of_a_run_are_stored(kept: Kept) -> None:
    writer = kept.store().create(a_plan(), [a_case()], {"config.yaml": b"a: 1\n"})
    writer.save_summary(a_summary(config_path="mine.yaml"))
    writer.close()
    with closing(kept.store().read(a_plan().run_id)) as reader:
        assert (summary := reader.summary()) is not None
        assert summary.config_path == "mine.yaml"
        assert (reader.document("config.yaml"), reader.document("other.yaml")) == (b"a: 1\n", None)
    assert any(b"a: 1" in stored for stored in kept.everything())


def test_a_case_outside_of_the_dataset_is_an_error_and_not_another_case(kept: Kept) -> None:
    with closing(kept.store().read(filled(kept))) as reader:
        assert reader.case(2).id == "c2"
        for position in (-1, 3):
            with pytest.raises(InputError):
                reader.case(position)


def test_a_writer_divides_what_it_has_not_written_yet(kept: Kept) -> None:
    with closing(kept.store().create(a_plan(), [a_case(id=f"c{i}") for i in range(3)], {})) as writer:
        for number in range(3):
            append_cell(writer, f"c{number}", case_index=number)
        listed = [trace.case_id for part in writer.parts(2) for trace in writer.traces(Trace, part)]
    assert sorted(listed) == ["c0", "c1", "c2"]


def test_a_variant_whose_name_is_a_secret_keeps_its_name_in_what_is_written_later(kept: Kept) -> None:
    masker = Masker({"TOKEN": "hush-hush"})
    kept.store(masker).create(a_plan(variants=[Variant("hush-hush", "replay")]), [a_case()], {}).close()
    with closing(kept.store(masker).open(a_plan().run_id)) as writer:
        writer.append_trace(a_trace(variant_name="hush-hush", output=Output("hush-hush and more")))
    with closing(kept.store().read(a_plan().run_id)) as reader:
        [trace] = reader.traces(Trace)
    assert (trace.variant_name, trace.output.final_answer) == ("hush-hush", f"{MASKED} and more")
