from __future__ import annotations

import pytest

from evalwright.errors import in_seconds, money
from evalwright.model.summary import EvaluatorRate, GatePart
from evalwright.reports import numbers
from evalwright.testing import a_summary
from reports.runs import variant


def test_what_many_variants_could_show_is_one_line() -> None:
    few, many = (a_summary(variants=[variant(f"v{i}", detectable=(i + 1) / 100) for i in range(n)]) for n in (6, 100))
    assert ": v0 ±1.0 pp, v1 ±2.0 pp, v2 ±3.0 pp, v3 ±4.0 pp" in numbers.could_show(few)
    shown = numbers.could_show(many)
    assert "that this suite can show: ±1.0 to ±100.0 pp, depending on the variant (80 %" in shown


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0.0%"),
        (0.7125, "71.2%"),
        (0.999, "99.9%"),
        (19_999 / 20_000, ">99.9%"),
        (1 / 1_000_000, "<0.1%"),
        (1.0, "100.0%"),
        (1 - 1e-15, "100.0%"),
    ],
)
def test_only_all_are_100_percent_and_only_none_are_0(share: float, text: str) -> None:
    assert numbers.percent(share) == text


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((0.551, 0.88), "55.1–88.0%"),
        ((0.99972, 0.999991), ">99.9–100.0%"),
        ((0.000009, 0.00028), "0.0–<0.1%"),
        ((0.0, 0.5), "0.0–50.0%"),
        ((1.0, 1.0), "100.0–100.0%"),
        ((0.0, 0.0), "0.0–0.0%"),
    ],
)
def test_a_rounded_interval_holds_the_rate(ends: tuple[float, float], text: str) -> None:
    assert numbers.interval(ends) == text


@pytest.mark.parametrize(
    ("value", "ends", "limit", "unit", "text"),
    [
        (0.81, (0.7, 0.9), 0.8, "rate", "81.0% [70.0, 90.0], at least 80%"),
        (0.79996, (0.7, 0.9), 0.8, "rate", "79.996% [70.0, 90.0], at least 80%"),
        (0.9, (0.79996, 0.95), 0.8, "rate", "90.0% [79.996, 95.0], at least 80%"),
        (0.8, (0.7, 0.9), 0.8, "rate", "80.0% [70.0, 90.0], at least 80%"),
        (0.99995, (0.999, 1.0), 0.8, "rate", "99.995% [99.9, 100.0], at least 80%"),
        (-0.01, (-0.0202, 0.01), -0.02, "points", "−1.0 pp [−2.02, +1.0], at least −2 pp"),
        (1.05, (1.0, 1.10004), 1.1, "ratio", "+5.0 % [0.0, +10.004], at least +10 %"),
    ],
)
def test_a_claim_that_misses_its_limit_does_not_look_like_it(
    value: float, ends: tuple[float, float], limit: float, unit: str, text: str
) -> None:
    part = GatePart("rate", False, value, "gte", limit, 50, ends, unit=unit)
    assert numbers.condition(part) == f"rate: {text} (50 cases)"


@pytest.mark.parametrize(("value", "text"), [(0.5, "0.500"), (4.25, "4.250"), (1.04e308, "1.04e+308")])
def test_scores(value: float, text: str) -> None:
    assert numbers.score(value) == text


@pytest.mark.parametrize(
    ("value", "limit", "text"),
    [
        (0.82, 0.9, "mean 0.82, at least 0.9 (3 scores)"),
        (0.8999999, 0.9, "mean 0.8999999, at least 0.9 (3 scores)"),
        (0.1 + 0.7, 0.8, "mean 0.7999999999999999, at least 0.8 (3 scores)"),
        (0.9, 0.9, "mean 0.9, at least 0.9 (3 scores)"),
        (0.8, 0.8000001, "mean 0.8, at least 0.8000001 (3 scores)"),
    ],
)
def test_a_value_that_misses_its_limit_does_not_look_like_it(value: float, limit: float, text: str) -> None:
    assert numbers.condition(GatePart("mean", False, value, "gte", limit, 3)) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 ms"),
        (812.4, "812 ms"),
        (999.7, "1.00 s"),
        (3210, "3.21 s"),
        (45_000, "45.0 s"),
        (59_990, "1 min 00 s"),
        (725_000, "12 min 05 s"),
    ],
)
def test_durations(milliseconds: float, text: str) -> None:
    assert numbers.duration(milliseconds) == text


