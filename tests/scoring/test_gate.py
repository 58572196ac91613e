"""Gates over scores."""

import sys
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.model.plan import EvaluatorSpec, PassCriteria, UntilDecided
from evalwright.model.trace import TraceError
from evalwright.scoring.gate import AGGREGATIONS, aggregated, decided
from evalwright.scoring.gate_intervals import CountedPasses, OwnedScores
from evalwright.scoring.tally import Tally
from evalwright.scoring.verdict import cell_status
from evalwright.statistics import mean_interval
from evalwright.statistics.rates import wilson
from evalwright.testing import a_plan, a_result, a_trace

SCORES = {"a": [1.0, 0.5, 0.25, 1.0, 0.0], "b": [0.0, 1.0, 1.0, 0.75, 0.5]}


def simple(key="a", aggregation="avg_score", op="gte", value=0.0, **more):
    return {"kind": "simple", "metric_key": key, "aggregation": aggregation, "op": op, "value": value, **more}


@pytest.mark.parametrize(
    ("aggregation", "value"),
    [("avg_score", 0.55), ("accuracy", 40.0), ("min", 0.0), ("max", 1.0), ("median", 0.5), ("p50", 0.5), ("p95", 1.0)],
)
def test_aggregations(aggregation, value):
    assert aggregated(SCORES["a"], aggregation) == pytest.approx(value)


def test_accuracy_counts_from_the_threshold():
    assert aggregated(SCORES["a"], "accuracy", 0.5) == 60.0


def test_percentiles_interpolate_between_ranks():
    assert aggregated([0.0, 1.0], "p95") == pytest.approx(0.95)
    assert aggregated([1.0, 0.0, 0.25, 0.0], "median") == pytest.approx(0.125)


def test_a_mean_is_a_plain_sum_on_every_python():
    tenths = {"a": [0.1] * 10}
    assert aggregated(tenths["a"], "avg_score") == 0.09999999999999999
    assert not decided(simple("a", "avg_score", "gte", 0.1), tenths).passed


@pytest.mark.parametrize(("op", "passed"), [("gt", False), ("gte", True), ("lt", False), ("lte", True), ("eq", True)])
def test_comparisons_are_exact(op, passed):
    assert decided(simple("a", "max", op, 1.0), SCORES).passed is passed


@pytest.mark.parametrize(
    ("operator", "held", "passed"),
    [
        ("and", [True, True], True),
        ("and", [False, True], False),
        ("and", [False, False], False),
        ("or", [True, True], True),
        ("or", [False, True], True),
        ("or", [False, False], False),
    ],
)
def test_conditions_combine(operator, held, passed):
    conditions = [simple(value=0.5 if holds else 0.6) for holds in held]
    outcome = decided({"kind": "logical", "operator": operator, "conditions": conditions}, SCORES)
    assert (outcome.passed, outcome.undecided) == (passed, False)
    assert [part.passed for part in outcome.parts] == held


def test_weights_are_shares_of_their_sum():
    rule = {"kind": "weighted_average", "aggregation": "avg_score", "weights": {"a": 7, "b": 3}, "op": "eq", "value": 1}
    (part,) = decided(rule, SCORES).parts
    assert part.value == pytest.approx(0.7 * 0.55 + 0.3 * 0.65)
    assert part.name == "avg_score(0.7 a + 0.3 b)"


def test_weighted_accuracy_counts_full_scores_unless_a_threshold_is_given():
    rule = {"kind": "weighted_average", "aggregation": "accuracy", "weights": {"a": 1, "b": 1}, "op": "eq", "value": 40}
    (part,) = decided(rule, SCORES).parts
    assert (part.value, part.n) == (pytest.approx(40.0), 5)
    (part,) = decided({**rule, "pass_threshold": 0.5}, SCORES).parts
    assert part.value == pytest.approx(70.0)


