"""Judging cells line by line is judging them record by record: the same results, verdicts and summary, to the byte."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from hypothesis import given, settings

from evalwright.files.masker import Masker
from evalwright.model.plan import Plan
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Trace
from evalwright.run.locations import Place
from evalwright.stores.local_files import LocalFiles
from evalwright.stores.local_files.lines import LineEncoder, reserved_words
from evalwright.testing import MemoryStore
from run.judged_runs import SECRET, judged_again, runs, stored

FILES = ("results.jsonl", "verdicts.jsonl")


def without_times(text: bytes) -> bytes:
    return re.sub(rb'(_at"?: ?)\S+?Z|("latency_ms":)\d+', rb"\1\2-", text)


@settings(max_examples=settings.default.max_examples // 3)  # each of them is two runs, judged twice
@given(runs())
def test_cells_are_judged_alike(made: tuple[Plan, list[Trace]]) -> None:
    """A store in memory takes records; what one in a folder keeps of them are lines."""
    masker = Masker({"TOKEN": SECRET})
    memory = MemoryStore()
    with tempfile.TemporaryDirectory() as folder:
        store = LocalFiles(Path(folder), Masker({}))  # only that which judges has the secret: it is in what is judged
        for holds, judges in ((memory, memory), (store, LocalFiles(Path(folder), masker))):
            judged_again(Place(judges, stored(holds, *made), Path(folder)))
        records, run = memory.read("stored"), store.read("stored")
        encoder = LineEncoder(masker.keeping(reserved_words(made[0])))
        rows = [*records.results(EvaluationResult), *records.verdicts(CaseVerdict)]
        lines = b"".join((Path(run.location) / name).read_bytes() for name in FILES)
        summaries = [one.summary() for one in (records, run)]
        last = max(record.finished_at for record in [*run.traces(Trace), *run.results(EvaluationResult)])
    assert without_times(lines) == without_times(b"".join(map(encoder.line, rows)))
    assert SECRET.encode() not in lines
    assert without_times(encoder.line(summaries[0])) == without_times(encoder.line(summaries[1]))
    assert summaries[1].finished_at == last
