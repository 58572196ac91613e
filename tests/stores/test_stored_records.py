"""Records of every store that are damaged, of another version, or written twice."""

from __future__ import annotations

import msgspec
import pytest

from evalwright.errors import InputError
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Trace
from evalwright.stores.local_files.lines import MIGRATIONS
from evalwright.testing import a_plan, a_trace
from stores.stores import Kept, append_cell, filled


def test_a_damaged_record_is_named_and_the_others_are_read(kept: Kept) -> None:
    run_id = filled(kept)
    for table in ("traces", "results", "verdicts"):
        kept.replace(run_id, table, 1, "{oops")
    reader = kept.store().read(run_id)
    for records in (reader.traces(Trace), reader.results(EvaluationResult), reader.verdicts(CaseVerdict)):
        assert [record.case_id for record in records] == ["c0", "c2"]
    assert [note.replace(".jsonl", "").partition(": ")[0] for note in reader.damage] == [
        "traces:2",
        "results:2",
        "verdicts:2",
    ]
    reader.close()


def test_a_damaged_case_is_refused_by_its_number(kept: Kept) -> None:
    run_id = filled(kept)
    kept.replace(run_id, "cases", 1, "{oops")
    reader = kept.store().read(run_id)
    assert reader.case(2).id == "c2"
    with pytest.raises(InputError, match=r"cases(\.jsonl)?:2 .*cannot be read"):
        reader.case(1)
    with pytest.raises(InputError):
        reader.case(3)
    reader.close()


def test_a_record_of_a_later_version_is_refused_by_its_number(kept: Kept) -> None:
    run_id = filled(kept)
    newer = msgspec.json.encode({**msgspec.to_builtins(a_trace()), "schema_version": "2.0"}).decode()
    kept.replace(run_id, "traces", 2, newer)
    reader = kept.store().read(run_id)
    with pytest.raises(InputError, match=r"traces(\.jsonl)?:3 .*version 2\.0"):
        list(reader.traces(Trace))
    reader.close()


def test_an_older_record_is_migrated_when_it_is_read(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = filled(kept)
    older = {**msgspec.to_builtins(a_trace()), "schema_version": "0.9"}
    older["case"] = older.pop("case_id")
    kept.replace(run_id, "traces", 1, msgspec.json.encode(older).decode())
    monkeypatch.setitem(
        MIGRATIONS, "0.9", lambda record: {**record, "case_id": record.pop("case"), "schema_version": "1.0"}
    )
    reader = kept.store().read(run_id)
    assert [trace.case_id for trace in reader.traces(Trace)] == ["c0", "c1", "c2"]
    reader.close()


def test_a_record_written_again_takes_the_place_of_the_first(kept: Kept) -> None:
    writer = kept.store().open(filled(kept))
    append_cell(writer, "c0", latency_ms=7)
    writer.close()
    reader = kept.store().read(a_plan().run_id)
    latencies = [trace.latency_ms for trace in reader.traces(Trace) if trace.case_id == "c0"]
    reader.close()
    assert latencies == ([0, 7] if kept.kind == "local_files" else [7])
