from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from evalwright.model.plan import RunSettings, Variant
from evalwright.model.result import CaseVerdict
from evalwright.model.summary import ComparisonReport, GateOutcome, GatePart, VariantDelta
from evalwright.registry import load
from evalwright.reports.reasons import group_reasons
from evalwright.reports.terminal import failure_lines, run_lines
from evalwright.reports.text import Paint, width
from evalwright.testing import a_verdict
from reports.runs import ERRORED, FAILED, HOSTILE, plan, stored, summary, variant


def shown(**fields: object) -> str:
    return "\n".join(run_lines(plan(), summary(**fields), Paint()))


def line_with(text: str, word: str) -> str:
    return next(line for line in text.splitlines() if word in line)


def test_a_pass_rate_carries_its_n_and_its_interval() -> None:
    line = line_with(shown(), "  old")
    assert line.split()[:4] == ["old", "75.0%", "55.1–88.0%", "24"]


def test_a_mean_carries_its_n() -> None:
    text = shown()
    assert "812 ms (n=48)" in line_with(text, "  old")
    assert "$0.0012 (n=47)" in line_with(text, "  new")


def test_evaluators_have_n_and_interval() -> None:
    line = line_with(shown(), "says_hello")
    assert line.split()[1:4] == ["75.0%", "61.0–85.0%", "48"]


def test_the_comparison_says_how_sure_it_is() -> None:
    text = shown()
    assert line_with(text, " pp ").split() == [
        "new",
        "+8.3",
        "pp",
        "[−5.0,",
        "+21.0]",
        "0.412",
        "24",
        "−172",
        "ms",
        "1",
        "2",
    ]
    assert "  changed in new, worse: c3" in text
    assert "  changed in new, better: c1, c9" in text


def test_repeats_show_both_kinds_of_pass_at_k() -> None:
    lines = shown().splitlines()
    header = next(i for i, line in enumerate(lines) if "pass@k (one of k)  pass^k (all of k)" in line)
    assert [line.split() for line in lines[header + 1 : header + 3]] == [
        ["old", "1", "75.0%", "75.0%", "24"],
        ["2", "87.5%", "62.5%", "24"],
    ]


def test_the_title_has_the_trials_that_were_planned_also_where_none_has_a_verdict() -> None:
    planned = plan(run=RunSettings(trials=3), variants=[Variant("old", "replay")])
    assert "× 3 trials" in run_lines(planned, summary(variants=[variant("old", trials=None)]), Paint())[0]


def test_one_trial_has_no_table_of_trials() -> None:
    assert "pass@k" not in shown(variants=[variant("old", trials=None)])


def test_the_first_line_fits_whatever_the_name_of_the_eval() -> None:
    partial = summary(cells_total=84, cells_missing=12, status="partial")
    for found, ending in ((summary(), "2 variants"), (partial, "partial: 12 of 96 cells not run")):
        first = run_lines(plan(name="refunds " * 9), found, Paint(columns=80))[0]
        assert width(first) <= 80
        assert first.startswith("refunds ref")
        assert "…" in first
        assert first.endswith(ending)


def test_a_partial_run_says_so_first() -> None:
    text = shown(cells_total=84, cells_missing=12, status="partial")
    assert "partial: 12 of 96 cells not run" in text.splitlines()[0]


def test_a_rate_of_nothing_is_no_number() -> None:
    nothing = variant("old", pass_rate=0.0, pass_rate_n=0, pass_rate_ci95=None, cells={}, trials=None)
    assert line_with(shown(variants=[nothing], by_evaluator=[], comparison=None), "  old").split()[1] == "–"


def test_names_from_data_cannot_act_on_the_terminal() -> None:
    delta = VariantDelta(HOSTILE, 0.1, 0.0, [HOSTILE], [HOSTILE])
    text = shown(variants=[variant(HOSTILE)], comparison=ComparisonReport(HOSTILE, [delta]))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert not any(line.lstrip().startswith("# heading") for line in text.splitlines())


def failures(*verdicts: CaseVerdict, columns: int | None = None, trials: int = 1, variants: int = 1) -> list[str]:
    """The lines about those cells, in a run of one variant unless more are asked for."""
    cells = Counter(verdict.status for verdict in verdicts)
    of = summary(variants=[variant(name, cells=dict(cells)) for name in ("old", "new")[:variants]])
    planned = plan(variants=[Variant("old", "replay", trials=1), Variant("new", "replay", trials=trials)])
    return failure_lines(*group_reasons(stored(*verdicts), of), planned, of, "runs/r", Paint(columns=columns))


def test_failures_and_errors_are_apart() -> None:
    assert failures(FAILED, ERRORED, variants=2) == [
        "Failures (1 cell)",
        "  1 × says_hello: missing 'hello'",
        "      ✗ c3 · new",
        "",
        "Errors (1 cell, no verdict)",
        "  1 × timeout: no answer",
        "      ! c7 · old",
    ]


def test_cells_that_failed_for_the_same_reason_are_one_group_in_the_order_of_the_suite() -> None:
    verdicts = [
        a_verdict(case_id=f"c{i:02}", case_index=i, status="fail", reasons=[f"says: missing: 'a{i}'", *more])
        for i, more in ((3, []), (0, ["cheap: $0.2"]), (4, []), (1, []), (2, []))
    ]
    assert failures(*verdicts) == [
        "Failures (5 cells, 2 reasons)",
        "  5 × says: missing: '…'",
        "      ✗ c00, c01, c02 and 2 more",
        "  1 × cheap: $0.2",
        "      ✗ c00",
    ]


def test_one_more_case_than_are_shown_is_named_and_not_counted() -> None:
    verdicts = [a_verdict(case_id=f"c{i}", case_index=i, status="fail", reasons=["says: no"]) for i in (3, 0, 2, 1)]
    assert failures(*verdicts)[-1] == "      ✗ c0, c1, c2, c3"


