"""The numbering of cells."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from evalwright.model.plan import Plan, RunSettings, Variant
from evalwright.model.snapshot import Case
from evalwright.run.cells import Grid, RunState


def plan_of(cases, trials, own):
    variants = [Variant(name=f"v{i}", adapter="replay", trials=n) for i, n in enumerate(own)]
    now = datetime.now(UTC)
    return Plan("id", "name", "evalh", now, "", "", cases, variants, [], run=RunSettings(trials=trials))


class Cases:
    def __init__(self, count):
        self.count = count

    def cases(self, start=0):
        return iter([Case(str(i), {}) for i in range(start, self.count)])


def test_variants_take_turns_where_the_plan_asks_for_it():
    plan = plan_of(2, 2, [None, None, 1])
    plan.run = RunSettings(trials=2, alternate=True)
    cells = Grid(plan).cells(Cases(2), plan.variants, lambda _: 1)
    assert [f"{cell.case_index}{cell.variant.name}{cell.trial}" for cell in cells] == [
        "0v00", "0v10", "0v20", "0v11", "0v01", "1v10", "1v20", "1v00", "1v01", "1v11",
    ]  # fmt: skip


@given(
    st.integers(0, 6),
    st.integers(1, 3),
    st.lists(st.none() | st.integers(1, 3), min_size=1, max_size=3),
    st.integers(0, 6),
)
def test_every_cell_has_its_own_number_and_is_found_by_it(cases, trials, own, start):
    plan = plan_of(cases, trials, own)
    grid = Grid(plan)
    cells = list(grid.cells(Cases(cases), plan.variants, lambda _: 1))
    assert [cell.number for cell in cells] == list(range(grid.total))
    for cell in cells:
        assert grid.number(cell.case_index, cell.variant.name, cell.trial) == cell.number
        assert cell.case.id == str(cell.case_index)
    later = list(grid.cells(Cases(cases), plan.variants, lambda _: 1, start))
    assert later == [cell for cell in cells if cell.case_index >= start]


def test_records_of_no_cell_have_no_number():
    grid = Grid(plan_of(2, 1, [None]))
    assert grid.number(2, "v0", 0) is None
    assert grid.number(None, "v0", 0) is None
    assert grid.number(0, "other", 0) is None
    assert grid.number(0, "v0", 1) is None


def test_what_is_shown_while_a_run_goes_on_counts_each_verdict_once():
    state = RunState(total=9)
    for status in ("pass", "fail", "borderline", "error", "error", "skip"):
        state.count(status, None)
    state.count("pass", 0.5)
    assert (state.done, state.passed, state.failed, state.errored, state.skipped) == (7, 2, 2, 2, 1)
    assert state.cost_usd == 0.5
