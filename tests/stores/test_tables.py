"""What holds in SQLite and PostgreSQL alike, and not in folders."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from evalwright.errors import InputError, StorageError
from evalwright.model.protocols import RunWriter
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Output, Trace
from evalwright.testing import MemoryStore, a_case, a_plan, a_result, a_summary, a_trace, a_verdict
from stores.stores import Kept

KINDS = ("sqlite", "postgres")


@pytest.fixture(params=KINDS)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    return Kept(request.param, tmp_path)


def created(kept: Kept) -> RunWriter:
    return kept.store().create(a_plan(), [a_case()], {})


def with_summary(kept: Kept, text: str) -> None:
    """A run whose summary is this text."""
    with closing(created(kept)) as writer:
        writer.save_summary(a_summary())
    kept.query(f"UPDATE summaries SET {'payload' if kept.kind == 'sqlite' else 'line'} = ?", text)


@pytest.mark.parametrize("text", ["{", "[]", "[" * 5000])
def test_a_broken_summary_is_no_summary(kept: Kept, text: str) -> None:
    with_summary(kept, text)
    with closing(kept.store().read(a_plan().run_id)) as reader:
        assert reader.summary() is None
        [note] = reader.damage
        assert note.startswith("summaries: ")


def test_a_summary_of_a_later_version_is_refused(kept: Kept) -> None:
    with_summary(kept, msgspec.json.encode({**msgspec.to_builtins(a_summary()), "schema_version": "2.0"}).decode())
    with closing(kept.store().read(a_plan().run_id)) as reader:
        with pytest.raises(InputError, match=r"summaries .*version 2\.0"):
            reader.summary()
        assert reader.damage == []


def test_a_run_that_was_not_summed_up_has_no_summary(kept: Kept) -> None:
    created(kept).close()
    with closing(kept.store().read(a_plan().run_id)) as reader:
        assert (reader.summary(), reader.damage) == (None, [])


def test_a_case_that_is_missing_is_named_by_its_number(kept: Kept) -> None:
    kept.store().create(a_plan(), [a_case(id=f"c{number}") for number in range(8)], {}).close()
    kept.query("DELETE FROM cases WHERE position = 5")
    with closing(kept.store().read(a_plan().run_id)) as reader:
        cases = reader.cases()
        assert [next(cases).id for _ in range(5)] == ["c0", "c1", "c2", "c3", "c4"]
        with pytest.raises(InputError, match="there is no case 6: rows are missing"):
            next(cases)
        with pytest.raises(InputError, match="there is no case 6: rows are missing"):
            reader.case(5)
        assert [case.id for case in reader.cases(6)] == ["c6", "c7"]
        assert [reader.case(index).id for index in (7, 2, 3, 4, 6, 0)] == ["c7", "c2", "c3", "c4", "c6", "c0"]


def test_cases_in_order_take_few_queries_and_a_single_one_takes_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, asked, connect = Kept("sqlite", tmp_path), list[str](), sqlite3.connect
    kept.store().create(a_plan(), [a_case(id=f"c{number}") for number in range(200)], {}).close()

    def traced(*given: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*given, **options)
        connection.set_trace_callback(lambda query: asked.append(query) if "FROM cases" in query else None)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    with closing(kept.store().read(a_plan().run_id)) as reader:
        assert [reader.case(index).id for index in range(200)] == [f"c{number}" for number in range(200)]
        assert len(asked) < 20
        asked.clear()
        reader.case(100)
        reader.case(7)
    assert asked[-1].endswith("LIMIT 1")


@pytest.mark.parametrize("kind", [*KINDS, "memory"])
def test_a_closed_writer_refuses_whatever_it_is_asked(kind: str, tmp_path: Path) -> None:
    from stores.stores import an_artifact

    store = MemoryStore() if kind == "memory" else Kept(kind, tmp_path).store()
    writer = store.create(a_plan(), [a_case()], {})
    writer.close()
    for ask in (
        lambda: writer.append_trace(a_trace()),
        lambda: writer.append_results([a_result()]),
        lambda: writer.append_verdict(a_verdict()),
        writer.sync,
        lambda: writer.save_summary(a_summary()),
        lambda: writer.save_plan(a_plan(name="other")),
        lambda: writer.save_artifact(an_artifact()),
        writer.rewrite_judgements,
    ):
        with pytest.raises(StorageError, match="is closed"):
            ask()
    with closing(store.read(a_plan().run_id)) as reader:
        assert [*reader.traces(Trace), *reader.results(EvaluationResult), *reader.verdicts(CaseVerdict)] == []
        assert (reader.summary(), reader.plan.name) == (None, "demo")
        assert not list(reader.artifacts.rglob("artifact.json"))


def test_not_much_waits_to_be_written(tmp_path: Path) -> None:
    kept = Kept("sqlite", tmp_path)
    with closing(created(kept)) as writer, closing(kept.store().read(a_plan().run_id)) as reader:
        writer.append_trace(a_trace(output=Output("small")))
        assert [*reader.traces(Trace)] == []
        writer.append_trace(a_trace(case_id="large", output=Output("x" * (8 << 20))))
        assert [trace.case_id for trace in reader.traces(Trace)] == ["c1", "large"]
        writer.append_results([a_result(evaluator=f"e{number}") for number in range(4999)])
        assert [*reader.results(EvaluationResult)] == []
        writer.append_results([a_result(evaluator="last")])
        assert len([*reader.results(EvaluationResult)]) == 5000


def test_a_share_gives_its_cells_back_as_they_were_written(kept: Kept) -> None:
    cell = {"case_id": "a", "variant_name": "v", "trial": 3, "attempt": 2}
    with closing(created(kept)) as writer:
        judgements = writer.rewrite_judgements()
        share = judgements.share(0)
        share.append_results([a_result(**cell, evaluator="e")])
        share.append_verdict(a_verdict(**cell))
        share.close()
        judgements.commit()
    for table, more in (("results", ", evaluator"), ("verdicts", "")):
        query = kept.query(f"SELECT case_id, variant_name, trial, attempt{more} FROM {table}")
        assert query == [("a", "v", 3, 2, *(["e"] if more else []))]
    moment = kept.query("SELECT started_at FROM results")[0][0]
    assert str(moment).replace("T", " ")[:10] == "2026-01-02"


def test_a_part_holds_the_traces_that_no_other_part_holds(kept: Kept) -> None:
    with closing(created(kept)) as writer:
        for number in range(7):
            writer.append_trace(a_trace(trial=number))
        for count in (1, 2, 3, 7, 9):
            parts = writer.parts(count)
            assert len(parts) == min(count, 7)
            assert [t.trial for part in parts for t in writer.traces(Trace, part)] == list(range(7))


def test_runs_that_started_at_once_are_listed_as_they_came(kept: Kept) -> None:
    for name in ("b", "a", "c"):
        kept.store().create(a_plan(run_id=name), [], {}).close()
    assert kept.store().run_ids() == ["b", "a", "c"]


def test_the_index_of_a_run_that_is_written_has_all_that_was_appended(kept: Kept) -> None:
    """Records wait to be written together."""
    with closing(created(kept)) as writer:
        writer.append_trace(a_trace(case_index=0))
        writer.append_results([a_result()])
        writer.append_verdict(a_verdict(case_index=0))
        with closing(writer.index("always")) as index:
            assert [(cell.case_key, cell.status) for cell in index.cells()] == [(a_case().key, "pass")]


def test_cells_are_read_in_the_order_asked_for_whatever_order_they_were_written_in(kept: Kept) -> None:
    cases = [a_case(id=name) for name in "abc"]
    with closing(kept.store().create(a_plan(cases_total=3), cases, {})) as writer:
        for place in (2, 0, 1):
            writer.append_trace(a_trace(case_id=cases[place].id, case_index=place))
        for place in (1, 2, 0):
            writer.append_results([a_result(case_id=cases[place].id, evaluator=name) for name in ("one", "two")])
            writer.append_verdict(a_verdict(case_id=cases[place].id, case_index=place))
        with closing(writer.index("always")) as index:
            records = list(index.chosen_records(order="dataset"))
    assert [trace.case_id for trace, _, _ in records] == ["a", "b", "c"]
    assert [[row.evaluator for row in results] for _, results, _ in records] == [["one", "two"]] * 3
