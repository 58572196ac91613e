"""What a crash leaves of a run that was being made, and the ids of new runs."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import closing
from pathlib import Path

import pytest

import warm
from evalwright.errors import StorageError
from evalwright.stores.drafts import draft_in, publish
from evalwright.stores.local_files import LocalFiles
from evalwright.testing import MemoryStore, a_case, a_plan

CRASH = """
import os, sys
from pathlib import Path
from evalwright.stores.local_files import LocalFiles
from evalwright.testing import a_case, a_plan

def cases():
    yield a_case()
    os._exit(9)

LocalFiles(Path(sys.argv[1])).create(a_plan(), cases(), {})
"""


def test_the_next_run_removes_what_a_crash_left_and_not_what_another_process_makes(tmp_path: Path) -> None:
    assert warm.run(["-c", CRASH, str(tmp_path)], cwd=tmp_path, env=os.environ).returncode == 9
    assert len([*tmp_path.iterdir()]) == 1

    def cases():
        yield a_case()
        with closing(LocalFiles(tmp_path).create(a_plan(), [a_case()], {})) as other:
            assert len([*tmp_path.iterdir()]) == 2, "this run, which is being made, and the other"
            assert other.folder in tmp_path.iterdir()

    with closing(LocalFiles(tmp_path).create(a_plan(), cases(), {})) as writer:
        assert len([*tmp_path.iterdir()]) == 2
        assert writer.folder.name.endswith("-2")


def test_only_its_user_can_look_into_a_new_run(tmp_path: Path) -> None:
    with closing(LocalFiles(tmp_path).create(a_plan(), [a_case()], {})) as writer:
        assert writer.folder.stat().st_mode & 0o777 == 0o700


def test_a_draft_that_cannot_get_its_name_is_a_storage_error_and_no_reason_to_try_another_one(tmp_path: Path) -> None:
    with (
        pytest.raises(StorageError, match=r"cannot create .*: No such file or directory"),
        draft_in(tmp_path / "runs") as (draft, _),
    ):
        publish(draft, tmp_path / "gone" / "run")
    assert not (tmp_path / "runs").exists()


def test_nothing_is_left_of_a_draft_that_cannot_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))  # as on some network drives

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(StorageError, match="cannot lock"), draft_in(tmp_path / "runs"):
        pass
    assert not (tmp_path / "runs").exists()


def test_taken_ids_get_numbers_in_memory_too() -> None:
    store = MemoryStore()
    first, *others = [store.create(a_plan(), [], {}).plan.run_id for _ in range(3)]
    assert others == [f"{first}-2", f"{first}-3"]