@pytest.mark.parametrize(("op", "at", "value"), [("gte", 0.5, 60.0), ("gt", 0.5, 40.0), ("lte", 0.25, 40.0)])
def test_an_older_accuracy_counts_what_its_own_comparison_lets_pass(op, at, value):
    rule = {**simple("a", "accuracy"), "kind": "legacy", "pass_op": op, "pass_value": at}
    (part,) = decided(rule, SCORES).parts
    assert part.value == pytest.approx(value)
    (mean,) = decided({**rule, "aggregation": "avg_score"}, SCORES).parts
    assert mean.value == pytest.approx(0.55)


@pytest.mark.parametrize("op", ["gte", "lte"])
def test_without_scores_nothing_is_measured(op):
    decision = decided(simple(op=op, value=0.0), {"a": []})
    assert (decision.passed, decision.undecided, decision.parts[0].value, decision.parts[0].n) == (False, True, None, 0)


def test_a_format_may_take_nothing_for_0():
    decision = decided(simple(op="lte", value=0.0), {"a": []}, empty_is_zero=True)
    assert (decision.passed, decision.undecided, decision.parts[0].value) == (True, False, 0.0)


@pytest.mark.parametrize(
    ("operator", "value", "passed", "undecided"),
    [("and", 0.6, False, False), ("and", 0.5, False, True), ("or", 0.6, False, True), ("or", 0.5, True, False)],
)
def test_a_condition_that_is_not_measured_leaves_open_what_the_others_do_not_settle(operator, value, passed, undecided):
    conditions = [simple("none"), simple(value=value)]
    decision = decided({"kind": "logical", "operator": operator, "conditions": conditions}, SCORES)
    assert (decision.passed, decision.undecided) == (passed, undecided)


def test_a_weighted_average_needs_scores_of_each_evaluator():
    rule = {
        "kind": "weighted_average",
        "aggregation": "avg_score",
        "weights": {"a": 7, "none": 3},
        "op": "lt",
        "value": 1,
    }
    assert decided(rule, SCORES).undecided


@pytest.mark.parametrize(
    ("op", "value", "unknown", "passed", "undecided"),
    [
        ("gte", 0.5, 1, True, True),  # 0.458 to 0.625
        ("gte", 0.4, 1, True, False),
        ("gte", 0.6, 1, False, True),
        ("gte", 0.7, 1, False, False),
        ("lte", 0.6, 1, True, True),
        ("gte", 0.5, 0, True, False),
        ("eq", 0.5, 1, False, True),  # neither with 0 nor with 1, but with a score between them
        ("eq", 0.7, 1, False, False),
    ],
)
def test_errors_are_in_no_value_and_leave_open_what_they_could_turn(op, value, unknown, passed, undecided):
    decision = decided(simple(op=op, value=value), SCORES, {"a": unknown})
    assert (decision.passed, decision.undecided, decision.parts[0].n) == (passed, undecided, 5)
    assert decision.parts[0].value == pytest.approx(0.55)


@pytest.mark.parametrize(("op", "value", "undecided"), [("gte", 3.5, True), ("gte", 3.9, False), ("lte", 3.2, True)])
def test_an_unknown_score_can_be_as_high_as_the_others_of_its_evaluator(op, value, undecided):
    decision = decided(simple(op=op, value=value), {"a": [2.0, 5.0, 2.0]}, {"a": 1})  # 2.25 to 3.5
    assert (decision.passed, decision.undecided) == (op == "lte", undecided)


def test_a_gate_is_undecided_where_unknown_scores_of_several_evaluators_could_turn_it():
    low = {**simple(op="lt", value=0.5), "metric_key": "b"}
    either = {"kind": "logical", "operator": "or", "conditions": [simple(op="gte", value=0.5), low]}
    scores = {"a": [0.8], "b": [0.2]}
    assert decided(either, scores, {"a": 1, "b": 3}).undecided  # all 0 and all 1 pass, but not 0 of a with 1 of b
    assert not decided(either, scores, {"b": 3}).undecided


BROKEN = TraceError("timeout", "no reply")


