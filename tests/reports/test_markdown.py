from __future__ import annotations

import re

import pytest

from evalwright.model.summary import (
    ComparisonReport,
    EvaluatorRate,
    EvaluatorRollup,
    GateOutcome,
    GatePart,
    VariantDelta,
)
from evalwright.reports.markdown import Markdown, code
from evalwright.testing import a_verdict
from reports.runs import ERRORED, FAILED, HOSTILE, stored, summary, variant


def rendered(*verdicts: object, **fields: object) -> str:
    return Markdown().render(stored(*verdicts), summary(**fields))  # type: ignore[arg-type]


def outside_code(markdown: str) -> str:
    """What is left when the code spans are taken out: same-length runs of backticks belong together."""
    return re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", markdown)


def test_a_rate_carries_n_and_interval() -> None:
    assert "| `old` | 75.0% | 55.1–88.0% | 24 |" in rendered()


def test_names_are_to_the_left_and_numbers_to_the_right() -> None:
    variants = rendered().partition("## Variants")[2]
    titles, rule = (line.split(" | ") for line in variants.split("\n| ", 3)[1:3])
    sides = dict(zip(titles, rule, strict=True))
    assert (sides["variant"], sides["pass rate"]) == ("---", "---:")


def test_cases_that_belong_together_are_told_beside_their_interval() -> None:
    text = rendered(native={"conversations": 1, "cases_in_conversations": 2})
    variants = text.partition("## Variants")[2].partition("\n## ")[0]
    assert "2 cases of 1 conversation: not independent of each other" in variants
    assert "conversation" not in rendered()


def test_the_comparison_says_how_sure_it_is() -> None:
    assert "| `new` | +8.3 pp [−5.0, +21.0] | 0.412 | 24 | −172 ms | 1 `c3` | 2 `c1` `c9` |" in rendered()


def test_failures_and_errors_are_apart_with_their_reasons() -> None:
    text = rendered(FAILED, ERRORED, variants=[variant("new", cells={"fail": 1, "error": 1})])
    failures, _, errors = text.partition("## Errors (no verdict): 1")
    assert "- `c3` `new`\n  - `says_hello: missing 'hello'`" in failures
    assert "- `c7` `old`\n  - `timeout: no answer`" in errors


@pytest.mark.parametrize(
    "text",
    [
        HOSTILE,
        "```\n</code>",
        "`",
        "``",
        "`a``b```",
        "a|b",
        "\\|",
        "\\",
        "@everyone",
        "[x](javascript:alert(1))",
        "<img src=x onerror=alert(1)>",
        " ",
    ],
)
def test_data_stays_in_its_code_span(text: str) -> None:
    assert outside_code(f"a {code(text)} b").split() == ["a", "b"]


@pytest.mark.parametrize("gate", [None, GateOutcome(False, [GatePart(HOSTILE, False, 0.82, "gte", 0.9, 24)], HOSTILE)])
def test_hostile_names_add_neither_markup_nor_lines(gate: GateOutcome | None) -> None:
    fields = {
        "run_id": HOSTILE,
        "config_path": HOSTILE,
        "variants": [variant(HOSTILE, cells={"fail": 1}, detectable=0.1), variant(f"{HOSTILE}2", detectable=0.1)],
        "gate": gate,
        "by_evaluator": [EvaluatorRollup(HOSTILE, {HOSTILE: EvaluatorRate(1.0, None, 1)})],
        "comparison": ComparisonReport(HOSTILE, [VariantDelta(HOSTILE, 0.0, 0.0, [HOSTILE], [])]),
    }
    verdict = a_verdict(case_id=HOSTILE, variant_name=HOSTILE, status="fail", reasons=[HOSTILE])
    left = outside_code(rendered(verdict, **fields))
    assert "script" not in left
    assert "alert" not in left
    assert "\x1b" not in left


def test_every_row_of_a_table_has_the_same_cells() -> None:
    text = rendered(variants=[variant(HOSTILE)], by_evaluator=[], comparison=None)
    rows = [line for line in text.partition("## Trials")[0].splitlines() if line.startswith("|")]
    assert len({row.count("|") for row in rows}) == 1


def test_a_gate_of_several_runs_says_what_each_measured() -> None:
    runs = [GateOutcome(value >= 0.5, [GatePart("avg", value >= 0.5, value, "gte", 0.5, 4)]) for value in (0.2, 0.6)]
    text = rendered(gate=GateOutcome(True, runs=runs))
    assert text.partition("## Gate: passed\n\n")[2].splitlines()[:5] == [
        "- run 1: failed",
        "  - missed: `avg 0.2, at least 0.5 (4 scores)`",
        "- run 2: passed",
        "  - met: `avg 0.6, at least 0.5 (4 scores)`",
        "- `avg 0.4 ± 0.283, mean and standard deviation of 2 runs`",
    ]


def test_a_gate_says_what_it_measured_and_keeps_its_reason_in_a_code_span() -> None:
    text = rendered(gate=GateOutcome(False, [GatePart("avg", False, 0.82, "gte", 0.9, 24)], HOSTILE))
    assert "- missed: `avg 0.82, at least 0.9 (24 scores)`" in text
    heading = next(line for line in text.splitlines() if line.startswith("## Gate"))
    assert outside_code(heading).split() == ["##", "Gate:", "failed:"]


def test_borderline_is_a_column_and_a_word_of_its_own() -> None:
    page = rendered(a_verdict(status="borderline"), variants=[variant("new", cells={"borderline": 1, "pass": 2})])
    assert "| pass | borderline | fail |" in page
    assert "`, borderline" in page
