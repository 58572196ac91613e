"""Stored runs are compared and decided on, and those to come are planned."""

import json

import pytest

import evalwright as ew
from api import agents


def evaluate(cases, system, **options):
    return ew.evaluate(cases, system, **{"evaluators": agents.loud, "out": None, **options})


def graded(passing, total=40, errors=0, name="v"):
    """A run whose first cases pass, and whose last ones have errors."""

    def system(text):
        number = int(text)
        if number >= total - errors:
            raise RuntimeError("down")
        return "YES" if number < passing else "no"

    return evaluate({str(i): str(i) for i in range(total)}, {name: system}, stop_after_equal_errors=None)


def test_two_runs_are_compared():
    comparison = ew.compare(graded(20), graded(30))
    [one] = comparison
    assert (one.variant, round(one.difference, 6), one.n) == ("v", 0.25, 40)
    assert (len(one.regressions), len(one.improvements)) == (0, 10)
    assert one.interval[0] > 0
    assert one.p_adjusted < 0.01
    assert str(comparison).endswith("v: +25.0 pp [+8.9, +38.7], 40 cases, 0 worse, 10 better, p 0.002")
    assert comparison["v"] is one
    with pytest.raises(KeyError, match="there are: v"):
        comparison["w"]


def test_an_evaluator_without_a_name_stays_the_same_beside_other_functions():
    loud = lambda output: output.isupper()  # noqa: E731
    one = evaluate({"1": "a"}, {"v": agents.upper}, evaluators=[loud])
    other = evaluate({"1": "a"}, {"v": lambda text: text.upper()}, evaluators=[loud])
    assert not ew.compare(one, other).warnings
    assert [v.n for v in ew.decide(one, other).variants] == [1]


def test_variants_are_paired_by_name_or_as_told():
    assert [change.variant for change in ew.compare(graded(1, name="a"), graded(1, name="b"))] == ["a → b"]
    two = evaluate({"1": "1"}, {"a": agents.upper, "b": agents.upper})
    assert [change.variant for change in ew.compare(two, two)] == ["a", "b"]
    assert [change.variant for change in ew.compare(two, two, variant={"a": "b"})] == ["a → b"]
    with pytest.raises(ew.InputError, match="no variant 'c' before"):
        ew.compare(two, two, variant="c")


@pytest.mark.parametrize("ask", [ew.compare, ew.decide])
def test_a_run_compared_with_itself_is_warned_of(ask):
    two = evaluate({"1": "1"}, {"a": agents.upper, "b": agents.upper})
    text = "before and after are the same run"
    assert (text in str(ask(two, two)), text in str(ask(two, two, variant={"a": "b"}))) == (True, False)
    assert text not in str(ask(two, evaluate({"1": "1"}, {"a": agents.upper, "b": agents.upper})))


def test_a_decision_is_its_sentence_in_a_notebook():
    decision = ew.decide(graded(20), graded(30))
    assert repr(decision) == f"<Decision {decision}>"


def test_cases_are_compared_by_metadata():
    cases = [{"input": "x", "metadata": {"lang": lang}} for lang in ("de", "en", "de")]
    run = evaluate(cases, agents.upper)
    assert [(change.variant, change.n) for change in ew.compare(run, run, by="lang")] == [
        ("upper, lang=de", 2), ("upper, lang=en", 1),
    ]  # fmt: skip
    with pytest.raises(ew.InputError, match="by: no case has 'lung' in its metadata; did you mean"):
        ew.compare(run, run, by="lung")


def test_cases_are_compared_by_metadata_of_any_kind():
    run = evaluate([{"input": "x", "metadata": {"langs": langs}} for langs in (["de"], ["en"], ["de"])], agents.upper)
    assert [(change.variant, change.n) for change in ew.compare(run, run, by="langs")] == [
        ('upper, langs=["de"]', 2), ('upper, langs=["en"]', 1),
    ]  # fmt: skip


