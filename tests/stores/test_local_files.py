"""Runs as folders: what they hold, how they get their names, and who may write to them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
import yaml

from evalwright.errors import InputError, RunLockedError, StorageError
from evalwright.files.masking import MASKED, Masker
from evalwright.model.plan import Plan, Variant
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case
from evalwright.model.summary import EvaluatorRate, EvaluatorRollup
from evalwright.model.trace import Output, Trace
from evalwright.stores.local_files import LocalFiles
from evalwright.stores.local_run import LocalWriter
from evalwright.testing import a_case, a_plan, a_result, a_summary, a_trace, a_verdict


def created(folder: Path, **plan: object) -> LocalWriter:
    return LocalFiles(folder).create(a_plan(**plan), [a_case()], {"config.yaml": b"a: 1\n"})


def closed(folder: Path) -> Path:
    writer = created(folder)
    writer.close()
    return writer.folder


def test_a_new_run_is_complete_from_the_start(tmp_path: Path) -> None:
    writer = created(tmp_path)
    names = {path.name for path in writer.folder.iterdir() if not path.name.startswith(".")}
    assert names == {"plan.json", "config.yaml", "cases.jsonl", "traces.jsonl", "results.jsonl", "verdicts.jsonl"}
    writer.close()


def test_the_given_plan_learns_its_id_and_its_number_of_cases(tmp_path: Path) -> None:
    created(tmp_path).close()
    plan = a_plan()
    writer = LocalFiles(tmp_path).create(plan, [a_case(id="a"), a_case(id="b")], {})
    assert (plan.run_id, plan.cases_total) == ("2026-01-02T03-04-05_demo-2", 2)
    assert writer.plan == plan
    writer.close()


def test_a_mistake_in_the_cases_goes_through_and_leaves_nothing(tmp_path: Path) -> None:
    def cases() -> Iterator[Case]:
        yield a_case()
        raise InputError("cases.jsonl:2 is wrong")

    with pytest.raises(InputError, match="is wrong"):
        LocalFiles(tmp_path).create(a_plan(), cases(), {})
    assert list(tmp_path.iterdir()) == []


def test_a_case_that_json_cannot_hold_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        LocalFiles(tmp_path).create(a_plan(), [a_case(input=object())], {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("run_id", "name"),
    [
        ("2026_ok-1.x", "2026_ok-1.x"),
        ("../../etc/passwd", "etc-passwd"),
        ("..", "run"),
        (".hidden", "hidden"),
        ("a b\n\0c/d", "a-b-c-d"),
        ("ü✓", "run"),
        ("x" * 5000, "x" * 120),
        ("", "run"),
    ],
)
def test_run_ids_are_safe_names(tmp_path: Path, run_id: str, name: str) -> None:
    writer = created(tmp_path / "runs", run_id=run_id)
    assert writer.folder == tmp_path / "runs" / name
    assert writer.plan is not None
    assert writer.plan.run_id == name
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    writer.close()


def test_runs_started_at_once_never_share_a_folder(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        writers = list(pool.map(lambda _: created(tmp_path), range(40)))
    base = "2026-01-02T03-04-05_demo"
    assert sorted(w.folder.name for w in writers) == sorted([base, *(f"{base}-{n}" for n in range(2, 41))])
    for writer in writers:
        writer.close()
    assert LocalFiles(tmp_path).run_ids() == [base, *(f"{base}-{n}" for n in range(2, 41))]


def test_runs_are_listed_by_their_start(tmp_path: Path) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    for name, hours in (("b", 1), ("a", 2), ("c", 0)):
        created(tmp_path, run_id=name, started_at=moment + timedelta(hours=hours)).close()
    (tmp_path / "no-run").mkdir()
    assert LocalFiles(tmp_path).run_ids() == ["c", "b", "a"]


def test_no_folder_means_no_runs(tmp_path: Path) -> None:
    assert LocalFiles(tmp_path / "missing").run_ids() == []


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="Not a directory"):
        created(tmp_path / "file" / "runs")


_DIE_IN_CREATE = """
import os, sys
from pathlib import Path
from evalwright.stores.local_files import LocalFiles
from evalwright.testing import a_case, a_plan
def cases():
    yield a_case()
    print("creating", flush=True)
    if sys.argv[2] == "die":
        os._exit(9)
    sys.stdin.read()
