"""Runs as folders: what they hold, how they get their names, and who may write to them."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from evalwright.errors import InputError, RunLockedError, StorageError
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.stores.local_files import LocalFiles
from evalwright.testing import a_case, a_plan, a_trace
from stores.local_runs import closed, created


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


def test_a_mistake_in_the_cases_leaves_no_folder_that_was_made_for_the_run(tmp_path: Path) -> None:
    def cases() -> Iterator[Case]:
        yield a_case()
        raise InputError("the second case is wrong")

    (tmp_path / "there").mkdir()
    for folder in ("there", "new", "there/new/newer"):
        with pytest.raises(InputError):
            LocalFiles(tmp_path / folder).create(a_plan(), cases(), {})
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]


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
        ("ü✓", "ü"),
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


def test_runs_of_other_programs_are_listed_by_the_date_in_their_name_or_of_their_traces(tmp_path: Path) -> None:
    dated = ["2026-03-01T10-00-00_x", "2026-03-01T10-00-00_x-9", "2026-03-01T10-00-00_x-10", "2026-03-01T09-59-59_y"]
    undated = {"z": datetime(2026, 2, 1, tzinfo=UTC), "2026-99-99T99-99-99_a": datetime(2026, 4, 1, tzinfo=UTC)}
    for name in [*dated, *undated]:
        (tmp_path / name).mkdir()
        for file in ("traces.jsonl", "results.jsonl"):
            (tmp_path / name / file).touch()
    for name, moment in undated.items():
        os.utime(tmp_path / name / "traces.jsonl", (moment.timestamp(), moment.timestamp()))
    local = (tmp_path / "z2", '{"started_at": "2026-01-31T23:59:59"}')  # a time without a zone is UTC
    for folder, plan in (local, (tmp_path / dated[0], '{"started_at": "nonsense"}')):
        folder.mkdir(exist_ok=True)
        for file, text in (("traces.jsonl", ""), ("results.jsonl", ""), ("plan.json", plan)):
            (folder / file).write_text(text)
    expected = ["z2", "z", dated[3], *dated[:3], "2026-99-99T99-99-99_a"]
    assert LocalFiles(tmp_path).run_ids() == expected


def test_no_folder_means_no_runs(tmp_path: Path) -> None:
    assert LocalFiles(tmp_path / "missing").run_ids() == []


def test_a_file_where_its_folder_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="/file is a file, not a folder"):
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


@pytest.mark.parametrize("name", [".new-ideas", ".new-1-0123abcd.txt", ".new-2026-0123abcd"])
def test_what_only_looks_half_made_stays(tmp_path: Path, name: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    if name == ".new-2026-0123abcd":
        (tmp_path / name).symlink_to("elsewhere")
    else:
        (tmp_path / name).mkdir()
    created(tmp_path).close()
    assert (tmp_path / name).is_dir()
    assert [*(tmp_path / "elsewhere").iterdir()] == []


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


@pytest.mark.slow("starts interpreters")
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
    with pytest.raises(InputError, match=r"is not a run folder: it has no traces\.jsonl and no results\.jsonl") as told:
        LocalFiles.at(tmp_path)
    assert f"name the run in it, {tmp_path / '2026-01-02_alpha'}" in str(told.value)
    for name in ("b", "c", "d"):
        created(tmp_path, run_id=f"2026-01-03_{name}").close()
    with pytest.raises(InputError, match="runs next to it: 2026-01-03_b, 2026-01-03_c, 2026-01-03_d"):
        LocalFiles.at(tmp_path / "nothing like them")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"does not exist; a run folder contains traces\.jsonl and results\.jsonl"):
        LocalFiles.at(tmp_path / "empty" / "run")


@pytest.mark.parametrize("run_id", ["", ".", "..", "../runs/x", "/etc", "x/.", "missing"])
def test_run_ids_that_lead_elsewhere_are_refused(tmp_path: Path, run_id: str) -> None:
    created(tmp_path / "runs", run_id="x").close()
    with pytest.raises(InputError):
        LocalFiles(tmp_path / "runs").read(run_id)


def test_a_torn_append_is_cut_back_to_what_others_have_appended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = LocalFiles(tmp_path).create(a_plan(), [a_case()], {})
    traces, write = Path(writer.location) / "traces.jsonl", os.write
    with traces.open("ab") as other:
        other.write(b'{"of": "another process"}\n')
    written: list[int] = []

    def full(descriptor: int, data: bytes) -> int:
        if written:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(write(descriptor, data[:3]))
        return written[0]

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StorageError, match="No space left"):
        writer.append_finished(b'{"of": "ours"}\n', b"", b"")
    monkeypatch.undo()
    assert traces.read_bytes() == b'{"of": "another process"}\n'
    with pytest.raises(StorageError, match="No space left"):
        writer.close()


def test_what_a_crash_left_in_a_run_is_removed_when_it_is_opened(tmp_path: Path) -> None:
    writer = LocalFiles(tmp_path).create(a_plan(), [a_case()], {})
    writer.close()
    run = Path(writer.location)
    before = {path.name for path in run.iterdir()}
    (run / ".judging-0a1b").mkdir()
    (run / ".judging-0a1b" / "results.jsonl").touch()
    (run / ".summary.yaml.0a1b.tmp").touch()
    LocalFiles(tmp_path).open(run.name).close()
    assert {path.name for path in run.iterdir()} == before


@pytest.mark.parametrize("noted", [True, False])
def test_runs_have_the_same_cases_where_each_byte_of_them_is(tmp_path: Path, noted: bool) -> None:
    store = LocalFiles(tmp_path)
    for run_id, texts in (("a", "xy"), ("same", "xy"), ("other", "xz"), ("longer", "xyz")):
        plan = a_plan(run_id=run_id, cases_total=len(texts))
        with closing(store.create(plan, [a_case(id=text) for text in texts], {})) as writer:
            if not noted:  # as runs of earlier versions
                writer.save_plan(msgspec.structs.replace(writer.plan, cases_sha256=""))
    with closing(store.read("a")) as reader:
        others = {name: store.read(name) for name in ("same", "other", "longer")}
        assert {name: reader.has_cases_of(one) for name, one in others.items()} == {
            "same": True,
            "other": False,
            "longer": False,
        }
        assert not reader.has_cases_of(object())
        (tmp_path / "same" / "cases.jsonl").unlink()
        assert not reader.has_cases_of(others["same"])
        for item in others.values():
            item.close()


def test_each_of_many_cases_is_stored_once(tmp_path: Path) -> None:
    cases = [a_case(id=f"c{i}", input="x" * 30_000) for i in range(8)]  # more than are written at once
    with closing(LocalFiles(tmp_path).create(a_plan(), cases, {})) as writer:
        assert [case.id for case in writer.cases()] == [f"c{i}" for i in range(8)]
