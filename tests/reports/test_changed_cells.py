"""The cells that changed between two runs, with their answers."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from itertools import product
from pathlib import Path

import msgspec
import pytest

from evalwright.decisions.comparison import comparison_of
from evalwright.decisions.runs import two_runs
from evalwright.decisions.terms import Terms
from evalwright.model.plan import EvaluatorSpec, Variant
from evalwright.model.protocols import RunReader
from evalwright.model.trace import Output
from evalwright.reports.changed_cells import changed_cells
from evalwright.reports.context import EarlierRun
from evalwright.stores.local_files import LocalFiles
from evalwright.testing import a_case, a_plan, a_result, a_trace, a_verdict
from stores.histories import Scanned

CASES, VARIANTS = ("a", "b", "c", "d"), ("v", "w")


def stored(folder: Path, failed: Collection[tuple[str, str, int]]) -> RunReader:
    """A run of two trials, with its index, in which all cells passed but these."""
    variants = [Variant(name, "python_function") for name in VARIANTS]
    plan = a_plan(variants=variants, cases_total=len(CASES), evaluators=[EvaluatorSpec("says", "contains_text")])
    plan.run = msgspec.structs.replace(plan.run, trials=2)
    store = LocalFiles(folder)
    with closing(store.create(plan, [a_case(id=case) for case in CASES], {})) as writer:
        for (index, case), variant, trial in product(enumerate(CASES), VARIANTS, range(2)):
            of = {"case_id": case, "variant_name": variant, "trial": trial}
            passed = (case, variant, trial) not in failed
            answer = Output(f"{'right' if passed else 'wrong'} {case} {variant} {trial}")
            writer.append_trace(a_trace(**of, case_index=index, output=answer))
            writer.append_results([a_result(**of, evaluator="says", passed=passed)])
            writer.append_verdict(a_verdict(**of, case_index=index, status="pass" if passed else "fail"))
    reader = store.read(plan.run_id)
    reader.index("to_keep").close()
    return reader


@pytest.mark.parametrize("scanned", [False, True])
@pytest.mark.parametrize("looks", [0, 100])
def test_cells_that_got_worse_come_first_with_trials_that_show_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: int, scanned: bool
) -> None:
    """The same is found by name in the index, by reading the whole index, and by reading all records."""
    for name in ("_LOOKED_UP", "_READ"):
        monkeypatch.setattr(f"evalwright.reports.changed_cells.{name}", looks)
    one = stored(tmp_path / "a", {("b", "w", 1), ("d", "v", 0)})
    other = stored(tmp_path / "b", {("a", "v", 1), ("c", "w", 0), ("c", "w", 1), ("d", "v", 0)})
    with closing(one), closing(other):
        a, b = (Scanned(one), Scanned(other)) if scanned else (one, other)
        comparison = comparison_of(two_runs(a, one.plan, b, other.plan, Terms()), "a", "b")
        cells, total = changed_cells(b, EarlierRun(a, comparison), 3)
    assert total == 3
    assert [(c.case_key, c.variant, c.worse, c.before.answer, c.before.name, c.after.answer) for c in cells] == [
        ("c", "w", True, "right c w 0", "trial 1 of 2", "wrong c w 0"),
        ("a", "v", True, "right a v 0", "trial 1 of 2", "wrong a v 1"),
        ("b", "w", False, "wrong b w 1", "trial 2 of 2", "right b w 0"),
    ]
