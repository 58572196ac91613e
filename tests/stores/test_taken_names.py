"""Names of runs that something else has already: it stays, and the run gets a number."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from evalwright.errors import InputError
from evalwright.stores.local_files import LocalFiles
from evalwright.testing import a_plan

NAME = a_plan().run_id


def fill(draft: Path) -> None:
    for name in ("traces", "results", "verdicts", "cases"):
        (draft / f"{name}.jsonl").touch()


@pytest.mark.parametrize("assembled", [False, True])
@pytest.mark.parametrize("what", ["empty folder", "folder", "file", "dangling link"])
def test_what_has_the_name_of_a_run_stays(tmp_path: Path, what: str, assembled: bool) -> None:
    taken = tmp_path / NAME
    if what == "file":
        taken.write_text("mine")
    elif what == "dangling link":
        taken.symlink_to(tmp_path / "nowhere")
    else:
        taken.mkdir()
        if what == "folder":
            (taken / "mine").touch()
    before, plan, store = taken.lstat(), a_plan(), LocalFiles(tmp_path)
    with closing(store.assemble(plan, fill) if assembled else store.create(plan, [], {})) as writer:
        assert (plan.run_id, writer.folder) == (f"{NAME}-2", tmp_path / f"{NAME}-2")
    assert taken.lstat().st_ino == before.st_ino
    assert store.run_ids() == [f"{NAME}-2"]
    assert (store.read(f"{NAME}-2").plan or plan).run_id == f"{NAME}-2"
    assert sorted(path.name for path in tmp_path.iterdir()) == [NAME, f"{NAME}-2"]


@pytest.mark.parametrize("assembled", [False, True])
def test_a_run_is_no_folder_for_others(tmp_path: Path, assembled: bool) -> None:
    LocalFiles(tmp_path).create(a_plan(), [], {}).close()
    inside = LocalFiles(tmp_path / NAME)
    before = sorted((tmp_path / NAME).iterdir())
    with pytest.raises(InputError, match="is a run: name the folder in which runs are created"):
        inside.assemble(a_plan(), fill) if assembled else inside.create(a_plan(), [], {})
    assert sorted((tmp_path / NAME).iterdir()) == before


def test_a_run_that_cannot_be_filled_leaves_nothing(tmp_path: Path) -> None:
    def failing(draft: Path) -> None:
        fill(draft)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LocalFiles(tmp_path / "new" / "runs").assemble(a_plan(), failing)
    assert not (tmp_path / "new").exists()