def test_variants_of_a_run_are_compared_with_its_baseline():
    run = evaluate(
        {str(i): "x" for i in range(10)},
        {"v1": agents.upper, "v2": lambda text: text, "v3": agents.upper},
        baseline="v1",
    )
    comparison = run.summary.comparison
    assert [(change.variant, change.difference) for change in comparison] == [("v2", -1.0), ("v3", 0.0)]
    assert comparison["v2"].p_adjusted == 2 * comparison["v2"].p


# Deciding


def test_a_better_run_is_accepted():
    decision = ew.decide(graded(20), graded(34), margin=0.02)
    assert (decision.accepted, decision.verdict) == (True, "accepted")
    assert str(decision).startswith("no worse than 2 points: +35.0 pp [")
    assert str(decision).endswith("], 40 cases, p < 0.001 for −2 pp")


def test_a_worse_run_is_rejected():
    decision = ew.decide(graded(34), graded(20), margin=0)
    assert (decision.accepted, decision.verdict) == (False, "rejected")
    assert str(decision).startswith("worse: −35.0 pp [")


def test_the_margin_is_two_points_where_none_is_named():
    assert ew.decide(graded(34), graded(20)).margin == 0.02
    assert str(ew.decide(graded(34), graded(20))).startswith("worse by more than 2 points: −35.0 pp [")


def test_too_little_data_decide_nothing():
    decision = ew.decide(graded(20), graded(21), margin=0.02)
    assert (decision.accepted, decision.verdict, decision.variants[0].undecided_by) == (False, "undecided", "data")
    assert str(decision).startswith("undecided (data): +2.5 pp [")


def test_errors_are_never_failures():
    [same] = ew.decide(graded(20), graded(20, errors=5), margin=0.2).variants
    assert (same.difference, same.errors, same.n) == (0.0, (0, 5), 35)


def test_where_errors_could_turn_the_verdict_it_is_undecided():
    decision = ew.decide(graded(40), graded(40, errors=12), margin=0.15)
    assert (decision.verdict, decision.variants[0].undecided_by) == ("undecided", "errors")
    assert "12 errors left out" in str(decision)


def test_a_score_is_decided_on():
    def system(factor):
        return lambda text: {"final_answer": str(factor * int(text) / 40)}

    def number(output):
        return float(output)

    cases = {str(i): str(i) for i in range(40)}
    before, after = (evaluate(cases, {"v": system(f)}, evaluators=number) for f in (0.5, 1.0))
    decision = ew.decide(before, after, metric="number")
    assert (decision.verdict, decision.variants[0].method) == ("accepted", "t")
    with pytest.raises(ew.InputError, match="no metric 'nmber'; did you mean \"number\""):
        ew.decide(before, after, metric="nmber")


def test_what_is_not_alike_is_not_decided_on():
    with pytest.raises(ew.InputError, match="1 case changed between the runs: a"):
        ew.decide(evaluate({"a": "x"}, agents.upper), evaluate({"a": "y"}, agents.upper))
    with pytest.raises(ew.InputError, match="the evaluator 'loud' changed"):
        ew.decide(evaluate({"a": "x"}, agents.upper), evaluate({"a": "x"}, agents.upper, evaluators="answered"))
    with pytest.raises(ew.InputError, match="margin: expected a number of at least 0"):
        ew.decide(graded(1), graded(1), margin=-1)
    # 2 may be meant as points: a loss of everything would not matter
    for margin, found in ((2, "fraction below 1"), ("2", "2pp or 0.02"), (True, "a number or a text")):
        with pytest.raises(ew.InputError, match=found):
            ew.decide(graded(1), graded(1), margin=margin)  # type: ignore[arg-type]
    assert ew.decide(graded(20), graded(21), margin="2pp").margin == 0.02
    with pytest.raises(ew.InputError, match="2 trials"):
        ew.decide(graded(20), graded(21), population="suite")


def test_several_variants_share_the_error_rate():
    def run(passing):
        def system(text):
            return "YES" if int(text) < passing else "no"

        return evaluate({str(i): str(i) for i in range(40)}, {"a": system, "b": lambda text: "YES"})

    decision = ew.decide(run(20), run(34))
    assert [variant.verdict for variant in decision.variants] == ["accepted", "undecided"]
    assert (decision.verdict, decision.accepted) == ("undecided", False)
    alone, together = (ew.decide(run(20), run(34), correction=c).variants[0].p for c in ("none", "holm"))
    assert together == 2 * alone