def test_trials_of_a_case_are_one_entry() -> None:
    verdicts = [
        a_verdict(case_id=name, variant_name="new", case_index=i, trial=trial, status="fail", reasons=["says: no"])
        for i, (name, trials) in enumerate(
            (("refund", (0, 2)), ("invoice", (1,)), *((f"c{i}", (0, 1)) for i in range(3)))
        )
        for trial in trials
    ]
    assert failures(*verdicts[:3], trials=3)[1:] == [
        "  3 × says: no",
        "      ✗ refund (2 of 3 trials), invoice (1 of 3 trials)",
    ]
    assert failures(*verdicts, trials=3)[-1].endswith(", c0 (2 of 3 trials) and 4 more cells")


def test_each_variant_has_its_own_number_of_trials() -> None:
    verdicts = [a_verdict(variant_name=name, case_index=0, status="fail", reasons=["no"]) for name in ("old", "new")]
    assert failures(*verdicts, trials=3, variants=2)[-1] == "      ✗ c1 · old, c1 · new (1 of 3 trials)"
    planned = plan(variants=[Variant("old", "replay", trials=1), Variant("new", "replay", trials=3)])
    assert run_lines(planned, summary(), Paint())[0].endswith("24 cases × 2 variants × 1–3 trials")


def test_a_long_name_is_cut_once() -> None:
    verdict = a_verdict(case_id="refund" * 30, variant_name="new" * 30, status="fail", reasons=["says: no"])
    assert failures(verdict, columns=70, trials=3, variants=2)[-1].count("…") == 2  # of the case, of the variant


def test_more_reasons_than_are_shown_are_counted_with_the_command_that_shows_them() -> None:
    verdicts = [a_verdict(case_id=f"c{i}", status="fail", reasons=[f"e_{chr(97 + i)}: no"]) for i in range(12)]
    lines = failures(*verdicts)
    assert len(lines) == 1 + 2 * 10 + 1
    assert lines[-1] == "  … and 2 more reasons: evalwright inspect runs/r --failed"


def test_a_reason_from_a_model_cannot_act_on_the_terminal() -> None:
    text = "\n".join(failures(a_verdict(status="fail", reasons=[HOSTILE * 100])))
    assert "\x1b" not in text
    assert len(text) < 500


@given(st.text(min_size=1, max_size=120), st.text(min_size=1, max_size=300), st.integers(60, 130))
def test_no_line_about_failures_is_wider_than_the_screen(name: str, reason: str, columns: int) -> None:
    verdicts = [
        a_verdict(case_id=f"{name}{i}", variant_name="new", case_index=i, status="fail", reasons=[f"says: {reason}"])
        for i in range(5)
    ]
    lines = failures(*verdicts, columns=columns, trials=3, variants=2)
    assert max(map(width, lines)) <= columns


def test_a_failure_that_a_retry_mended_is_not_listed() -> None:
    mended = a_verdict(case_id="c3", variant_name="new", status="pass", attempt=2)
    other = a_verdict(case_id="c4", variant_name="new", status="fail", reasons=["says: no"])
    assert failures(FAILED, other, mended) == ["Failures (1 cell)", "  1 × says: no", "      ✗ c4"]


def test_a_gate_of_several_runs_says_what_each_measured_and_how_far_they_differ() -> None:
    runs = [GateOutcome(value >= 0.5, [GatePart("avg", value >= 0.5, value, "gte", 0.5, 4)]) for value in (0.2, 0.6)]
    text = shown(gate=GateOutcome(True, runs=runs))
    assert [line.split() for line in text[text.index("gate") :].splitlines()] == [
        ["gate", "passed"],
        ["run", "1", "failed"],
        ["missed", "avg", "0.2,", "at", "least", "0.5", "(4", "scores)"],
        ["run", "2", "passed"],
        ["met", "avg", "0.6,", "at", "least", "0.5", "(4", "scores)"],
        ["avg", "0.4", "±", "0.283,", "mean", "and", "standard", "deviation", "of", "2", "runs"],
    ]


def test_colours_say_nothing_that_the_text_does_not() -> None:
    painted = "\n".join(run_lines(plan(), summary(), Paint(True)))
    for code in ("0", "1", "2", "31", "32", "33", "35"):
        painted = painted.replace(f"\x1b[{code}m", "")
    assert painted == shown()


def test_a_gate_says_what_it_measured_and_what_it_was_held_against() -> None:
    parts = [GatePart("avg_score", False, 0.82, "gte", 0.9, 24), GatePart("pass_rate", True, None)]
    text = shown(gate=GateOutcome(False, parts, "2 of 3 errored"))
    assert line_with(text, "gate").split() == ["gate", "failed", "2", "of", "3", "errored"]
    assert line_with(text, "avg_score").split() == [
        "missed",
        "avg_score",
        "0.82,",
        "at",
        "least",
        "0.9",
        "(24",
        "scores)",
    ]
    assert "not measured" in line_with(text, "pass_rate")


def test_several_comparisons_say_what_their_intervals_and_their_p_hold_for() -> None:
    note = "each interval and p is of one comparison alone; p (Holm) holds for all 2"
    deltas = [VariantDelta(name, 0.1, 0.0, [], [], 24, (0.0, 0.2), 0.03, p_holm=0.06) for name in ("new", "newer")]
    several, single = ComparisonReport("old", deltas), summary().comparison
    for report in ("markdown", "html"):
        render = load("reports", report)().render
        assert note in render(stored(), summary(comparison=several))
        assert note not in render(stored(), summary(comparison=single))
    assert note in shown(comparison=several)
    assert note not in shown(comparison=single)
