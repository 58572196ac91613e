"""A run index says what a scan of the records says, whatever happened to the run and to the index."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evalwright.stores.index.file import INDEX
from stores.histories import History, TableHistory, must_agree, said
from stores.stores import Kept

STEPS = (*["cell"] * 12, *["indexed"] * 3, "reopened", "judged_again", "meddled")


HARM = ("damaged", "torn")


@pytest.mark.slow("renders three reports of many histories, twice each")
@example(571052975, ["indexed", *["cell"] * 7], ["damaged", "damaged"])  # a date of a trace that is none any more
@given(
    st.integers(0, 2**32), st.lists(st.sampled_from(STEPS), max_size=40), st.lists(st.sampled_from(HARM), max_size=2)
)
def test_an_index_says_what_a_scan_says(tmp_path_factory, seed, steps, harm):
    for place, what in enumerate(harm):
        steps.insert(seed % (len(steps) + 1) - place, what)
    folder = tmp_path_factory.mktemp("run")
    must_agree(History(folder, seed), steps)
    shutil.rmtree(folder)


@pytest.mark.parametrize("share", [None, 2_000])
def test_an_index_says_what_a_scan_says_of_a_run_that_has_seen_it_all(tmp_path, monkeypatch, share):
    if share is not None:  # bytes that are read at a time, and cells that may wait for the rest of their records
        monkeypatch.setattr("evalwright.stores.index.sources._SHARE", share)
        monkeypatch.setattr("evalwright.stores.index.follow._WAITING", 3)
    steps = ["cell"] * 9 + ["indexed", "reopened", "cell", "meddled", "cell", "indexed", "judged_again", "cell", "cell"]
    must_agree(History(tmp_path, 3), steps)


OF_A_DATABASE = given(
    st.integers(0, 2**32), st.lists(st.sampled_from((*STEPS, "repeated")), max_size=40), st.booleans()
)


def database_must_agree(kind: str, folder: Path, seed: int, steps: list[str], harm: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        must_agree(TableHistory(Kept(kind, folder), seed), [*steps, "damaged"] if harm else steps, reports=False)
    shutil.rmtree(folder)


@pytest.mark.slow("reads many histories, four times each")
@OF_A_DATABASE
def test_an_index_of_a_sqlite_run_says_what_a_scan_says(tmp_path_factory, seed, steps, harm):
    database_must_agree("sqlite", tmp_path_factory.mktemp("run"), seed, steps, harm)


@pytest.mark.slow("reads a dozen histories, four times each")
@settings(max_examples=12)  # a history of forty steps asks the server four hundred times
@OF_A_DATABASE
def test_an_index_of_a_postgres_run_says_what_a_scan_says(tmp_path_factory, seed, steps, harm):
    database_must_agree("postgres", tmp_path_factory.mktemp("run"), seed, steps, harm)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_an_index_of_a_database_says_what_a_scan_says_of_a_run_that_has_seen_it_all(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    steps = ["cell"] * 9 + ["indexed", "reopened", "cell", "meddled", "cell", "indexed", "judged_again", "indexed"]
    history = TableHistory(Kept(kind, tmp_path), 3)
    must_agree(history, [*steps, "repeated", "cell"], reports=False)
    assert list(tmp_path.rglob(INDEX))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_results_that_were_judged_anew_have_numbers_that_no_row_had_before(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    history = TableHistory(Kept(kind, tmp_path), 3)
    for _ in range(9):
        history.cell()
    history.indexed()
    before = history.kept.query("SELECT seq, case_id FROM results WHERE run_id = ?", history.writer.plan.run_id)
    history.judged_again()
    after = history.kept.query("SELECT seq, case_id FROM results WHERE run_id = ?", history.writer.plan.run_id)
    assert min(after)[0] > max(before)[0]
    assert said(history, scanned=False) == said(history, scanned=True)
    history.close()