def test_variants_are_decided_together_as_by_the_command():
    """8 cases won and 1 lost are enough for one variant, not for one of two; 9 and 1 are."""

    def run(*failing):
        return evaluate(
            {str(i): str(i) for i in range(40)},
            {
                name: lambda text, no=no: "no" if int(text) in no else "YES"
                for name, no in zip("ab", failing, strict=True)
            },
        )

    before, after = run(range(8), range(9)), run([20], [20])
    for asked in ({"margin": 0}, {"better": True}):
        decision = ew.decide(before, after, **asked)
        assert [variant.verdict for variant in decision.variants] == ["undecided", "accepted"]
        [one, other] = decision.variants
        assert one.interval[0] <= 0 < other.interval[0]
        assert (one.numbers["family"], one.undecided_by) == (2, "data")
        by_themselves = ew.decide(before, after, correction="none", **asked)
        assert (by_themselves.verdict, by_themselves.variants[0].interval[0] > 0) == ("accepted", True)
        assert str(by_themselves).startswith("a: better: +17.5 pp [")


def test_guards_slices_and_errors_are_those_of_the_command():
    before, after = graded(20), graded(34)
    decision = ew.decide(before, after, margin=0.02, guards={"latency": "+100000%"})
    [one] = decision.variants
    assert [(guard.name, guard.limit) for guard in one.guards] == [("latency", 1001.0)]
    assert (one.changed.flipped, len(one.changed.better), one.judge) == (14, 14, None)
    assert ew.decide(before, after, margin=0.02).variants[0].next is None  # latencies as measured may need more cases
    assert [part.name for part in one.evaluators] == list(one.numbers["evaluators"][0].values())[:1]
    assert ew.decide(before, after, better=True).accepted
    with pytest.raises(ew.InputError, match='did you mean "latency"') as raised:
        ew.decide(before, after, guards={"latncy": "+10%", "cost": "10"})
    assert [problem.key for problem in raised.value.problems] == ["guards['latncy']", "guards['cost']"]
    with pytest.raises(ew.InputError, match="no slices by"):
        ew.decide(before, after, slices=["metadata.lang"])
    with pytest.raises(ew.InputError, match="expected 'exclude'"):
        ew.decide(before, after, errors="ignore")
    with pytest.raises(ew.InputError, match="expected a run or its folder, found None") as raised:
        ew.decide(before, None, slices=5, variant=7, group=4, labels=3, better=1, allow_changed="no", alpha="a")
    wrong = ["after", "variant", "slices", "group", "labels", "better", "allow_changed", "alpha"]
    assert [problem.key for problem in raised.value.problems] == wrong
    for call, keys in (
        (lambda: ew.compare(None, 3, by=4, variant={"a": 1}), ["before", "after", "variant", "by"]),
        (lambda: ew.plan(None, detect=0.03, runs=[before, None], trials=3), ["suite", "runs", "trials"]),
        (lambda: ew.plan(True, detect=0.03), ["suite"]),
    ):
        with pytest.raises(ew.InputError) as raised:
            call()
        assert [problem.key for problem in raised.value.problems] == keys


def test_decisions_and_comparisons_are_drawn_in_notebooks():
    before, after = graded(20), graded(34, name="<b>")
    for found in (ew.decide(before, after), ew.compare(before, after)):
        page = found._repr_html_()
        assert page.count("<svg") == 1
        assert "<b>" not in page


# Planning


def test_a_plan_has_the_numbers_of_the_command():
    plan = ew.plan(80, detect=0.1, runs=[graded(20), graded(26)])
    assert [row.trials for row in plan.rows] == [1, 3, 5] * 2  # single trials leave two assumptions
    assert plan.needed(1) == plan.rows[0].needs[1].cases
    assert (plan.cases, plan.gate, plan.needed(7)) == (80, None, None)
    assert str(plan).startswith("To show 10 pp at alpha .05: a suite, 80 cases, from v, v")
    assert plan._repr_html_().count("<svg") == 1


