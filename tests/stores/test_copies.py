"""What a merged run takes over from its shards as it is."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from evalwright.errors import InputError
from evalwright.stores.local_files import LocalFiles
from evalwright.stores.merge.copies import case_blocks, copy_artifacts, created_file, spool, write_lines
from evalwright.testing import MemoryStore, a_case, a_plan, a_result, a_trace, a_verdict
from stores.stores import Kept


def tree(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / "c" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "c" / name).write_text(text)
    return folder


def test_artifacts_of_several_shards_come_together_and_others_of_one_name_are_told(tmp_path: Path) -> None:
    one, two = tree(tmp_path / "1", a="1", b="2"), tree(tmp_path / "2", b="2", c="3")
    target = tmp_path / "all"
    assert [*copy_artifacts(one, target), *copy_artifacts(two, target), *copy_artifacts(one, target)] == []
    assert {path.name: path.read_text() for path in (target / "c").iterdir()} == {"a": "1", "b": "2", "c": "3"}
    three = tree(tmp_path / "3", a="other", d="4", e="5")
    assert [str(artifact.file) for artifact in copy_artifacts(three, target)] == [str(three / "c" / "a")]
    assert sorted(path.name for path in (target / "c").iterdir()) == ["a", "b", "c", "d", "e"], "the rest is there"
    assert (target / "c" / "a").stat().st_mode & 0o077 == 0


def test_links_of_a_shard_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "private").write_text("private")
    source = tree(tmp_path / "source", a="1")
    (source / "c" / "link").symlink_to(tmp_path / "private")
    (source / "c" / "folder").symlink_to(tmp_path)
    assert copy_artifacts(source, tmp_path / "target") == []
    assert [path.name for path in (tmp_path / "target").rglob("*") if path.is_file()] == ["a"]


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    source = tree(tmp_path / "source", a="1")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot copy"):
        copy_artifacts(source, tmp_path / "file")
    with pytest.raises(InputError, match="cannot write"), created_file(tmp_path / "file"):
        pass
    with pytest.raises(InputError, match="cannot write"):
        write_lines(tmp_path / "file", [b"x\n"])


def test_cases_of_a_store_that_does_not_give_them_as_stored_are_refused() -> None:
    store = MemoryStore()
    writer = store.create(a_plan(), [a_case()], {})
    with pytest.raises(InputError, match="in a store of another package"):
        list(case_blocks(writer))


def test_a_run_of_a_database_is_written_out_as_a_folder_has_it(tmp_path: Path) -> None:
    records = [a_trace(), a_result(), a_verdict()]
    written = []
    for store in (LocalFiles(tmp_path / "runs"), Kept("sqlite", tmp_path).store()):
        with closing(store.create(a_plan(), [a_case()], {})) as writer:
            writer.append_trace(records[0])
            writer.append_results(records[1:2])
            writer.append_verdict(records[2])
        with closing(store.read(a_plan().run_id)) as reader:
            folder = tmp_path / f"spooled{len(written)}"
            folder.mkdir()
            spool(reader, folder)
            written.append((b"".join(case_blocks(reader)), {path.name: path.read_bytes() for path in folder.iterdir()}))
    assert written[0] == written[1]
    run = tmp_path / "runs" / a_plan().run_id
    assert {name: (run / name).read_bytes() for name in written[0][1]} == written[0][1]
    assert sorted(written[0][1]) == ["results.jsonl", "traces.jsonl", "verdicts.jsonl"]