def gated(*cells, criteria=PassCriteria(), **gate):  # noqa: B008
    """The gate over cells: the error of the trace, and the results of evaluator `a`."""
    plan = a_plan(evaluators=[EvaluatorSpec("a", "contains_text")], gate=simple(**gate), pass_criteria=criteria)
    tally = Tally.of(plan)
    for i, (error, results) in enumerate(cells):
        trace = a_trace(case_id=f"c{i}", error=error)
        tally.count(trace, results, cell_status(criteria, ["a"], error is not None, results))
    return tally.summary(plan, datetime(2026, 1, 1, tzinfo=UTC)).gate


@pytest.mark.parametrize(
    ("trials", "group", "ends"),
    [
        # 30 of 40 cases: Wilson's interval by any of the programs that have it
        (1, None, (59.81, 85.81)),
        # three trials that agree are worth no more than one, nor are cases beyond their group
        (3, None, (59.81, 85.81)),
        (1, "half", None),
    ],
)
@pytest.mark.parametrize("placed", [True, False])
def test_a_point_threshold_has_the_interval_of_its_value_beside_it(trials, group, ends, placed):
    plan = a_plan(evaluators=[EvaluatorSpec("a", "contains_text")], gate=simple(aggregation="accuracy", value=70))
    shares = [Tally.of(plan), Tally.of(plan)]  # of two processes that counted
    for i in range(40):
        for trial in range(trials):
            more = {} if group is None else {"group": f"{group} {i // 20}"}
            trace = a_trace(case_id=f"c{i}", trial=trial, case_index=i if placed else None, **more)
            shares[i % 2].count(trace, judged(i < 30), "pass")
    shares[0].merge(shares[1])
    (part,) = shares[0].summary(plan, datetime(2026, 1, 1, tzinfo=UTC)).gate.parts
    assert (part.passed, part.value, part.n) == (True, 75, 40 * trials)
    if ends is None:
        assert part.ci95[1] - part.ci95[0] > 60
    else:
        assert part.ci95 == pytest.approx(ends, abs=0.01)


def test_the_interval_of_an_accuracy_is_that_of_what_reaches_its_threshold():
    scores = [0.6] * 30 + [0.4] * 10
    rule = simple(aggregation="accuracy", pass_threshold=0.5)
    (part,) = decided(rule, {"a": scores}, owned={"a": OwnedScores(scores, range(40))}).parts
    assert part.ci95 == pytest.approx([100 * end for end in wilson(30, 40)])


def test_means_and_weighted_means_have_an_interval_and_the_least_score_has_none():
    scores = {"a": [i % 4 / 3 for i in range(60)], "b": [i % 3 / 2 for i in range(60)]}
    owned = {name: OwnedScores(score, range(60)) for name, score in scores.items()}
    weighted = {"kind": "weighted_average", "aggregation": "avg_score", "weights": {"a": 3, "b": 1}, "op": "gte"}
    conditions = [simple(), {**weighted, "value": 0.1}, simple(aggregation="min"), simple(aggregation="median")]
    rule = {"kind": "logical", "operator": "and", "conditions": conditions}
    mean, both, least, median = (part.ci95 for part in decided(rule, scores, owned=owned).parts)
    assert mean == pytest.approx(mean_interval(scores["a"]).ci_t)
    assert both == pytest.approx(mean_interval([(3 * a + b) / 4 for a, b in zip(*scores.values(), strict=True)]).ci_t)
    assert least is None
    assert median == (1 / 3, 2 / 3)


@pytest.mark.parametrize("scores", [[1.5e308, 1.2e308, -0.3e308], [1e200, 2e200, 3e200]])
def test_scores_that_are_too_large_for_an_interval_have_a_mean(scores):
    (part,) = decided(simple(), {"a": scores}, owned={"a": OwnedScores(scores, range(3))}).parts
    assert part.value == pytest.approx(scores[0] * 2 if scores[0] < 1e300 else 0.8e308)
    assert (part.passed, part.ci95, part.interval_reason) == (True, None, "the scores are too large for one")