LocalFiles(Path(sys.argv[1])).create(a_plan(run_id="other"), cases(), {})
"""


def test_what_a_dead_process_left_half_made_is_removed(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", _DIE_IN_CREATE, str(tmp_path), "die"], check=False, capture_output=True)
    assert [path.name[:5] for path in tmp_path.iterdir()] == [".new-"]
    writer = created(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [writer.folder.name]
    writer.close()


def test_what_a_living_process_is_making_is_left_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _DIE_IN_CREATE, str(tmp_path), "live"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        child.stdout.readline()
        created(tmp_path).close()
        child.stdin.close()
        assert child.wait() == 0
    assert set(LocalFiles(tmp_path).run_ids()) == {"other", "2026-01-02T03-04-05_demo"}


def test_documents_are_names_not_paths(tmp_path: Path) -> None:
    for name in ("../x", "a/b", "plan.json/..", "cases.jsonl"):
        with pytest.raises(ValueError, match="not a name"):
            LocalFiles(tmp_path).create(a_plan(), [], {name: b""})
    assert list(tmp_path.iterdir()) == []


# one writer


def test_a_second_writer_is_told_who_the_first_is(tmp_path: Path) -> None:
    writer = created(tmp_path)
    with pytest.raises(RunLockedError, match=f"process {os.getpid()} on host "):
        LocalFiles(tmp_path).open(writer.folder.name)
    writer.close()


def test_the_right_to_write_comes_back_with_close(tmp_path: Path) -> None:
    writer = created(tmp_path)
    writer.close()
    writer.close()
    again = LocalFiles(tmp_path).open(writer.folder.name)
    assert again.location == writer.location
    again.close()


def test_readers_need_no_lock(tmp_path: Path) -> None:
    writer = created(tmp_path)
    writer.append_trace(a_trace())
    assert len(list(LocalFiles(tmp_path).read(writer.folder.name).traces(Trace))) == 1
    writer.close()


_COMPETE = """
import sys, time
from pathlib import Path
from evalwright.errors import RunLockedError
from evalwright.stores.local_files import LocalFiles
from evalwright.testing import a_trace
sys.stdin.readline()
try:
    writer = LocalFiles(Path(sys.argv[1])).open(sys.argv[2])
except RunLockedError:
    print("refused", flush=True)
else:
    writer.append_trace(a_trace())
    print("won", flush=True)
sys.stdin.readline()
"""


def test_of_two_processes_one_may_write_and_its_death_frees_the_run(tmp_path: Path) -> None:
    run_id = closed(tmp_path).name
    command = [sys.executable, "-c", _COMPETE, str(tmp_path), run_id]
    for _ in range(5):
        pair = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in "ab"]
        for child in pair:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        said = sorted(child.stdout.readline().strip() for child in pair if child.stdout is not None)
        for child in pair:
            child.kill()
            child.communicate()
        assert said == ["refused", "won"]
    assert len(list(LocalFiles(tmp_path).read(run_id).traces(Trace))) == 5


def test_a_forked_child_does_not_keep_the_run_locked(tmp_path: Path) -> None:
    code = """
import os, sys, time
from pathlib import Path
from evalwright.stores.local_files import LocalFiles
writer = LocalFiles(Path(sys.argv[1])).open(sys.argv[2])
if os.fork() == 0:
    print(os.getpid(), flush=True)
    time.sleep(60)
