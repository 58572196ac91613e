"""The pages as files: every cell is reached, nothing leads nowhere, nothing of others is replaced."""

from __future__ import annotations

import os
import posixpath
import re
import zipfile
from contextlib import closing
from html import unescape
from pathlib import Path
from shutil import copytree
from urllib.parse import unquote

import pytest

from evalwright.cli.bundling import write_pages
from evalwright.errors import InputError, StorageError
from evalwright.model.cell import cell_key
from evalwright.run.stored_run import open_run
from evalwright.viewer.bundle_files import MARKER
from viewer.reading import cases, found, seen
from viewer.runs import made_run, with_messages


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundled")
    before = made_run(folder, trials=1)
    return before, made_run(folder, trials=1, lost=1)


def links_of(path: Path) -> set[Path]:
    text = re.sub(r"<template.*?</template>", "", path.read_text(), flags=re.DOTALL)
    named = [unescape(link).partition("#")[0] for link in re.findall(r'(?:href|src)="([^"]*)"', text)]
    files = [link for link in named if link and not link.startswith("data:image/")]
    return {Path(posixpath.normpath(path.parent / unquote(link))) for link in files}


def test_reading_a_run_by_its_index_leaves_no_files_beside_it(tmp_path, pair, collect):
    run = copytree(pair[1], tmp_path / pair[1].name)
    with closing(open_run(run)[0]) as reader, closing(reader.index("to_keep")):
        pass
    before = sorted(path.name for path in run.iterdir())
    assert "index.sqlite" in before
    write_pages([run], tmp_path / "pages", "all", None, 100)
    collect()  # the end of a process does the same
    assert sorted(path.name for path in run.iterdir()) == before


def test_every_cell_is_reached_by_links_and_every_link_leads_to_a_file(tmp_path, pair):
    before, after = pair
    out = tmp_path / "pages"
    assert write_pages([after], out, "all", before, 100) == 0
    reached: set[Path] = set()
    waiting = {out / "index.html"}
    while waiting:
        path = waiting.pop()
        reached.add(path)
        assert path.is_file(), path
        if path.suffix == ".html":
            waiting |= links_of(path) - reached
    assert {path for path in out.rglob("*") if path.is_file()} == reached | {out / MARKER}
    pages = [path for path in reached if path.suffix == ".html"]
    run = out / "runs" / after.name
    assert len([path for path in pages if path.parent == run / "cells"]) == 7
    assert found((run / "index.html").read_text()) == "7 of 7 cells"
    assert cases((run / "status-error.html").read_text()) == ["case-4"]
    assert cases((out / "compare" / "index.html").read_text())[0] == "case-1"
    text = (run / "cells" / f"{cell_key('case-3', 'agent', 0)}.html").read_text()
    assert "because of the reply" in text
    for path in pages:
        text = path.read_text()
        assert "Content-Security-Policy" in text
        assert not re.search(r"<script(?![^>]*\bsrc=)|<[^>]+\son\w+=|<[^>]+\sstyle=", text)


def test_runs_whose_folders_have_names_that_are_no_utf8_have_pages_of_their_own(tmp_path, pair):
    for name, run in zip((b"caf\xe8", b"caf\xe9"), pair, strict=True):
        copytree(run, tmp_path / os.fsdecode(name))
    write_pages([tmp_path], tmp_path / "pages", "all", None, 100)
    folders = list((tmp_path / "pages" / "runs").iterdir())
    assert len(folders) == 2
    assert {folder / "index.html" for folder in folders} <= links_of(tmp_path / "pages" / "index.html")


def test_all_messages_of_a_long_conversation_are_a_page_of_their_own(tmp_path):
    run = made_run(tmp_path, trials=1)
    with_messages(run, "case-1", 101)
    write_pages([run], tmp_path / "pages", "all", None, 100)
    cells = tmp_path / "pages" / "runs" / run.name / "cells"
    key = cell_key("case-1", "agent", 0)
    whole = cells / f"{key}-messages.html"
    assert whole in links_of(cells / f"{key}.html")
    assert [*cells.glob("*-messages.html")] == [whole]
    assert ("said-00050" in whole.read_text(), "said-00050" in (cells / f"{key}.html").read_text()) == (True, False)
    for page in cells.glob("*.html"):
        assert all(path.is_file() for path in links_of(page))