@pytest.mark.parametrize(
    ("dollars", "text"),
    [
        (0, "$0.00"),
        (1234.5, "$1,234.50"),
        (0.12, "$0.1200"),
        (0.0012, "$0.0012"),
        (0.00004, "$0.000040"),
        (0.0000123, "$0.000012"),
        (-0.0, "$0.00"),
        (0.1 + 0.2 - 0.3, "$0.00"),
        (-1e-17, "$0.00"),
    ],
)
def test_money(dollars: float, text: str) -> None:
    assert money(dollars) == text


def test_points_carry_their_interval_and_sign() -> None:
    assert numbers.points(0.0833, (-0.05, 0.21)) == "+8.3 pp [−5.0, +21.0]"


@pytest.mark.parametrize(
    ("ends", "margin", "text"),
    [
        ((-0.0196, 0.05), 0.02, "[−1.96, +5.0]"),
        ((-0.0204, 0.05), 0.02, "[−2.04, +5.0]"),
        ((-0.01955, 0.05), 0.0196, "[−1.955, +5.0]"),
        ((-0.02, 0.0), 0.02, "[−2.0, 0.0]"),
        ((-0.05, -0.0002), 0.02, "[−5.0, −0.02]"),
    ],
)
def test_the_ends_of_a_difference_look_on_the_side_of_the_margin_and_of_0_that_they_are_on(
    ends: tuple[float, float], margin: float, text: str
) -> None:
    assert numbers.points(0.01, ends, margin) == f"+1.0 pp {text}"


@pytest.mark.parametrize(
    ("n", "cases", "grouped", "text"),
    [
        (4, 4, False, "4"),
        (4, 2, False, "4 of 2 cases"),
        (4, 1, False, "4 of 1 case"),
        (4, 1, True, "4 results of 1 group"),
    ],
)
def test_results_are_of_cases_or_of_groups_of_cases(n: int, cases: int, grouped: bool, text: str) -> None:
    assert numbers.results(EvaluatorRate(1.0, None, n, cases=cases, grouped=grouped)) == text


def test_no_difference_has_no_sign() -> None:
    assert numbers.points(-0.00001) == "0.0 pp"


def test_small_probabilities_are_not_zero() -> None:
    assert numbers.probability(0.0000001) == "<0.001"


@pytest.mark.parametrize(
    ("p", "level", "text"),
    [(0.04996, 0.05, "0.04996"), (0.0502, 0.05, "0.0502"), (0.05, 0.05, "0.050"), (0.0004, 0.0001, "0.0004")],
)
def test_a_probability_looks_on_the_side_of_the_level_that_it_is_on(p: float, level: float, text: str) -> None:
    assert numbers.probability(p, level) == text


@pytest.mark.parametrize(
    ("delta", "ends", "text"),
    [
        (0.0123, (-0.002, 0.0266), "+0.012 [−0.002, +0.027]"),
        (0.0000381, (0.0000290, 0.0000471), "+0.00004 [+0.00003, +0.00005]"),
        (0.0000381, None, "+0.00004"),
        (0.0, (-0.5, 0.5), "0.000 [−0.500, +0.500]"),
        (2.0, (2.0, 2.0), "+2.000 [+2.000, +2.000]"),
    ],
)
def test_a_change_of_a_score_has_the_digits_of_its_interval(
    delta: float, ends: tuple[float, float] | None, text: str
) -> None:
    assert numbers.score_change(delta, ends) == text


def test_a_change_of_time_has_a_sign() -> None:
    assert numbers.signed_duration(-1500) == "−1.50 s"


@pytest.mark.parametrize(
    ("value", "shown"), [(-0.04, "0.0"), (-12.34, "−12.3"), (-2.5e12, "−2.5e+12"), (1e300, "+1e+300")]
)
def test_a_large_number_has_no_more_digits_than_it_is_worth(value: float, shown: str) -> None:
    assert numbers.signed(value, 1) == shown


@pytest.mark.parametrize(
    ("limit", "text"),
    [(1, "1 second"), (1.0, "1 second"), (0.9999999, "1 second"), (0.1, "0.1 seconds"), (2, "2 seconds")],
)
def test_a_limit_of_one_second_is_in_the_singular(limit, text):
    assert in_seconds(limit) == text