os.kill(os.getpid(), 9)
"""
    run_id = closed(tmp_path).name
    command = [sys.executable, "-c", code, str(tmp_path), run_id]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.wait()
        try:
            LocalFiles(tmp_path).open(run_id).close()
        finally:
            os.kill(child, 9)


# finding runs


def test_a_path_leads_to_its_run_through_links(tmp_path: Path) -> None:
    writer = created(tmp_path / "runs")
    writer.close()
    (tmp_path / "baseline").symlink_to(writer.folder)
    store, run_id = LocalFiles.at(tmp_path / "baseline")
    assert (store.folder, run_id) == (tmp_path / "runs", writer.folder.name)


def test_a_wrong_path_says_what_is_there(tmp_path: Path) -> None:
    created(tmp_path, run_id="2026-01-02_alpha").close()
    with pytest.raises(InputError, match="does not exist; runs next to it: 2026-01-02_alpha"):
        LocalFiles.at(tmp_path / "2026-01-02_alpah")
    with pytest.raises(InputError, match=r"is no run folder: it lacks traces\.jsonl or results\.jsonl"):
        LocalFiles.at(tmp_path)


@pytest.mark.parametrize("run_id", ["", ".", "..", "../runs/x", "/etc", "x/.", "missing"])
def test_run_ids_that_lead_elsewhere_are_refused(tmp_path: Path, run_id: str) -> None:
    created(tmp_path / "runs", run_id="x").close()
    with pytest.raises(InputError):
        LocalFiles(tmp_path / "runs").read(run_id)


# records


def test_lines_are_split_nowhere_but_at_their_ends(tmp_path: Path) -> None:
    text = "a\u2028b\u2029c\x85d\x0ce\r\nf\0g"
    writer = created(tmp_path)
    writer.append_trace(a_trace(output=Output(text)))
    writer.append_results([a_result(reason=text)] * 2)
    writer.append_verdict(a_verdict(reasons=[text]))
    for name, count in (("traces", 1), ("results", 2), ("verdicts", 1)):
        assert len((writer.folder / f"{name}.jsonl").read_text().splitlines()) == count
    assert [t.output.final_answer for t in writer.traces(Trace)] == [text]
    assert [r.reason for r in writer.results(EvaluationResult)] == [text, text]
    assert [v.reasons for v in writer.verdicts(CaseVerdict)] == [[text]]
    writer.close()


@pytest.mark.parametrize("value", ["x" * 1_000_000, "é" * 500_000, 10**40, [[[[["deep"]]]]], "\0" * 1000])
def test_large_and_odd_values_come_back(tmp_path: Path, value: object) -> None:
    writer = created(tmp_path)
    writer.append_trace(a_trace(input=value))
    writer.append_trace(a_trace())
    assert [t.input for t in writer.traces(Trace)] == [value, {"user_message": "Hello"}]
    writer.close()


def _endless() -> list[object]:
    value: list[object] = []
    value.append(value)
    return value


@pytest.mark.parametrize("value", ["\ud800", object(), {(1, 2): 3}, _endless()])
def test_what_json_cannot_hold_is_refused_without_half_a_line(tmp_path: Path, value: object) -> None:
    writer = created(tmp_path)
    writer.append_trace(a_trace(case_id="before"))
    with pytest.raises((TypeError, ValueError)):
        writer.append_trace(a_trace(input=value))
    with pytest.raises((TypeError, ValueError)):
        writer.append_results([a_result(), a_result(detail={"x": value})])
    writer.append_trace(a_trace(case_id="after"))
    assert [t.case_id for t in writer.traces(Trace)] == ["before", "after"]
    assert list(writer.results(EvaluationResult)) == []
    writer.close()


def test_parts_cover_every_trace_once(tmp_path: Path) -> None:
    writer = created(tmp_path)
    for number in range(20):
        writer.append_trace(a_trace(case_id="x" * number * 37, trial=number))
    for count in range(1, 30):
        parts = writer.parts(count)
        assert len(parts) <= count
        assert [t.trial for part in parts for t in writer.traces(Trace, part)] == list(range(20))
    writer.close()


def test_a_run_without_traces_has_no_parts(tmp_path: Path) -> None:
    writer = created(tmp_path)
    assert writer.parts(4) == []
    writer.close()


def test_cases_are_found_by_position(tmp_path: Path) -> None:
    cases = [a_case(id=f"c{i}", recorded=msgspec.Raw(b'{"a":1}')) for i in range(50)]
    writer = LocalFiles(tmp_path).create(a_plan(), cases, {})
    assert [writer.case(i).id for i in (49, 0, 7)] == ["c49", "c0", "c7"]
    assert [case.id for case in writer.cases(47)] == ["c47", "c48", "c49"]
    assert bytes(writer.case(3).recorded) == b'{"a":1}'
    for index in (50, -1):
        with pytest.raises(IndexError):
            writer.case(index)
    writer.close()


def test_a_recorded_trace_in_several_lines_is_kept_in_one(tmp_path: Path) -> None:
    cases = [a_case(recorded=msgspec.Raw(b'{\n  "a": "x\\ny"\n}')), a_case(id="c2")]
    writer = LocalFiles(tmp_path).create(a_plan(), cases, {})
    assert msgspec.json.decode(writer.case(0).recorded) == {"a": "x\ny"}
    assert writer.case(1).id == "c2"
    writer.close()


def test_a_part_of_a_record_can_be_asked_for(tmp_path: Path) -> None:
    class Mark(msgspec.Struct):
        case_id: str

    writer = created(tmp_path)
    writer.append_trace(a_trace())
    assert list(writer.traces(Mark)) == [Mark("c1")]
    writer.close()


# judgements anew


def rewritten(writer: LocalWriter) -> None:
    judgements = writer.rewrite_judgements()
    share = judgements.share(0)
    share.append_results([a_result(reason="new")])
    share.append_verdict(a_verdict(reasons=["new"]))
    share.close()
    judgements.commit()


def story(folder: Path) -> set[str]:
    reader = LocalFiles(folder.parent).read(folder.name)
    results = {r.reason for r in reader.results(EvaluationResult)}
    return results | {v.reasons[0] for v in reader.verdicts(CaseVerdict)}


_COPY_AT_EACH_STEP = """
import shutil, sys
from pathlib import Path
from evalwright.stores.local_files import LocalFiles
from evalwright.testing import a_plan, a_result, a_verdict