def test_a_cell_is_read_as_often_for_many_texts_as_for_one(tmp_path, monkeypatch):
    """Reading it for each text would take hours for a long conversation."""
    read, reads = os.pread, []
    monkeypatch.setattr(os, "pread", lambda *given: (reads.append(given), read(*given))[1])
    run = made_run(tmp_path, trials=1)
    texts, took = [], []
    for number in (1, 40):
        with_messages(run, "case-1", number, " and so on" * 2000)
        reads.clear()
        write_pages([run], tmp_path / "pages", "all", None, 100)
        took.append(len(reads))
        texts.append(len([*(tmp_path / "pages").rglob("*.txt")]))
    assert texts[1] > texts[0] + 30
    assert took[1] == took[0]


@pytest.mark.parametrize("only", ["all", "not-passed", "changed"])
def test_no_link_leads_to_a_cell_that_is_left_out(tmp_path, pair, only):
    """Case 5 passes in one trial and fails in the other; case 2 is better, so that its cell of B passed."""
    before, _ = pair
    after = made_run(tmp_path, trials=2, lost=1)
    out = tmp_path / "pages"
    assert write_pages([after], out, only, before, 100) == 0
    pages = [*out.rglob("*.html")]
    assert [(page, link) for page in pages for link in links_of(page) if not link.is_file()] == []
    compared = seen((out / "compare" / "cells" / f"{cell_key('case-2', 'agent', 0)}.html").read_text())
    assert ("Whole cell of B: not in this bundle" in compared) is (only == "not-passed")
    flaky = sorted((out / "runs" / after.name / "cells").glob(f"{cell_key('case-5', 'agent', 1)}.html"))
    assert ("1 not in this bundle" in seen(flaky[0].read_text())) is (only == "not-passed")


def test_the_same_run_gives_the_same_bytes_also_packed(tmp_path, pair):
    _, run = pair
    for name in ("a", "b", "a.zip", "b.zip"):
        write_pages([run], tmp_path / name, "not-passed", None, 100)
    files = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file())
    assert all((tmp_path / "a" / path).read_bytes() == (tmp_path / "b" / path).read_bytes() for path in files)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as packed:
        assert sorted(packed.namelist()) == [str(path) for path in files]
    text = (tmp_path / "a" / "runs" / run.name / "index.html").read_text()
    assert "passed cells are left out: 4" in seen(text)
    assert len(cases(text)) == 3


def test_what_is_too_much_or_somebody_elses_is_refused(tmp_path, pair):
    before, run = pair
    with pytest.raises(InputError, match=r"7 cells would be 7 pages.*: --only not-passed leaves"):
        write_pages([run], tmp_path / "pages", "all", None, 6)
    with pytest.raises(InputError, match=r"3 cells and 3 changed cases would be 6 pages.*: --limit-cells raises it"):
        write_pages([run], tmp_path / "pages", "not-passed", before, 5)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="is not a bundle"):
        write_pages([run], tmp_path / "mine", "all", None, 100)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
    with pytest.raises(InputError, match="--compare"):
        write_pages([run], tmp_path / "pages", "changed", None, 100)
    write_pages([run], tmp_path / "pages", "changed", before, 100)
    write_pages([run], tmp_path / "pages", "changed", before, 100)
    assert len([*(tmp_path / "pages" / "runs" / run.name / "cells").glob("*.html")]) == 3


@pytest.mark.parametrize("name", [".git/config", "CNAME", "runs/notes.txt"])
def test_files_that_others_put_into_a_bundle_are_not_deleted(tmp_path, pair, name):
    _, run = pair
    write_pages([run], tmp_path / "pages", "not-passed", None, 100)
    mine = tmp_path / "pages" / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    with pytest.raises(InputError, match=name):
        write_pages([run], tmp_path / "pages", "not-passed", None, 100)
    assert mine.read_text() == "mine"
    mine.unlink()
    assert write_pages([run], tmp_path / "pages", "not-passed", None, 100) == 0


