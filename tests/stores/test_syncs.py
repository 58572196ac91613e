"""What survives a power cut: every sync that the system is asked for, in its order with the renames."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalwright.files.durable import AppendFile, repair_tail, replace_file
from evalwright.stores.local_files import LocalFiles
from evalwright.stores.merge.copies import copy_artifacts, write_lines
from evalwright.stores.merge.writing import write_merged
from evalwright.stores.sqlite import Sqlite
from evalwright.testing import a_case, a_plan, a_result, a_trace, a_verdict

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="finds the files of descriptors in /proc")

Step = tuple[str, str, int]
"""What was done, the name of the file or folder, and its size then."""


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[Step]:
    """The real calls, noted as they are made: `sync`, and `rename` with the new name."""
    noted: list[Step] = []
    fsync = os.fsync

    def sync(descriptor: int) -> None:
        fsync(descriptor)
        noted.append(("sync", Path(f"/proc/self/fd/{descriptor}").resolve().name, os.fstat(descriptor).st_size))

    def noting(call: Callable[..., None]) -> Callable[..., None]:
        def renamed(source: Any, target: Any, **more: Any) -> None:
            call(source, target, **more)
            noted.append(("rename", Path(target).name, 0))

        return renamed

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "rename", noting(os.rename))
    monkeypatch.setattr(os, "replace", noting(os.replace))
    return noted


def names(steps: list[Step]) -> list[str]:
    """Temporary names differ from time to time."""
    return [f"{what} {'temporary' if name.endswith('.tmp') else name}" for what, name, _ in steps]


def whole(steps: list[Step], *files: Path) -> bool:
    """Whether all that these files hold was there when they were synced: a buffer may have kept some of it."""
    return {("sync", file.name, file.stat().st_size) for file in files} <= {*steps}


def test_a_replaced_file_is_synced_before_its_rename_and_its_folder_after(tmp_path: Path, steps: list[Step]) -> None:
    replace_file(tmp_path / "file", b"x")
    assert names(steps) == ["sync temporary", "rename file", f"sync {tmp_path.name}"]
    assert steps[0][2] == 1, "what is synced is there by then"


def test_an_appended_file_is_synced_once_for_all_that_was_appended(tmp_path: Path, steps: list[Step]) -> None:
    file = AppendFile(tmp_path / "file")
    file.append(b"a")
    file.append(b"b")
    file.sync()
    file.sync()
    assert names(steps) == ["sync file"]
    file.append(b"c")
    file.sync()
    assert names(steps) == ["sync file"] * 2


def test_a_file_is_synced_when_what_a_crash_left_at_its_end_is_removed(tmp_path: Path, steps: list[Step]) -> None:
    (tmp_path / "file").write_bytes(b'{"a":1}\n{"b"')
    repair_tail(tmp_path / "file")
    repair_tail(tmp_path / "file")  # finds nothing to do
    assert names(steps) == ["sync file"]


def test_a_new_run_is_synced_whole_before_it_gets_its_name(tmp_path: Path, steps: list[Step]) -> None:
    writer = LocalFiles(tmp_path).create(a_plan(), [a_case()], {"config.yaml": b"x: 1\n"})
    run = Path(writer.location).name
    done = names(steps)
    named = done.index(f"rename {run}")
    assert {"sync cases.jsonl", "rename plan.json", "rename config.yaml"} <= {*done[:named]}
    assert done[named + 1] == f"sync {tmp_path.name}"
    writer.close()


def test_all_records_of_a_run_are_synced_when_it_is_closed(tmp_path: Path, steps: list[Step]) -> None:
    writer = LocalFiles(tmp_path).create(a_plan(), [a_case()], {})
    steps.clear()
    writer.append_trace(a_trace())
    writer.append_results([a_result()])
    writer.append_verdict(a_verdict())
    writer.close()
    assert sorted(names(steps)) == ["sync results.jsonl", "sync traces.jsonl", "sync verdicts.jsonl"]


def test_new_judgements_are_synced_before_they_count_and_when_they_are_in_place(
    tmp_path: Path, steps: list[Step]
) -> None:
    writer = LocalFiles(tmp_path).create(a_plan(), [a_case()], {})
    run = Path(writer.location).name
    writer.append_trace(a_trace())
    writer.sync()
    new = writer.rewrite_judgements()
    share = new.share(0)
    share.append_results([a_result()])
    share.append_verdict(a_verdict())
    share.close()
    steps.clear()
    new.commit()
    done = names(steps)
    counts = done.index("rename .judgements")
    assert whole(steps[:counts], *(writer.folder / f"{name}.jsonl" for name in ("results", "verdicts")))
    assert done[counts - 1].startswith("sync .judging-")
    assert done[counts + 1 : counts + 5] == [
        f"sync {run}",
        "rename results.jsonl",
        "rename verdicts.jsonl",
        f"sync {run}",
    ]
    writer.close()


def test_the_name_of_a_new_database_is_synced(tmp_path: Path, steps: list[Step]) -> None:
    Sqlite(tmp_path / "runs.sqlite").create(a_plan(), [a_case()], {}).close()
    assert f"sync {tmp_path.name}" in names(steps)


def test_the_log_of_a_database_is_synced_with_its_records(tmp_path: Path, steps: list[Step]) -> None:
    writer = Sqlite(tmp_path / "runs.sqlite").create(a_plan(), [a_case()], {})
    writer.append_trace(a_trace())
    steps.clear()
    writer.sync()
    assert "sync runs.sqlite-wal" in names(steps)
    writer.close()


def test_what_is_copied_from_a_shard_is_synced(tmp_path: Path, steps: list[Step]) -> None:
    source = tmp_path / "source" / "c0" / "main"
    source.mkdir(parents=True)
    (source / "artifact.json").write_text("{}")
    assert copy_artifacts(tmp_path / "source", tmp_path / "copy") == []
    write_lines(tmp_path / "traces.jsonl", [b"{}\n"])
    assert whole(steps, tmp_path / "copy" / "c0" / "main" / "artifact.json", tmp_path / "traces.jsonl")


def test_a_merged_run_is_synced_whole_before_it_gets_its_name(tmp_path: Path, steps: list[Step]) -> None:
    store = LocalFiles(tmp_path)

    def fill(draft: Path) -> None:
        write_merged([], draft, a_plan())
        write_lines(draft / "cases.jsonl", [b"{}\n"])

    writer = store.assemble(a_plan(), fill)
    run = writer.folder.name
    named = names(steps).index(f"rename {run}")
    files = [writer.folder / f"{name}.jsonl" for name in ("traces", "results", "verdicts", "cases")]
    assert whole(steps[:named], *files)
    assert names(steps)[named - 1].startswith("sync .new-")
    assert names(steps)[named + 1] == f"sync {tmp_path.name}"
    writer.close()