def test_a_value_without_an_interval_says_why():
    scores = {"a": [i / 80 for i in range(80)], "b": [0.5] * 9}
    owned = {"a": OwnedScores(scores["a"], range(80)), "b": OwnedScores(scores["b"], [0] * 9)}
    both = {"kind": "weighted_average", "weights": {"a": 1, "b": 1}, "op": "gte", "value": 0}
    conditions = [
        *(simple(aggregation=name) for name in ("min", "max", "p95", "p99")),
        *(simple("b", aggregation=name) for name in ("median", "avg_score")),
        *({**both, "aggregation": name} for name in ("avg_score", "p50")),
    ]
    parts = decided({"kind": "logical", "operator": "and", "conditions": conditions}, scores, owned=owned).parts
    assert [(part.ci95 is None, bool(part.interval_reason)) for part in parts] == [
        *[(True, True)] * 2, (False, False), *[(True, True)] * 2, (False, False), *[(True, True)] * 2,
    ]  # fmt: skip
    assert parts[0].interval_reason == "the least score of a sample says nothing about other cases"
    assert parts[2].ci95 == (71 / 80, 79 / 80)
    assert parts[3].interval_reason == "it takes 368 scores, there are 80"


def judged(passed, **fields):
    return [a_result(evaluator="a", passed=passed, **fields)]


def test_a_gate_over_errors_alone_has_not_been_measured():
    gate = gated((BROKEN, []), (None, judged(False, error=BROKEN)), op="lte")
    assert (gate.passed, gate.undecided, gate.reason) == (False, True, "nothing was measured")


def test_results_that_were_skipped_are_neither_scores_nor_unknown():
    gate = gated((None, judged(True)), (None, judged(False, skipped=True)), value=0.9)
    assert (gate.passed, gate.undecided, gate.parts[0].n) == (True, False, 1)


@pytest.mark.parametrize("cell", [(BROKEN, []), (BROKEN, judged(True)), (None, judged(False, error=BROKEN))])
def test_errors_of_systems_and_evaluators_leave_a_gate_open(cell):
    gate = gated((None, judged(True)), cell, value=0.9)
    assert (gate.passed, gate.undecided, gate.parts[0].value) == (True, True, 1.0)
    assert gate.reason == "it depends on 1 result with an error"


def test_results_on_the_trace_of_an_error_are_scores_where_they_decide_the_cell():
    gate = gated((None, judged(True)), (BROKEN, judged(False)), criteria=PassCriteria(errored_cases="evaluate"))
    assert (gate.parts[0].value, gate.parts[0].n, gate.undecided) == (0.5, 2, False)


@pytest.mark.parametrize(
    ("more", "most"),
    [({"gate": simple()}, 0), ({"totals": "letta", "gate": simple()}, 3)],  # the samples of Letta are rows of its files
)
def test_scores_of_a_gate_take_few_blocks_of_memory(more, most):
    plan = a_plan(evaluators=[EvaluatorSpec("a", "contains_text")], cases_total=2000, **more)
    tally = Tally.of(plan)

    def blocks_after(cases):
        for number in cases:
            tally.count(a_trace(case_id=f"c{number}", case_index=number), judged(number % 2), "pass")
        return sys.getallocatedblocks()

    before = blocks_after(range(1000))
    assert blocks_after(range(1000, 2000)) - before < 1000 * most + 500


def test_errors_that_two_processes_met_leave_a_gate_open():
    plan = a_plan(evaluators=[EvaluatorSpec("a", "contains_text")], gate=simple(value=0.7))
    shares = [Tally.of(plan), Tally.of(plan)]
    for number, tally in enumerate(shares):
        tally.count(a_trace(case_id=f"c{number}"), judged(True), "pass")
        tally.count(a_trace(case_id=f"e{number}"), judged(False, error=BROKEN), "error")
    shares[0].merge(shares[1])
    gate = shares[0].summary(plan, datetime(2026, 1, 1, tzinfo=UTC)).gate
    assert (gate.undecided, gate.reason) == (True, "it depends on 2 results with an error")