def test_a_plan_of_a_gate_needs_no_difference():
    plan = ew.plan(80, at_least=0.8)
    assert plan.gate is not None
    assert (plan.gate.passes_from, plan.rows, plan.reached) == (72, (), True)
    assert not ew.plan(3, at_least=0.9).reached
    assert "<svg" not in plan._repr_html_()


def test_a_plan_of_a_suite_whose_code_makes_tests_executes_none_of_it_and_says_so(tmp_path):
    (tmp_path / "made.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w').close()\ndef tests(*_): return []\n")
    test = {"vars": {"q": "x"}, "assert": [{"type": "contains", "value": "x"}]}
    config = {"prompts": ["{{q}}"], "providers": ["echo"], "tests": [test, "file://made.py:tests"]}
    (tmp_path / "promptfooconfig.json").write_text(json.dumps(config))
    plan = ew.plan(tmp_path / "promptfooconfig.json", detect=0.1)
    assert (plan.cases, (tmp_path / "executed").exists()) == (1, False)
    [warning] = plan.warnings
    assert "made.py was not executed: it makes tests, which are not counted" in warning
    assert str(plan).endswith(f"warning: {warning}")


def test_mistakes_in_the_cases_of_a_plan_contain_no_secret(tmp_path, monkeypatch):
    secret = "sk-0123456789abcdef01234567"
    monkeypatch.setenv("SHOP_API_KEY", secret)
    (tmp_path / "cases.jsonl").write_text(2 * (json.dumps({"id": secret, "input": "hi"}) + "\n"))
    suite = {"schema_version": "1.0", "eval": {"name": "s"}, "dataset": {"type": "cases", "path": "cases.jsonl"},
             "systems": [{"name": "v", "adapter": "cli", "command": ["cat"]}],
             "evaluators": [{"name": "e", "type": "answered"}],
             "output": [{"type": "local_files", "path": "runs"}]}  # fmt: skip
    (tmp_path / "eval.yaml").write_text(json.dumps(suite))
    with pytest.raises(ew.InputError, match="duplicate case id") as raised:
        ew.plan(tmp_path / "eval.yaml", detect=0.1)
    assert secret not in str(raised.value)


def test_all_mistakes_of_a_plan_are_told_at_once():
    with pytest.raises(ew.InputError) as raised:
        ew.plan(80, power=2, alpha=0, trials=[])
    assert [problem.key for problem in raised.value.problems] == ["detect", "power", "alpha", "trials"]
    with pytest.raises(ew.InputError, match="from 1 to 10,000"):
        ew.plan(80, detect=0.1, trials=[1, 10**26])
    with pytest.raises(ew.InputError, match="at most two"):
        ew.plan(80, detect=0.1, runs=["a", "b", "c"])
    with pytest.raises(ew.InputError, match="at least one case"):
        ew.plan(0, detect=0.1)


@pytest.mark.parametrize(
    ("wrong", "mistake"),
    [
        ({"detect": 1.5}, "detect: expected less than the range of loud (1), found 1.5"),
        ({"detect": 0.1, "margin": 2}, "margin: expected less than the range of loud (1), found 2"),
        ({"detect": -1}, "detect: expected a difference of at least 0"),
        ({"detect": 0.1, "runs": ()}, "the plan for loud needs a run of the suite"),
    ],
)
def test_mistakes_of_a_plan_for_a_score_name_its_arguments(wrong, mistake):
    with pytest.raises(ew.InputError) as raised:
        ew.plan(80, metric="loud", **{"runs": graded(20), **wrong})
    assert str(raised.value).startswith(mistake)


def test_nothing_in_common_is_undecided():
    decision = ew.decide(evaluate({"a": "x"}, agents.upper), evaluate({"b": "x"}, agents.upper))
    assert str(decision).startswith("undecided: no case was judged in both runs\n")
    assert "warning: the only case of A is not paired" in str(decision)
