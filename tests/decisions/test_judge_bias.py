"""What the verdicts of a judge depend on besides the answer: place, length, maker, and chance."""

from __future__ import annotations

import pytest

from decisions.judged_runs import labels, measured, run_of
from evalwright.decisions.calibration import Makers, calibrate
from evalwright.model.calibration import Label
from evalwright.model.makers import maker_of
from evalwright.model.trace import Output, ToolCall
from evalwright.scoring.judged_answers import judged_answers
from evalwright.testing import MemoryStore, a_case, a_plan, a_result, a_trace


def test_flips_are_looked_for_among_equal_answers_only() -> None:
    run = run_of([True, False], [True, True], True)
    flips = measured(run, []).flips
    assert flips is not None
    assert (flips.repeated, flips.flipped, flips.rate.value) == (2, 1, 0.5)


def test_answers_that_differ_are_no_flips() -> None:
    run = run_of(True)
    run.append_trace(a_trace(case_id="c0", variant_name="v", trial=1, tool_calls=[ToolCall("look")]))
    run.append_results([a_result(case_id="c0", variant_name="v", trial=1, evaluator="judge", passed=False)])
    assert measured(run, []).flips is None


def test_the_place_in_a_comparison_is_no_merit() -> None:
    """The answer shown first wins in 12 of 16 pairs of orders, whichever it is."""
    run = MemoryStore().create(a_plan(), [a_case()], {})
    for variant, first in (("v", 12), ("w", 2)):
        for number in range(16):
            cell = {"case_id": f"c{number}", "variant_name": variant}
            second = "reference" if number < first else "answer" if number % 2 else "reference"
            winners = ("answer" if number < first else second, second)
            shown = [{"first": at, "winner": who} for at, who in zip(("answer", "reference"), winners, strict=True)]
            run.append_trace(a_trace(output=Output("x"), **cell))
            run.append_results([a_result(evaluator="judge", detail={"comparisons": shown}, **cell)])
    found = measured(run, [])
    by_name = {one.variant: one for one in found.position}
    assert (by_name["v"].consistency, by_name["v"].first_won) == (0.25, 0.875)
    assert by_name["v"].p < 0.001 < 0.05 < by_name["w"].p
    assert (by_name["w"].wins, by_name["w"].losses, by_name["w"].ties) == (7, 7, 2)
    assert [strength.name for strength in found.strengths] == ["v", "w", "reference"]


def test_a_judge_that_passes_what_is_long_is_found_out() -> None:
    run = MemoryStore().create(a_plan(), [a_case()], {})
    people = []
    for number in range(40):
        cell = {"case_id": f"c{number}", "variant_name": "v"}
        run.append_trace(a_trace(output=Output("x" * 2 ** (number % 8)), **cell))
        run.append_results([a_result(evaluator="judge", passed=number % 8 > 3, **cell)])
        people.append(number % 3 == 0)
    length = measured(run, labels(*people)).length
    assert length is not None
    assert length.n == 40
    assert length.ci95 is not None
    assert length.ci95[0] > 0


def test_a_judge_that_never_errs_has_no_interval_without_width() -> None:
    trials = [[(True, 0.1 * number)] * 2 for number in range(12)]
    people = [Label(f"c{n}", "judge", "v", trial=k, score=0.1 * n, passed=True) for n in range(12) for k in range(2)]
    found = measured(run_of(*trials), people)
    assert found.scores is not None
    assert (found.scores.mean_difference, found.scores.mean_difference_ci95) == (0.0, None)
    same = lengthy(lambda n, log: 1.0, lambda n, log: True).length
    assert same is not None
    assert (same.slope, same.ci95) == (0.0, None)


def lengthy(score_of, label_of):
    """Forty answers of 1 to 128 characters, scored and labelled by their number and the logarithm of their length."""
    run, people = MemoryStore().create(a_plan(), [a_case()], {}), []
    for number in range(40):
        cell = {"case_id": f"c{number}", "variant_name": "v"}
        run.append_trace(a_trace(output=Output("x" * 2 ** (number % 8)), **cell))
        run.append_results([a_result(evaluator="judge", passed=True, score=score_of(number, number % 8), **cell)])
        people.append(label_of(number, number % 8))
    return measured(run, labels(*people))


