"""Judging again reads the cases only if one of them may say something that an evaluator looks for."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evalwright.errors import InputError
from evalwright.model.plan import EvaluatorSpec, PassCriteria
from evalwright.model.result import CaseVerdict
from evalwright.model.snapshot import Case, Expected
from evalwright.model.trace import Output
from evalwright.run.expectations import expects
from evalwright.run.locations import Place
from evalwright.scoring.bands import THRESHOLD
from evalwright.stores.local_files import LocalFiles
from evalwright.testing import a_plan, a_trace
from run.judged_runs import judged_again

INCLUDED, AVOIDED = "answer_should_include", "answer_should_not_include"
BLOCK = 1 << 20
"""Bytes of cases that are searched at once."""


def stored(folder: Path, cases: list[Case], *checks: EvaluatorSpec, criteria: PassCriteria | None = None) -> Place:
    """A run whose system always said "blue"."""
    store = LocalFiles(folder)
    plan = a_plan(run_id="stored", evaluators=[*checks], pass_criteria=criteria or PassCriteria())
    with closing(store.create(plan, cases, {})) as writer:
        for index, case in enumerate(cases):
            writer.append_trace(
                a_trace(
                    case_id=case.id,
                    case_index=index,
                    variant_name=plan.variants[0].name,
                    run_id=plan.run_id,
                    output=Output("blue"),
                    latency_ms=5,
                )
            )
    return Place(store, plan.run_id, folder / plan.run_id)


def judged(place: Place) -> list[str]:
    judged_again(place)
    with closing(place.store.read(place.run_id)) as reader:
        return [verdict.status for verdict in reader.verdicts(CaseVerdict)]


SAYS = EvaluatorSpec("says", "contains_text", {"all_of": ["blue"]})
CALLS = EvaluatorSpec("calls", "tool_called")


@pytest.mark.parametrize(
    ("check", "last", "verdicts"),
    [
        (SAYS, Expected(answer_should_not_include=["blue"]), ["pass", "pass", "fail"]),
        (SAYS, Expected(answer_should_include=["red"]), ["pass", "pass", "pass"]),
        (CALLS, Expected(must_call_tools=["pay"]), ["pass", "pass", "fail"]),
    ],
)
def test_what_a_single_case_expects_is_judged(
    tmp_path: Path, check: EvaluatorSpec, last: Expected, verdicts: list[str]
) -> None:
    cases = [Case("c0", "in"), Case("c1", {"text": "in"}), Case("c2", "in", last)]
    assert judged(stored(tmp_path, cases, check)) == verdicts


def expected_in(folder: Path, cases: list[Case], *keys: str) -> bool:
    place = stored(folder, cases, SAYS)
    with closing(place.store.read(place.run_id)) as reader:
        return expects(reader, keys)


@pytest.mark.parametrize("before", [0, 1, 12, len(AVOIDED) + 1])
def test_an_expectation_is_found_wherever_a_block_of_cases_ends(tmp_path: Path, before: int) -> None:
    """A block ends so many characters into the key."""
    case = Case("c", "", Expected(answer_should_not_include=["x"]))
    start = LocalFiles(tmp_path)
    with closing(start.create(a_plan(run_id="measured"), [case], {})) as writer:
        [line] = writer.case_lines()
    case.input = "x" * (BLOCK - before - line.index(f'"{AVOIDED}"'.encode()))
    assert expected_in(tmp_path, [case, Case("d", "in")], AVOIDED)


def test_a_text_that_looks_like_an_expectation_is_none(tmp_path: Path) -> None:
    said = f'"{AVOIDED}":["x"]'
    assert not expected_in(tmp_path, [Case("c", said), Case(said, {"text": said})], AVOIDED, INCLUDED)


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: b"\n",
        lambda line: b"#" * (len(line) - 1) + b"\n",
        lambda line: line[:30] + b"\n",
        lambda line: line.replace(b'"c1"', b'"c2"'),
        lambda line: b"",
    ],
    ids=["blank", "overwritten", "cut", "another case", "missing"],
)
def test_without_a_case_that_may_expect_something_nothing_is_judged(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    """An answer would pass for which nobody knows what was expected."""
    cases = [Case("c0", "in"), Case("c1", "in", Expected(answer_should_not_include=["blue"]))]
    place = stored(tmp_path, cases, SAYS)
    assert judged(place) == ["pass", "fail"]
    file = tmp_path / place.run_id / "cases.jsonl"
    first, second = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(first + damage(second))
    with pytest.raises(InputError, match=r"cases"):
        judged_again(place)
    with closing(place.store.read(place.run_id)) as reader:
        assert [verdict.status for verdict in reader.verdicts(CaseVerdict)] == ["pass", "fail"]


def looks_like(name: str, kind: str, *configs: dict[str, Any]) -> list[EvaluatorSpec]:
    return [EvaluatorSpec(f"{name}{number}", kind, config) for number, config in enumerate(configs)]


@pytest.mark.parametrize(
    "checks",
    [
        looks_like("says", "contains_text", {"all_of": ["blue"]}, {"all_of": ["red"]}),
        looks_like("quick", "latency_under", {"max_ms": 1_000_000}, {"max_ms": 1}),
    ],
    ids=["some expect nothing", "none reads it"],
)
def test_a_rule_of_verdicts_that_looks_at_the_case_gets_it(tmp_path: Path, checks: list[EvaluatorSpec]) -> None:
    """Half of the checks pass, which is enough if the case says so."""
    cases = [Case("c0", "in", extra={THRESHOLD: 0.4}), Case("c1", "in", extra={THRESHOLD: 0.6})]
    assert judged(stored(tmp_path, cases, *checks, criteria=PassCriteria(rule="bands"))) == ["pass", "fail"]