def copy(event, _):
    if watching and event in ("os.rename", "os.remove", "os.rmdir", "shutil.rmtree"):
        watching.clear()
        shutil.copytree(writer.folder, Path(sys.argv[1], f"copy{copies.pop()}"))
        watching.append(True)

def judged(word, to):
    to.append_results([a_result(reason=word)])
    to.append_verdict(a_verdict(reasons=[word]))

copies, watching = list(range(99, 9, -1)), []
writer = LocalFiles(Path(sys.argv[1])).create(a_plan(), [], {})
judged("old", writer)
judgements = writer.rewrite_judgements()
for number in range(2):
    share = judgements.share(number)
    judged("new", share)
    share.close()
sys.addaudithook(copy)
watching.append(True)
judgements.commit()
"""


def test_a_crash_at_any_step_of_a_commit_leaves_one_whole_set(tmp_path: Path) -> None:
    """Before every change of a name during the commit the folder is copied: what a crash would leave."""
    subprocess.run([sys.executable, "-c", _COPY_AT_EACH_STEP, str(tmp_path)], check=True)
    copies = sorted(tmp_path.glob("copy*"))
    stories = [story(folder) for folder in copies]
    assert {frozenset(found) for found in stories} == {frozenset({"old"}), frozenset({"new"})}
    for folder, before in zip(copies, stories, strict=True):
        LocalFiles(tmp_path).open(folder.name).close()
        assert story(folder) == before
        assert not list(folder.glob(".jud*"))


def test_appending_goes_on_after_a_commit(tmp_path: Path) -> None:
    writer = created(tmp_path)
    rewritten(writer)
    writer.append_results([a_result(reason="later")])
    writer.sync()
    assert [r.reason for r in writer.results(EvaluationResult)] == ["new", "later"]
    writer.close()


def test_a_share_that_was_never_finished_forbids_the_commit(tmp_path: Path) -> None:
    writer = created(tmp_path)
    writer.append_results([a_result(reason="old")])
    judgements = writer.rewrite_judgements()
    judgements.share(0).close()
    judgements.share(1).append_results([a_result(reason="new")])
    with pytest.raises(StorageError, match="never finished"):
        judgements.commit()
    judgements.abandon()
    assert [r.reason for r in writer.results(EvaluationResult)] == ["old"]
    writer.close()


# secrets


def test_no_secret_is_in_any_file_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-canary-1")
    variants = [Variant("v1", "http", {"headers": {"Authorization": "Bearer sk-canary-1"}})]
    cases = [a_case(input={"key": "sk-canary-1"})]
    documents = {"config.yaml": b"key: sk-canary-1\n"}
    writer = LocalFiles(tmp_path).create(a_plan(variants=variants), cases, documents)
    writer.append_trace(a_trace(output=Output("it is sk-canary-1")))
    writer.append_results([a_result(reason="found sk-canary-1")])
    writer.append_verdict(a_verdict(reasons=["found sk-canary-1"]))
    writer.save_summary(a_summary(config_path="/sk-canary-1"))
    rewritten(writer)
    writer.close()
    for path in writer.folder.iterdir():
        assert b"sk-canary-1" not in path.read_bytes(), path.name
    plan = LocalFiles(tmp_path).read(writer.folder.name).plan
    assert plan is not None
    assert plan.variants == variants


def test_a_plan_says_which_secrets_it_lacks_and_keeps_their_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variants = [Variant("v1", "http", {"key": "sk-canary-1", "text": "a literal ${PLACE}"})]
    writer = LocalFiles(tmp_path, Masker({"MY_API_KEY": "sk-canary-1"})).create(a_plan(variants=variants), [], {})
    writer.close()
    monkeypatch.delenv("MY_API_KEY", raising=False)
    without = LocalFiles(tmp_path).open(writer.folder.name)
    assert without.unresolved == ["MY_API_KEY"]
    assert without.plan is not None
    without.save_plan(without.plan)
    without.close()
    monkeypatch.setenv("MY_API_KEY", "sk-rotated")
    reader = LocalFiles(tmp_path).read(writer.folder.name)
    assert reader.unresolved == []
    assert reader.plan is not None
    assert reader.plan.variants[0].config == {"key": "sk-rotated", "text": "a literal ${PLACE}"}


def test_the_system_is_given_what_the_author_wrote_though_it_holds_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-canary-1")
    recorded = msgspec.Raw(b'{"a":"sk-canary-1 $"}')
    cases = [
        a_case(id="plain", input="5$ ${X}"),
        a_case(input={"q": ["is sk-canary-1 $${X} $?"]}, recorded=recorded),
    ]
    writer = LocalFiles(tmp_path).create(a_plan(), cases, {})
    assert b"sk-canary-1" not in (writer.folder / "cases.jsonl").read_bytes()
    assert list(writer.cases()) == cases
    assert writer.case(1) == cases[1]
    writer.close()


def test_a_weak_secret_makes_no_record_unreadable(tmp_path: Path) -> None:
    masker = Masker({"A_KEY": "production", "B_KEY": "final_answer", "C_KEY": "borderline", "D_KEY": "2026-01-02"})
    plan = a_plan(variants=[Variant("production", "http")])
    writer = LocalFiles(tmp_path, masker).create(plan, [a_case()], {})
    writer.append_trace(a_trace(variant_name="production", output=Output("in production")))
    writer.append_verdict(a_verdict(variant_name="production", status="borderline"))
    writer.close()
    reader = LocalFiles(tmp_path).read(writer.folder.name)
    assert [(t.variant_name, t.output.final_answer) for t in reader.traces(Trace)] == [("production", f"in {MASKED}")]
    assert [v.status for v in reader.verdicts(CaseVerdict)] == ["borderline"]
    assert reader.plan == plan


# the summary


@pytest.mark.parametrize(
    "text", ["on", "1.0", "2026-01-02", "null", "=", "a: b # c", "\0\x1b\x85\u2028\ufeff", "é😀\n x"]
)
def test_summaries_come_back_whatever_they_say(tmp_path: Path, text: str) -> None:
    writer = created(tmp_path)
    summary = a_summary(config_path=text, by_evaluator=[EvaluatorRollup(text, {text: EvaluatorRate(0.5, None)})])
    writer.save_summary(summary)
    assert writer.summary() == summary
    writer.close()


def test_a_summary_is_plain_yaml_for_others(tmp_path: Path) -> None:
    writer = created(tmp_path)
    writer.save_summary(a_summary())
    plain = yaml.safe_load((writer.folder / "summary.yaml").read_text())
    assert plain["started_at"] == "2026-01-02T03:04:05.678000Z"
    assert plain["cases_total"] == 1
    writer.close()


def test_an_older_summary_is_read_with_its_gaps_filled(tmp_path: Path) -> None:
    writer = created(tmp_path)
    (writer.folder / "summary.yaml").write_text(
        "{run_id: r, started_at: 2026-01-02T03:04:05Z, finished_at: '2026-01-02T03:04:06+00:00', config_path: p,\n"
        " config_hash: '', cases_total: 1, variants: [], by_evaluator: [], surprise: 1,\n"
        " comparison: {baseline: a, deltas: []}}\n"
    )
    summary = writer.summary()
    assert summary is not None
    assert summary.comparison is not None
    assert (summary.comparison.kind, summary.sink_errors) == ("ad_hoc", [])
    assert summary.started_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    writer.close()


@pytest.mark.parametrize("content", ["{", "- 1", "", "a: !!python/object/apply:os.getcwd []", "[" * 5000])
def test_a_broken_summary_is_no_summary(tmp_path: Path, content: str) -> None:
    writer = created(tmp_path)
    (writer.folder / "summary.yaml").write_text(content)
    assert writer.summary() is None
    assert writer.damage[0].startswith("summary.yaml: ")
    writer.close()


# folders of other programs


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    folder = tmp_path / "2025-12-31T23-59-59_theirs"
    folder.mkdir()
    (folder / "traces.jsonl").write_bytes(
        b'{"schema_version": "1.3", "run_id": "r", "case_id": "a", "variant_name": "v", "news": 1,'
        b' "started_at": "2026-01-02T03:04:05Z", "finished_at": "2026-01-02T03:04:05Z", "latency_ms": 1,'
        b' "input": {}, "output": {}}\r\n\n{"case_id": "b", "variant_name": "v",'
        b' "started_at": "2026-01-02T03:04:05Z", "finished_at": "2026-01-02T03:04:05Z", "latency_ms": 1,'
        b' "input": {}, "output": {}}'
    )
    (folder / "results.jsonl").touch()
    return folder


def test_the_folder_of_another_program_is_read(foreign: Path) -> None:
    reader = LocalFiles(foreign.parent).read(foreign.name)
    assert [t.case_id for t in reader.traces(Trace)] == ["a", "b"]
    assert (reader.plan, list(reader.verdicts(CaseVerdict)), list(reader.cases()), reader.damage) == (
        None,
        [],
        [],
        [],
    )
    with pytest.raises(IndexError):
        reader.case(0)


def test_the_folder_of_another_program_can_be_written_to(foreign: Path) -> None:
    writer = LocalFiles(foreign.parent).open(foreign.name)
    writer.append_trace(a_trace(case_id="c"))
    writer.append_verdict(a_verdict())
    writer.close()
    reader = LocalFiles(foreign.parent).read(foreign.name)
    assert [t.case_id for t in reader.traces(Trace)] == ["a", "b", "c"]
    assert len(list(reader.verdicts(CaseVerdict))) == 1


def test_a_plan_that_is_none_is_refused_by_name(tmp_path: Path) -> None:
    writer = created(tmp_path)
    writer.close()
    for content in (b"{", b"[]", b"{}", b"\xff"):
        (writer.folder / "plan.json").write_bytes(content)
        with pytest.raises(InputError, match=r"plan\.json  is no plan of a run"):
            LocalFiles(tmp_path).read(writer.folder.name)
        with pytest.raises(InputError, match=r"plan\.json"):
            LocalFiles(tmp_path).open(writer.folder.name)


def test_plans_are_equal_after_storing(tmp_path: Path) -> None:
    plan: Plan = a_plan(metadata={"${X}": ["$", "$$", "${", None, 1.5]})
    writer = LocalFiles(tmp_path).create(plan, [], {})
    writer.close()
    assert LocalFiles(tmp_path).read(writer.folder.name).plan == plan