def test_what_a_desktop_left_in_a_bundle_does_not_stop_the_next_one(tmp_path, pair):
    _, run = pair
    write_pages([run], tmp_path / "pages", "not-passed", None, 100)
    (tmp_path / "pages" / "runs" / ".DS_Store").write_bytes(b"\0\0\0\1Bud1")
    assert write_pages([run], tmp_path / "pages", "not-passed", None, 100) == 0


def test_another_zip_file_is_not_replaced_and_a_link_leads_to_the_bundle(tmp_path, pair):
    _, run = pair
    (tmp_path / "mine.zip").write_bytes(b"PK")
    with pytest.raises(InputError, match="is not a bundle"):
        write_pages([run], tmp_path / "mine.zip", "not-passed", None, 100)
    assert (tmp_path / "mine.zip").read_bytes() == b"PK"
    write_pages([run], tmp_path / "there", "not-passed", None, 100)
    (tmp_path / "link").symlink_to(tmp_path / "there")
    write_pages([run], tmp_path / "link", "all", None, 100)
    assert (tmp_path / "link").is_symlink()
    assert len([*(tmp_path / "there" / "runs" / run.name / "cells").glob("*.html")]) == 7


def test_a_bundle_that_cannot_be_replaced_stays(tmp_path, pair, monkeypatch):
    _, run = pair
    write_pages([run], tmp_path / "pages", "all", None, 100)
    before = {file: file.read_bytes() for file in (tmp_path / "pages").rglob("*") if file.is_file()}
    rename = Path.rename

    def refused(place, target):
        if target == tmp_path / "pages" and "new" in place.name:
            raise PermissionError(place)
        return rename(place, target)

    monkeypatch.setattr(Path, "rename", refused)
    with pytest.raises(StorageError):
        write_pages([run], tmp_path / "pages", "not-passed", None, 100)
    assert {file: file.read_bytes() for file in (tmp_path / "pages").rglob("*") if file.is_file()} == before
    assert [path.name for path in tmp_path.iterdir() if "evalwright-" in path.name] == []


def test_each_variant_of_both_runs_is_compared_and_counts_as_changed_with_all_its_trials(tmp_path):
    names = ("agent", "hasty")
    before, after = (made_run(tmp_path, lost=lost, variants=names) for lost in (2, 1))
    out = tmp_path / "pages"
    assert write_pages([after], out, "changed", before, 100) == 0
    first, second = out / "compare" / "index.html", out / "compare" / "variant-2" / "index.html"
    assert "case-0" not in cases(first.read_text())
    assert "case-0" in cases(second.read_text())
    assert second in links_of(first)
    assert first in links_of(second)
    assert all(path.is_file() for path in links_of(second))
    change = re.search(r'<nav aria-label="Variants">.*?</nav>', first.read_text(), re.DOTALL)
    assert seen(change[0]) == "Pass rate, paired agent 0.0 pp hasty −16.7 pp"
    written = {path.stem for path in (out / "runs" / after.name / "cells").glob("*.html")}
    trials = {cell_key("case-0", "hasty", trial) for trial in range(2)}
    assert trials <= written
    assert cell_key("case-0", "agent", 0) not in written


def test_without_a_run_those_of_the_suites_here_are_meant(tmp_path, monkeypatch):
    run = made_run(tmp_path, trials=1)
    run.parent.rename(tmp_path / "kept")
    suite = tmp_path / "eval.yaml"
    suite.write_text(suite.read_text().replace('"path": "runs"', '"path": "kept"'))
    monkeypatch.chdir(tmp_path)
    assert write_pages([], tmp_path / "pages", "all", None, 100) == 0
    assert (tmp_path / "pages" / "runs" / run.name / "index.html").is_file()


def test_without_a_run_and_a_suite_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="no folder 'runs' here, and no suite with runs"):
        write_pages([], tmp_path / "pages", "all", None, 100)
