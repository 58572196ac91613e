"""Prices, the limit of cost, and pools."""

import msgspec
import pytest

from evalwright.llm.funds import Funds
from evalwright.model.plan import EvaluatorSpec, Price, Variant
from evalwright.model.result import EvaluationResult
from evalwright.model.trace import Trace
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.resumption import retry
from evalwright.run.spending import CostLimit
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from run.suites import suite

PRICES = {"m": Price(2.0, 10.0, 20.0), "n": Price(1.0, 1.0)}
CHEAP = EvaluatorSpec("cheap", "cost_under", {"max_usd": 1.0})


def metered(name, **model):
    return Variant(name, "python_function", {"target": "agents:metered", **model})


def costs(outcome):
    reader, _ = open_run(outcome.run_dir)
    return {(t.case_id, t.variant_name): t.metrics.cost_usd for t in reader.traces(Trace)}


def test_tokens_are_priced_before_they_are_judged(tmp_path):
    priced = suite(tmp_path, [{"token_input": 1000, "token_output": 500, "token_thinking": 100}], evaluators=[CHEAP])
    priced.variants, priced.prices = [metered("v", model="m")], PRICES
    outcome = run_suite(priced)
    assert costs(outcome) == {("c0", "v"): pytest.approx(0.009)}
    assert outcome.exit_code == 0


@pytest.mark.parametrize(
    ("model", "tokens", "cost"),
    [
        ("m", {"token_input": 1000, "cost_usd": 0.5}, 0.5),
        ("m", {"token_input": 0}, None),
        ("m", {}, None),
        ("unlisted", {"token_input": 1000}, None),
        ("n", {"token_output": 2_000_000}, 2.0),
    ],
)
def test_a_cost_is_filled_only_where_it_can_be_known(tmp_path, model, tokens, cost):
    priced = suite(tmp_path, [tokens])
    priced.variants, priced.prices = [metered("v", model=model)], PRICES
    assert costs(run_suite(priced)) == {("c0", "v"): cost}


def test_the_model_in_the_metadata_comes_first(tmp_path):
    priced = suite(tmp_path, [{"token_input": 1_000_000}])
    priced.variants = [Variant("v", "python_function", {"target": "agents:metered", "model": "m"}, {"model": "n"})]
    priced.prices = PRICES
    assert costs(run_suite(priced)) == {("c0", "v"): 1.0}


def limited(tmp_path, count=5, limit=0.03):
    return suite(tmp_path, [{"cost_usd": 0.01}] * count, "agents:metered", max_concurrency=1, cost_limit_usd=limit)


def test_nothing_starts_beyond_the_limit_of_cost(tmp_path, agents):
    outcome = run_suite(limited(tmp_path))
    reader, _ = open_run(outcome.run_dir)
    errors = {t.case_id: t.error and t.error.type for t in reader.traces(Trace)}
    assert agents.calls == ["c0", "c1", "c2"]
    assert errors == {"c0": None, "c1": None, "c2": None, "c3": "cost_limit", "c4": "cost_limit"}
    assert {r.case_id for r in reader.results(EvaluationResult)} == {"c0", "c1", "c2"}
    assert outcome.exit_code == 3


def test_cells_that_were_not_called_have_no_latency(tmp_path, agents):
    assert run_suite(limited(tmp_path)).summary.variants[0].latency_n == 3


def test_the_limit_of_cost_holds_with_many_cells_under_way(tmp_path, agents):
    held = limited(tmp_path, 40, 0.105)
    held.run = msgspec.structs.replace(held.run, max_concurrency=20)
    summary = run_suite(held).summary
    assert summary.variants[0].cost_total_usd == pytest.approx(0.11)  # the last cell alone goes over it
    assert len(agents.calls) == 11


def test_without_known_costs_the_limit_holds_nobody_up(tmp_path, agents):
    variants = [Variant("v", "python_function", {"target": "agents:counted"})]
    run_suite(suite(tmp_path, ["x"] * 12, variants=variants, max_concurrency=4, cost_limit_usd=1.0))
    assert agents.most_at_once > 1


def test_what_was_spent_before_counts_when_a_run_goes_on(tmp_path, agents):
    outcome = run_suite(limited(tmp_path))
    assert retry(outcome.run_dir).summary.variants[0].cells["error"] == 2
    assert agents.calls == ["c0", "c1", "c2"]


@pytest.mark.parametrize("add", [None, "says_done"])
def test_cells_without_money_stay_unjudged_when_judged_again(tmp_path, add):
    outcome = run_suite(limited(tmp_path))
    again = re_evaluate(outcome.run_dir, add=add)
    assert again.summary.by_evaluator == outcome.summary.by_evaluator
    assert again.summary.variants[0].cells == outcome.summary.variants[0].cells


def test_variants_of_a_pool_share_its_limit(tmp_path, agents):
    variants = [Variant(n, "python_function", {"target": "agents:counted"}, pool="small") for n in ("a", "b")]
    outcome = run_suite(suite(tmp_path, ["x"] * 6, variants=variants, pools={"small": 2}, max_concurrency=9))
    assert agents.most_at_once == 2
    assert outcome.summary.cells_total == 12


def test_variants_outside_of_pools_have_their_own_limit(tmp_path, agents):
    variants = [
        Variant("a", "python_function", {"target": "agents:counted"}, pool="small"),
        Variant("b", "python_function", {"target": "agents:counted"}),
    ]
    run_suite(suite(tmp_path, ["x"] * 8, variants=variants, pools={"small": 1}, max_concurrency=3))
    assert agents.most_at_once == 4


def test_a_cell_under_way_counts_like_the_dearest_one():
    money = CostLimit(Funds(1.0))
    money.begin()
    assert not money.has_room()  # nothing is known yet: the first cell goes ahead
    money.end()
    money.spend(0.3)
    rooms = []
    for _ in range(3):
        rooms.append(money.has_room())
        money.begin()
    assert rooms == [True, True, False]
    for _ in range(3):
        money.end()
        money.spend(0.2)
    assert (money.reached, money.has_room()) == (False, True)


def test_money_is_asked_for_as_many_cells_as_can_still_run_at_once():
    asked = []

    class Asked(Funds):
        def more(self, least, wanted):
            asked.append((least, wanted))

    money = CostLimit(Asked(0.0), at_once=8)
    money.more(20)  # what the first cell costs is unknown: any money lets it begin
    money.begin()
    money.more(20)
    money.end()
    money.spend(0.25)
    money.more(20)
    money.more(3)
    money.funds.granted = 0.75
    money.begin()
    money.more(3)
    money.begin()
    money.more(3)
    assert asked == [(1e-9, 1e-9), (0.5, 2.25), (0.5, 1.0), (0.0, 0.25)]


def test_variants_without_a_limit_of_their_own_share_that_of_the_run(tmp_path, agents):
    variants = [Variant(n, "python_function", {"target": "agents:counted"}) for n in ("a", "b")]
    run_suite(suite(tmp_path, ["x"] * 6, variants=variants, max_concurrency=2))
    assert agents.most_at_once == 2
