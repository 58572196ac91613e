"""Two indexed runs are compared by the kinds of their cells as by each of them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import product
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acceptance.projects import project
from evalwright.decisions.clusters import explain
from evalwright.decisions.comparison import against_baseline, comparison_of
from evalwright.decisions.drift import drift
from evalwright.decisions.kinds import kinds_of_both, tallied
from evalwright.decisions.pairing import Counting, shared_cases
from evalwright.decisions.runs import TwoRuns, one_run, two_runs
from evalwright.decisions.sides import PASS_RATE, CaseTotal, sides_of
from evalwright.decisions.terms import Guard, Terms
from evalwright.errors import InputError
from evalwright.run.stored_run import open_run
from evalwright.stores.index.file import INDEX
from stores.histories import History, Scanned

GUARDS = (Guard("cost", 1.1), Guard("latency_p95", 1.1), Guard("tokens", 1.2), Guard("evaluator:quick", -0.01))
TERMS = (Terms(guards=GUARDS), Terms(metric="says", errors="strict", margin=0.1), Terms(errors="fail", group="none"))


def histories(folder: Path, seeds: tuple[int, int], cells: int) -> list[History]:
    """Two runs of one suite of single trials, each with its index; `seeds` are alike in what says the suite."""
    made = [History(folder / name, seed) for name, seed in zip("ab", seeds, strict=True)]
    for history in made:
        for _ in range(cells):
            history.cell()
        history.indexed()
        history.close()
    return made


def compared(made: list[History], terms: Terms, *, scanned: bool) -> tuple[object, TwoRuns | None]:
    a, b = (history.reader() for history in made)
    with closing(a), closing(b):
        assert a.plan is not None
        assert b.plan is not None
        one, other = (Scanned(a), Scanned(b)) if scanned else (a, b)
        try:
            runs = two_runs(one, a.plan, other, b.plan, terms)
            for name in runs.a.keys() & runs.b.keys():
                runs.refuse_strangers(name, name)
            comparison = comparison_of(runs, "a", "b")
            explain(one, other, [variant.decision for variant in comparison.variants])
            alone = one_run(other, b.plan, terms)
            whole = [against_baseline(alone, "v1"), alone.dominated([(name, name) for name in alone.b])]
            whole.append(drift(one, other, "a", runs))
            costs = [runs.latency_change(name, name) for name in sorted(runs.a.keys() & runs.b.keys())]
        except InputError as error:
            return str(error), None
        return msgspec.json.encode([comparison, costs, whole]), runs


@settings(max_examples=settings.default.max_examples // 2)
@given(st.integers(0, 2**30), st.integers(0, 2**30), *[st.integers(0, 1)] * 3, st.integers(1, 14))
def test_kinds_say_what_cells_say(tmp_path_factory, one, other, variants, others, grouped, cells):
    folder = tmp_path_factory.mktemp("runs")
    made = histories(folder, (8 * one + 4 * grouped + variants, 8 * other + 4 * grouped + others), cells)
    for terms in TERMS:
        assert compared(made, terms, scanned=False)[0] == compared(made, terms, scanned=True)[0]
    shutil.rmtree(folder)


@pytest.mark.parametrize(("least", "trials", "kept"), [(5, 1, True), (6, 1, False), (5, 2, False)])
def test_counting_many_single_trials_leaves_an_index_behind(tmp_path, monkeypatch, least, trials, kept):
    monkeypatch.setattr("evalwright.decisions.sides.WORTH_AN_INDEX", least)
    history = History(tmp_path / "a", 2 * (trials - 1))  # a suite of five cases
    for _ in range(9):
        history.cell()
    history.close()
    with closing(history.reader()) as reader:
        sides_of(reader, reader.plan)
    assert (history.folder / INDEX).exists() is kept


@contextmanager
def passes_of(made: list[History]) -> Iterator[list[Mapping[str, CaseTotal]]]:
    """The passes of each variant of each run."""
    with closing(made[0].reader()) as one, closing(made[1].reader()) as other:
        yield [side.passes for reader in (one, other) for side in sides_of(reader, reader.plan).values()]


@pytest.mark.parametrize("seeds", [(8, 16), (9, 17), (8, 17), (9, 16)])
def test_pairs_are_counted_without_their_names_where_the_cases_are_the_same(tmp_path, seeds):
    with passes_of(histories(tmp_path, seeds, 30)) as sides:
        for a, b in product(sides, repeat=2):
            pairs = kinds_of_both(a, b)
            assert pairs is not None
            names, places = pairs.cases(list(range(len(pairs.totals))))
            assert sorted(names) == sorted(a.keys() & b.keys())
            assert [places.count(place) for place in range(len(pairs.times))] == pairs.times
            assert all(pairs.totals[place] == (a[name], b[name]) for name, place in zip(names, places, strict=True))


def test_all_pairs_of_variants_are_joined_in_one_connection(tmp_path, descriptors):
    """Each connection holds what it has read: with one for each pair, a hundred variants took all memory there is."""

    def opened():
        return sum(what.startswith(str(tmp_path)) and what.endswith(f"/{INDEX}") for what in descriptors().values())

    with passes_of(histories(tmp_path, (9, 17), 30)) as sides:
        assert opened() == 2
        assert all(kinds_of_both(*pair) is not None for pair in product(sides, repeat=2))
        assert opened() == 2 + 2 * 4  # A with B, B with A, and each with itself
        sides.clear()
        assert not opened()


def test_a_run_that_has_gone_on_since_is_paired_case_by_case(tmp_path):
    made = histories(tmp_path, (8, 16), 30)
    with closing(made[0].reader()) as a, closing(made[1].reader()) as b:
        passes = [sides_of(reader, reader.plan)["v1"].passes for reader in (a, b)]
        known = dict(passes[0])
        made[0].reopened()
        for _ in range(9):
            made[0].cell()
        made[0].indexed()
        made[0].close()
        assert kinds_of_both(*passes) is None
        assert sorted(shared_cases(*passes).listed()[0]) == sorted(known.keys() & passes[1].keys())


def test_errors_are_counted_by_kind(tmp_path: Path) -> None:
    suite = project(tmp_path, {f"c{n}": "no" if n % 2 else "thanks" for n in range(60)})
    run = suite.run()
    assert suite.evalwright("index", run).code == 0
    reader, plan = open_run(run)
    with closing(reader):
        (side,) = sides_of(reader, plan).values()
        found = Counting(0.0, 0.0).over(side.outcomes(PASS_RATE))
        assert sorted((total.total, total.judged, n) for total, n in tallied(found)) == [(0.0, 1, 30), (1.0, 1, 30)]
