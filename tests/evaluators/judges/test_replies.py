"""Reading a judge's reply: one clear verdict or none."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.evaluators.judges.replies import BadReply, number_in, only_object, reason_in, truth_in

VERDICT = {"score": 4, "reason": "fine"}


@pytest.mark.parametrize(
    "text",
    [
        '{"score": 4, "reason": "fine"}',
        ' \n{"score": 4, "reason": "fine"}\n',
        '```json\n{"score": 4, "reason": "fine"}\n```',
        '```\n{"score": 4, "reason": "fine"}\n```\nThat is all.',
        'I say {"score": 4, "reason": "fine"}.',
        'The answer names {order} and [1]. {"score": 4, "reason": "fine"}',
        '{"score": 4, "reason": "fine"} and again {"reason": "fine", "score": 4}',
        '{"unrelated": 1} then {"score": 4, "reason": "fine"}',
        'As asked with ["score", ["reason"]]: {"score": 4, "reason": "fine"}',
    ],
    ids=[
        "bare", "spaces", "fenced", "fence-and-prose", "prose", "braces-in-prose", "said-twice", "other-object",
        "list-of-keys",
    ],
)  # fmt: skip
def test_the_one_object_with_a_verdict_is_found(text: str) -> None:
    assert only_object(text, ("score",)) == VERDICT


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("I think it passes.", "found none"),
        ("[true, true]", "a JSON list"),
        ("4", "found 4"),
        ('[{"score": 4}]', "a JSON list"),
        ('```json\n[{"score": 4}]\n```', "a JSON list"),
        ('It says {"score": 5}, I say {"score": 1}', "2 different"),
        ('{"reason": "fine", "score": 1, "score": 5}', "'score' twice"),
        ('I say {"score": 1, "score": 5}', "twice"),
        ('{"score": 4, "reason": "cut o', "broken"),
        ('{"checks": [{"score": 5}], "score": }', "broken"),
    ],
    ids=[
        "empty", "prose", "list", "number", "list-of-objects", "fenced-list", "two-verdicts", "key-twice",
        "key-twice-in-prose", "cut-off", "broken-outside",
    ],
)  # fmt: skip
def test_what_is_no_clear_verdict_is_refused(text: str, why: str) -> None:
    with pytest.raises(BadReply, match=why):
        only_object(text, ("score",))


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Finalizers of other tests' garbage would run in the depth and find no stack left."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize(("opening", "why"), [('{"a":', "broken"), ("[", "none")], ids=["objects", "lists"])
def test_endless_nesting_is_refused(opening: str, why: str) -> None:
    with pytest.raises(BadReply, match=why):
        only_object(opening * 100_000, ("score",))


def test_a_reason_that_is_no_text_is_kept_as_it_reads() -> None:
    assert reason_in(["zu spät"]) == '["zu spät"]'


@pytest.mark.slow("objects of any depth")
@given(st.text())
def test_any_text_is_an_object_or_refused(text: str) -> None:
    try:
        parsed = only_object(text, ("score",))
    except BadReply:
        return
    assert isinstance(parsed, dict)


@pytest.mark.slow("objects of any depth")
@given(st.dictionaries(st.text(), st.integers() | st.text() | st.none()), st.text(alphabet="abc \n.`#*"))
def test_an_object_among_words_is_the_object(value: dict[str, object], words: str) -> None:
    said = {"score": 1, **value}
    assert only_object(f"{words}{json.dumps(said)}{words}", ("score",)) == said


@pytest.mark.parametrize("value", [True, "true", " Yes ", 1, 1.0])
def test_true_as_models_write_it(value: object) -> None:
    assert truth_in(value, "x") is True


@pytest.mark.parametrize("value", [False, "FALSE", "no", 0])
def test_false_as_models_write_it(value: object) -> None:
    assert truth_in(value, "x") is False


@pytest.mark.parametrize("value", ["maybe", "", 2, 0.5, None, [], {"passed": True}, float("nan")], ids=repr)
def test_other_values_are_no_truth(value: object) -> None:
    with pytest.raises(BadReply):
        truth_in(value, "'passed'")


@pytest.mark.parametrize(("value", "number"), [(1, 1.0), (5, 5.0), ("4", 4.0), (" 2.5 ", 2.5)], ids=repr)
def test_numbers_of_a_scale(value: object, number: float) -> None:
    assert number_in(value, "'score'", 1, 5) == number


def test_a_truth_is_a_number_only_where_the_original_takes_it_for_one() -> None:
    assert number_in(True, "'score'", 1, 5, truths=True) == 1.0
    with pytest.raises(BadReply):
        number_in(True, "'score'", 1, 5)


@pytest.mark.parametrize(
    "value",
    [0, 5.5, "four", None, float("nan"), "nan", "inf", [4], {}, False, 10**400, "1" * 5000],
    ids=lambda v: repr(v)[:20],
)
def test_what_is_no_number_of_the_scale(value: object) -> None:
    with pytest.raises(BadReply, match="from 1 to 5"):
        number_in(value, "'score'", 1, 5)