def test_better_answers_may_be_longer_but_not_score_more_for_it_at_the_same_label() -> None:
    fair = lengthy(lambda n, log: 0.8 if log > 3 else 0.2, lambda n, log: log > 3)
    biased = lengthy(lambda n, log: 0.1 * log + 0.01 * (n % 3), lambda n, log: log > 3)
    assert fair.length_at_label is not None
    assert biased.length_at_label is not None
    assert fair.length_at_label.slope == pytest.approx(0)
    assert biased.length_at_label.ci95 is not None
    assert biased.length_at_label.ci95[0] > 0.05
    assert biased.length_at_label.n == 40


def preference(passes, makers):
    """Twelve cases on three systems, of which people pass every second."""
    run, given_labels = MemoryStore().create(a_plan(), [a_case()], {}), []
    for variant in ("gpt", "claude", "who"):
        for number in range(12):
            cell = {"case_id": f"c{number}", "variant_name": variant}
            run.append_trace(a_trace(output=Output("x"), **cell))
            run.append_results([a_result(evaluator="judge", passed=passes(variant, number), **cell)])
            given_labels.append(Label(f"c{number}", "judge", variant, passed=number % 2 == 0))
    return calibrate("judge", given_labels, judged_answers(run, ["judge"]), None, makers).preference


def test_a_judge_that_prefers_its_own_maker_is_found_out() -> None:
    makers = Makers("OpenAI", {"gpt": "OpenAI", "claude": "Anthropic", "who": None})
    kin = preference(lambda variant, n: n % 2 == 0 or (variant == "gpt" and n != 3), makers)
    assert kin is not None
    assert kin.difference == pytest.approx(5 / 12)
    assert (kin.own, kin.others, kin.maker) == (12, 12, "OpenAI")
    assert kin.ci95 is not None
    assert kin.ci95[0] > 0
    fair = preference(lambda variant, n: n % 3 == 0, makers)
    assert fair is not None
    assert fair.difference == pytest.approx(0)
    assert preference(lambda variant, n: True, Makers("Google", {"gpt": "OpenAI", "claude": "Anthropic"})) is None


def test_votes_tell_how_a_judge_agrees_with_itself_and_a_panel_within() -> None:
    run = MemoryStore().create(a_plan(), [a_case()], {})
    for number, (one, other) in enumerate([("yy", "y"), ("yn", "y"), ("nn", "y"), ("nn", "-")]):
        said = [("a", word) for word in one] + [("b", word) for word in other]
        votes = [{"model": m, **({"error": "?"} if w == "-" else {"passed": w == "y"})} for m, w in said]
        cell = {"case_id": f"c{number}", "variant_name": "v"}
        run.append_trace(a_trace(output=Output("x"), **cell))
        run.append_results([a_result(evaluator="judge", detail={"votes": votes}, **cell)])
    found = measured(run, [])
    assert [(repeat.model, repeat.same.value, repeat.same.n) for repeat in found.repeats] == [("a", 0.75, 4)]
    assert found.panel is not None
    assert (found.panel.value, found.panel.n) == (pytest.approx(2 / 3), 3)


@pytest.mark.parametrize(
    ("model", "maker"),
    [
        ("gpt-5-mini", "OpenAI"),
        ("openrouter/anthropic/claude-opus-5", "Anthropic"),
        ("us.anthropic.claude-3-haiku", "Anthropic"),
        ("gemini/gemini-3-pro", "Google"),
        ("meta-llama/Llama-3.3-70B", "Meta"),
        ("deepseek-r1-distill-llama-70b", "DeepSeek"),
        ("my-model", None),
    ],
)
def test_the_maker_of_a_model_by_its_name(model: str, maker: str | None) -> None:
    assert maker_of(model) == maker


def test_scores_are_read_as_chances_where_they_can_be() -> None:
    run = run_of((True, 0.9), (True, 0.8), (False, 0.3), (False, 0.1))
    confidence = measured(run, labels(True, False, False, False)).confidence
    assert confidence is not None
    assert confidence.brier == pytest.approx((0.01 + 0.64 + 0.09 + 0.01) / 4)
    assert measured(run_of((True, 4.0), (False, 2.0)), labels(True, False)).confidence is None
