"""Scorers of the shape that autoevals gives them, of which nothing is imported."""

import asyncio
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import pytest

from evalwright import pixie
from evalwright.errors import EvaluatorError
from evalwright.pixie import AutoevalsAdapter, Evaluable, Evaluation, JSONDiff, ListContains

ITEM = Evaluable(eval_input="q", eval_output="a", expectation="e", eval_metadata={"criteria": "c", "expected": "m"})


class Scorer:
    """Remembers what it was asked; says what it is told to say."""

    def __init__(self, score=1.0, error=None, **metadata):
        self._said, self.asked = SimpleNamespace(score=score, metadata=metadata, name="Said", error=error), None

    async def eval_async(self, output, expected=None, **keywords):
        self.asked = (output, expected, keywords)
        return self._said


class Blocking:
    """Can only be called where no event loop is running."""

    name = "blocking"

    def eval(self, output, expected=None, **keywords):
        return SimpleNamespace(score=asyncio.run(self._later()), metadata=None)

    async def _later(self):
        return 0.5


class First:
    """Pairs by the first letter."""

    def eval(self, output, expected=None):
        return SimpleNamespace(score=float(output[:1] == expected[:1]), metadata={}, name="First")


def said(adapter, item=ITEM):
    return asyncio.run(adapter(item))


def test_a_scorer_gets_output_expectation_input_and_chosen_metadata():
    scorer = Scorer()
    said(AutoevalsAdapter(scorer, extra_metadata_keys=("criteria", "absent"), language="de"))
    assert scorer.asked == ("a", "e", {"input": "q", "criteria": "c", "language": "de"})


def test_the_input_may_be_left_out():
    scorer = Scorer()
    said(AutoevalsAdapter(scorer, input_key=None))
    assert scorer.asked[2] == {}


@pytest.mark.parametrize(("given", "found"), [({"expected": "own"}, "own"), ({}, "m"), ({"expected_key": "x"}, None)])
def test_an_expectation_of_null_gives_way(given, found):
    scorer = Scorer()
    said(AutoevalsAdapter(scorer, **given), ITEM.model_copy(update={"expectation": None}))
    assert scorer.asked[1] == found


@pytest.mark.parametrize(
    ("scorer", "score", "reason"),
    [
        (Scorer(0.7), 0.7, "Said: 0.7"),
        (Scorer(0.7, rationale="because"), 0.7, "because"),
        (Scorer(0.7, rationale=" "), 0.7, "Said: 0.7"),
        (Blocking(), 0.5, "blocking: 0.5"),
    ],
)
def test_what_a_scorer_says_becomes_an_evaluation(scorer, score, reason):
    one = said(AutoevalsAdapter(scorer))
    assert (one.score, one.reasoning) == (score, reason)


def test_no_score_is_a_skip():
    assert said(AutoevalsAdapter(Scorer(None))).details["skipped"] is True


@pytest.mark.parametrize(
    "scorer", [Scorer(0, error=ValueError("down")), Scorer(float("nan")), Scorer("high"), object()]
)
def test_what_could_not_score_is_an_error(scorer):
    with pytest.raises(EvaluatorError) as raised:
        said(AutoevalsAdapter(scorer))
    assert {"error", "traceback"} <= raised.value.detail.keys()


@pytest.mark.parametrize("score", [float("nan"), float("inf"), 10**400, "0.9", None])
def test_an_evaluator_whose_score_is_no_finite_number_could_not_score(score):
    with pytest.raises(TypeError, match="expected a number from 0 to 1"):
        asyncio.run(pixie.evaluate(lambda evaluable: {"score": score}, ITEM))


@pytest.mark.parametrize("score", [True, Decimal("1"), Fraction(3, 3)])
@pytest.mark.parametrize(
    "returned", [lambda score: score, lambda score: Evaluation(score, "the same"), lambda score: {"score": score}]
)
def test_whatever_python_takes_for_a_number_is_a_score(score, returned):
    evaluation = asyncio.run(pixie.evaluate(lambda evaluable: returned(score), ITEM))
    assert (evaluation.score, type(evaluation.score)) == (1.0, float)


def test_a_scorer_may_say_whether_it_agrees():
    assert said(AutoevalsAdapter(Scorer(True))).score == 1.0


def test_a_score_that_is_clamped_is_reported_with_its_evaluator(caplog):
    def generous(evaluable):
        return 7

    assert asyncio.run(pixie.evaluate(generous, ITEM)).score == 1.0
    assert caplog.messages == ["generous: the score 7.0 is outside of 0 to 1 and was clamped"]


def test_such_scorers_compare_texts_and_items():
    lists = Evaluable(eval_input="q", eval_output=["axe", "bee"], expectation=["ant", "bat"])
    texts = Evaluable(eval_input="q", eval_output={"k": "axe"}, expectation={"k": "ant"})
    found = [said(ListContains(pairwise_scorer=First), lists), said(JSONDiff(string_scorer=First()), texts)]
    assert [one.score for one in found] == [1.0, 1.0]


def test_such_a_scorer_compares_the_json_text_of_values_of_different_kinds():
    item = Evaluable(eval_input="q", eval_output={"k": "axe"}, expectation={"k": ["axe"]})
    assert said(JSONDiff(string_scorer=First()), item).score == 0.0


def test_the_name_is_the_scorers_or_that_of_its_class():
    assert [AutoevalsAdapter(one).name for one in (Blocking(), Scorer())] == ["blocking", "Scorer"]
