"""Every column says the same in all reports, and is written down once in the docs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any

import msgspec
import pytest

from evalwright.decisions.comparison import EvaluatorComparison, RunComparison, Side, VariantComparison
from evalwright.decisions.drift import MeasureChange
from evalwright.model.calibration import CalibrationReport, CorrectedRate, JudgeCalibration, Share
from evalwright.model.summary import (
    ComparisonReport,
    EvaluatorRate,
    EvaluatorRollup,
    NamedMetric,
    TrialStatistics,
    VariantDelta,
)
from evalwright.reports import columns, decision_columns
from evalwright.reports.calibration import calibration_lines
from evalwright.reports.column import Column, Unit, used
from evalwright.reports.comparison import comparison_of_runs
from evalwright.reports.json import JsonReport
from evalwright.reports.markdown import Markdown
from evalwright.reports.terminal import run_lines
from evalwright.reports.text import Paint
from evalwright.viewer.document import HtmlDocument
from reports.runs import DECISION, plan, stored, summary, variant

ROOT = Path(__file__).parents[2]
TABLES = {
    name: getattr(room, name)
    for room in (columns, decision_columns)
    for name in room.__all__
    if name.endswith("_COLUMNS")
}

DELTA = VariantDelta("new", 0.083, -172.0, ["c3"], ["c1", "c9"], 24, (-0.05, 0.21), 0.412, 0.824)
JUDGE = JudgeCalibration(
    "judge",
    60,
    tpr=Share(0.921, 38, (0.79, 0.97)),
    tnr=Share(0.5, 22, (0.31, 0.69)),
    rates=[CorrectedRate("old", Share(0.71, 51, (0.6, 0.8)), 60, 0.64, (0.41, 0.83), 0.66, (0.52, 0.79))],
)


def filled(record: Any) -> Any:
    """The record with a number in every field that has none, so that a new column has a value here too."""
    for name in record.__struct_fields__:
        if getattr(record, name) is None:
            setattr(record, name, 0.0123)
    return record


FULL = summary(
    variants=[
        filled(
            variant(
                name,
                cells={"pass": 31, "borderline": 2, "fail": 11, "error": 3, "skip": 1},
                avg_cost_usd=0.0012,
                cost_n=47,
                cost_total_usd=0.0564,
                avg_tokens_input=1209.0,
                tokens_input_n=46,
                avg_tokens_output=50.0,
                tokens_output_n=45,
                judge_cost_usd=1.25,
                dominated_by=["cheaper"],
                trials=TrialStatistics(
                    2,
                    24,
                    [0.75, 0.875],
                    [0.75, 0.625],
                    [24, 23],
                    [(0.5, 0.9), (0.6, 0.95)],
                    [(0.5, 0.9), (0.4, 0.8)],
                    0.25,
                    (0.1, 0.4),
                    2,
                    ["c7", "c8"],
                ),
            )
        )
        for name in ("old", "new")
    ],
    by_evaluator=[
        EvaluatorRollup(
            "judge",
            {name: filled(EvaluatorRate(0.75, 0.625, 48, (0.61, 0.85), 44, 4, 2, 24)) for name in ("old", "new")},
            JUDGE,
        )
    ],
    comparison=ComparisonReport("old", [DELTA]),
    named_metrics=[NamedMetric("tone", name, 34.5, 0.719, 48) for name in ("old", "new")],
)
RUNS = RunComparison(
    "a",
    "b",
    [
        VariantComparison(
            "new",
            Side(0.75, 24, (0.5, 0.9), 812.0, 48, 0.0012, 47),
            Side(0.8, 23, (0.5, 0.9), 640.0, 46, 0.0015, 45),
            DELTA,
            DECISION,
        )
    ],
    [
        EvaluatorComparison(
            name,
            name,
            Side(0.75, 24, None),
            Side(0.8, 23, None),
            rate_delta=0.05,
            rate_ci=(0.01, 0.09),
            rate_p=0.03,
            scored=True,
            paired=0.06,
            ci=(0.01, 0.11),
            p=0.02,
            q=0.04,
        )
        for name in ("judge", "says_hello")
    ],
)
CHANGES = [MeasureChange("latency_ms", 812.5, 640.25, 48, 46)]
OF_RUN: dict[str, Sequence[Any]] = {
    "VARIANT_COLUMNS": FULL.variants,
    "EVALUATOR_COLUMNS": columns.evaluator_rows(FULL.by_evaluator),
    "METRIC_COLUMNS": columns.metric_rows(FULL),
    "TRIAL_COLUMNS": columns.trial_rows(FULL.variants),
    "COMPARISON_COLUMNS": [DELTA],
}
ROWS = {
    **OF_RUN,
    "RUN_COMPARISON_COLUMNS": RUNS.variants,
    "EVALUATOR_CHANGE_COLUMNS": RUNS.evaluators,
    "MEASURE_CHANGE_COLUMNS": CHANGES,
    "CORRECTED_RATE_COLUMNS": JUDGE.rates,
}


@cache
def lines_of(output: str) -> list[str]:
    """The full run in a report; made by the worker that needs it, not by all of them when they collect."""
    if output == "terminal":
        return [
            *run_lines(plan(), FULL, Paint()),
            *comparison_of_runs(RUNS, Paint()),
            *calibration_lines(CalibrationReport("r", [JUDGE]), Paint()),
        ]
    if output == "markdown":
        return Markdown().render(stored(), FULL).splitlines()
    page = HtmlDocument().render(stored(), FULL)
    return [unescape(re.sub("<[^>]*>", "\t", row)) for row in re.findall("<tr>.*?</tr>", page)]


def holds(lines: Sequence[str], row: Sequence[str]) -> bool:
    """Whether some line has all of these texts in their order."""
    return any(re.search(".*?".join(map(re.escape, row)), line) for line in lines)


@pytest.mark.parametrize("output", ["terminal", "markdown", "html"])
@pytest.mark.parametrize("name", OF_RUN)
def test_a_report_has_every_column_with_its_title_and_its_values(name: str, output: str) -> None:
    titles = [column.title for column in TABLES[name] if not (name == "COMPARISON_COLUMNS" and column.key == "variant")]
    assert set(used(TABLES[name], OF_RUN[name])) == set(TABLES[name]), "give the column a value in FULL, above"
    assert holds(lines_of(output), titles)
    for row in OF_RUN[name]:
        said = [column.show(row) for column in TABLES[name]]
        if output == "terminal" and name in ("EVALUATOR_COLUMNS", "METRIC_COLUMNS", "TRIAL_COLUMNS"):
            said = said[1:]  # the name that several rows share stands at the first of them
        assert all(said)
        assert holds(lines_of(output), said)


@pytest.mark.parametrize("name", ["RUN_COMPARISON_COLUMNS", "EVALUATOR_CHANGE_COLUMNS", "CORRECTED_RATE_COLUMNS"])
def test_tables_of_several_runs_and_of_labels_have_every_column(name: str) -> None:
    assert holds(lines_of("terminal"), [column.title for column in TABLES[name]])
    assert all(holds(lines_of("terminal"), [column.show(row) for column in TABLES[name]]) for row in ROWS[name])


@pytest.mark.parametrize("name", ROWS)
def test_the_key_of_a_column_is_where_json_has_the_value(name: str) -> None:
    document = json.loads(JsonReport().render(stored(), FULL))["summary"]
    wanted, found = {}, {}
    for number, row in enumerate(ROWS[name]):
        as_json = _as_json(row, document)
        for column in TABLES[name]:
            place = f"{number}: {column.key}"
            wanted[place] = json.loads(msgspec.json.encode(column.value(row)))
            found[place] = _at(as_json, column.key)
            if name == "TRIAL_COLUMNS" and isinstance(found[place], list):
                found[place] = found[place][row.k - 1]
    assert found == wanted


def _at(found: Any, key: str) -> Any:
    for part in key.split("."):
        found = found.get(part, "missing")
    return found


def _as_json(row: Any, document: Any) -> Any:
    """The object of `--json` and `report --format json` that a row is made of, in the summary of that document."""
    if isinstance(row, columns.EvaluatorRow):
        (rollup,) = document["by_evaluator"]
        return {**rollup, "variant": row.variant, **rollup["by_variant"][row.variant]}
    if isinstance(row, columns.TrialRow):
        return {**next(v for v in document["variants"] if v["name"] == row.variant), "k": row.k}
    plain = json.loads(msgspec.json.encode(row))
    return {**plain, "change": row.change} if isinstance(row, MeasureChange) else plain


@pytest.mark.parametrize("name", OF_RUN)
def test_a_column_of_nothing_is_in_no_report_or_in_all(name: str) -> None:
    bare = summary(
        by_evaluator=[EvaluatorRollup("judge", {"old": EvaluatorRate(0.75, 0.75, 48)})],
        named_metrics=[NamedMetric("cost of tone", "old", 2.5)],
    )
    rows = {
        "VARIANT_COLUMNS": bare.variants,
        "EVALUATOR_COLUMNS": columns.evaluator_rows(bare.by_evaluator),
        "METRIC_COLUMNS": columns.metric_rows(bare),
        "TRIAL_COLUMNS": columns.trial_rows(bare.variants),
        "COMPARISON_COLUMNS": bare.comparison.deltas if bare.comparison else [],
    }[name]
    shown = {column.title for column in used(TABLES[name], rows)}
    markdown = next(line for line in Markdown().render(stored(), bare).splitlines() if _header(name) in line)
    assert {column.title for column in TABLES[name] if f"| {column.title} |" in markdown} == shown


def test_an_interval_of_no_flakes_stands_beside_their_rate() -> None:
    steady = variant("new", trials=TrialStatistics(2, 24, [0.75], [0.75], flake_rate=0.0, flake_rate_ci95=(0.0, 0.06)))
    titles = [column.title for column in used(columns.VARIANT_COLUMNS, [steady])]
    assert titles[-2:] == ["flake rate", "95% interval"]


def _header(name: str) -> str:
    return {
        "VARIANT_COLUMNS": "| mean latency |",
        "EVALUATOR_COLUMNS": "| passed |",
        "METRIC_COLUMNS": "| metric |",
        "TRIAL_COLUMNS": "| k |",
    }.get(name, "| changed, worse |")


@pytest.mark.parametrize("name", TABLES)
def test_every_column_is_documented(name: str) -> None:
    text = (ROOT / "docs" / "reports.md").read_text()
    lines = [f"| {column.title} | `{column.key}` |" for column in TABLES[name]]
    assert [line for line in lines if f"\n{line}" not in text] == []


def test_every_unit_has_a_way_of_writing() -> None:
    values = {Unit.INTERVAL: (0.1, 0.2), Unit.CASES: ["a"]}
    shown = [Column("key", "title", unit, lambda row, unit=unit: values.get(unit, 0.5)).show(None) for unit in Unit]
    assert all(shown)


def test_a_run_that_draws_no_table_does_not_load_them(tmp_path: Path) -> None:
    code = (
        "import sys; from evalwright.cli import main\n"
        "try: main(['run', 'eval.yaml', '--json'])\n"
        "except SystemExit: print([name for name in sys.modules if name.startswith('evalwright.reports.')])"
    )
    for command in (["-m", "evalwright", "init"], ["-c", code]):
        out = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout
    assert "evalwright.reports.columns" not in out.splitlines()[-1]