@pytest.mark.parametrize(
    ("cells", "erred", "reason"),
    [(12, 0, "it depends on 2 cells not run"), (12, 1, "it depends on 1 result with an error and 2 cells not run")],
)
def test_cells_that_were_not_run_leave_a_gate_open(cells, erred, reason):
    rule = simple(value=0.9)
    assert counted(cells, 10 - erred, erred, rule).reason == reason
    assert counted(cells, 10 - erred, erred, rule).undecided
    assert not counted(cells, 10 - erred, erred, simple(value=0.5)).undecided  # they could not turn it
    assert not counted(10, 10, 0, rule).undecided


def test_cells_that_a_run_left_out_because_it_was_decided_leave_no_gate_open():
    until = UntilDecided("a", "a", "v", "v", 0.02, 0.05, 0)
    assert not counted(12, 10, 0, simple(value=0.9), until_decided=until).undecided


def counted(planned, passed, erred, rule, **fields):
    """The gate of a run of which this much has been run."""
    plan = a_plan(evaluators=[EvaluatorSpec("a", "contains_text")], gate=rule, cases_total=planned, **fields)
    tally = Tally.of(plan)
    for number in range(passed + erred):
        evaluation = judged(True) if number < passed else judged(False, error=BROKEN)
        tally.count(a_trace(case_id=f"c{number}"), evaluation, "pass" if number < passed else "error")
    return tally.summary(plan, datetime(2026, 1, 1, tzinfo=UTC)).gate


def test_a_suite_can_ask_for_errors_to_count_as_0():
    criteria = PassCriteria(errored_cases="count", errored_evaluators="fail")
    gate = gated((None, judged(True)), (None, judged(False, error=BROKEN)), (BROKEN, []), criteria=criteria, value=0.9)
    assert (gate.passed, gate.undecided, gate.parts[0].value) == (False, False, pytest.approx(1 / 3))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.sampled_from(AGGREGATIONS))
def test_an_aggregate_lies_between_the_scores(scores, aggregation):
    value = aggregated(scores, aggregation) / (100 if aggregation == "accuracy" else 1)
    low, high = (0, 1) if aggregation == "accuracy" else (min(scores), max(scores))
    assert low - 1e-9 <= value <= high + 1e-9


def test_passes_counted_in_parts_have_the_interval_of_the_whole():
    whole, first, second = CountedPasses(), CountedPasses(), CountedPasses()
    for number in range(20):
        trace = a_trace(case_id=f"c{number % 7}", trial=number)
        whole.add(trace, number % 3 == 0)
        (first, second)[number % 2].add(trace, number % 3 == 0)
    first.merge(second)
    assert first.ends() == whole.ends() is not None


def passes(*cells):
    """The interval of cells given as case, group and whether they passed, which two processes counted."""
    shares = CountedPasses(), CountedPasses()
    for number, (case, group, passed) in enumerate(cells):
        shares[number % 2].add(a_trace(case_id=case, **({} if group is None else {"group": group})), passed)
    shares[0].merge(shares[1])
    return shares[0].ends()


def test_passes_are_counted_by_case_or_group():
    alone = passes(*((f"c{i}", None, i < 30) for i in range(40)))
    assert alone == pytest.approx(wilson(30, 40))
    trials = passes(*((f"c{i // 4}", None, i // 4 < 5) for i in range(40)))
    assert passes(*((f"c{i}", f"g{i // 4}", i // 4 < 5) for i in range(40))) == trials
    assert trials == pytest.approx(wilson(5, 10), abs=0.02)


def test_a_group_is_no_case_of_the_same_name():
    apart = passes(("a", None, True), ("b", None, True), ("c", None, False), ("d", None, False))
    assert passes(("a", None, True), ("b", "a", True), ("c", None, False), ("d", "c", False)) == apart
