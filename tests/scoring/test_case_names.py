"""Run A with its cases under the names that they have in run B."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from evalwright.model.protocols import RunReader
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Trace
from evalwright.scoring.case_names import under_names_of
from evalwright.stores.local_files import LocalFiles
from evalwright.testing import a_case, a_plan, a_result, a_summary, a_trace, a_verdict


def run_of(folder: Path, *questions: str, dialect: str = "promptfoo") -> RunReader:
    plan = a_plan(dialect=dialect, cases_total=len(questions))
    cases = [a_case(id=f"test-{place}", input={"q": question}) for place, question in enumerate(questions)]
    with closing(LocalFiles(folder).create(plan, cases, {})) as writer:
        for place, case in enumerate(cases):
            cell = {"case_id": case.id, "case_index": place}
            writer.append_trace(a_trace(**cell))
            writer.append_results([a_result(case_id=case.id)])
            writer.append_verdict(a_verdict(**cell))
        writer.save_summary(a_summary())
    return LocalFiles(folder).read(writer.folder.name)


def renamed(before: RunReader, after: RunReader) -> RunReader:
    assert before.plan is not None
    assert after.plan is not None
    return under_names_of(after.cases, after.plan, before, before.plan)


def test_all_records_have_the_new_names_and_all_else_is_that_of_the_run(tmp_path: Path) -> None:
    after = run_of(tmp_path / "b", "new", "one", "two")
    with closing(renamed(before := run_of(tmp_path / "a", "one", "two", "gone"), after)) as reader, closing(after):
        expected = ["test-1", "test-2", "test-2 of A"]
        assert [case.key for case in reader.cases()] == expected
        assert (reader.case(0).id, [case.id for case in reader.cases(1)]) == ("test-1", expected[1:])
        assert [trace.case_key for trace in reader.traces(Trace)] == expected
        assert [row.case_key for row in reader.results(EvaluationResult)] == expected
        assert [verdict.case_key for verdict in reader.verdicts(CaseVerdict)] == expected
        assert [trace.case_key for part in reader.parts(2) for trace in reader.traces(Trace, part)] == expected
        assert (reader.artifacts, reader.location, reader.plan) == (before.artifacts, before.location, before.plan)
        assert reader.summary() == before.summary()


def test_a_renamed_run_is_closed_with_its_reader(tmp_path: Path, descriptors: Callable[[], dict[str, str]]) -> None:
    after = run_of(tmp_path / "b", "new", "one")
    before = descriptors()
    with closing(renamed(run_of(tmp_path / "a", "one"), after)) as reader:
        assert reader.case(0).id == "test-1"
    assert not descriptors().items() - before.items()
    after.close()


def test_a_run_whose_cases_have_the_same_names_or_a_format_without_keys_stays_itself(tmp_path: Path) -> None:
    same = run_of(tmp_path / "a", "one", "two"), run_of(tmp_path / "b", "one", "two")
    native = [run_of(tmp_path / name, question, dialect="evalh") for name, question in (("c", "one"), ("d", "two"))]
    for before, after in (same, native):
        assert renamed(before, after) is before
        before.close()
        after.close()


def test_cases_that_are_alike_are_paired_in_their_order_if_there_are_as_many(tmp_path: Path) -> None:
    after = run_of(tmp_path / "b", "x", "x", "y", "z", "z")
    with closing(renamed(run_of(tmp_path / "a", "y", "x", "x", "z"), after)) as reader, closing(after):
        assert [case.key for case in reader.cases()] == ["test-2", "test-0", "test-1", "test-3"]
