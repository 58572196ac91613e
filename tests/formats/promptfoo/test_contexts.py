"""Assertions on the context of answers: where it comes from, and what their scores mean."""

import pytest

from evalwright.errors import EvaluatorError
from formats.promptfoo.judged_assertions import given

RECALLED = "One. [Attributed]\nTwo. [Not Attributed]\nThree. [Not Attributed]"


@pytest.mark.parametrize(
    ("kind", "replies", "score"),
    [
        ("context-recall", [RECALLED], 1 / 3),
        ("context-relevance", ["One."], 1 / 3),
        ("context-faithfulness", ["a\nb\nc", "Final verdict for each statement in order: Yes. No. No."], 1 / 3),
        ("answer-relevance", ["Whence?"], 0.0),
    ],
)
def test_a_half_is_needed_unless_there_is_a_threshold(kind, replies, score):
    asked = {"context": "One. Two. Three.", "query": "q"}
    vectors = {"q": [1.0, 0.0], "Whence?": [0.0, 1.0]}
    for keys, passes in (({}, False), ({"threshold": 0}, True)):
        evaluation, _ = given(kind, replies, variables=asked, vectors=vectors, **keys)
        assert (evaluation.passed, evaluation.score) == (passes, pytest.approx(score))
        evaluation, _ = given(f"not-{kind}", replies, variables=asked, vectors=vectors, **keys)
        assert (evaluation.passed, evaluation.score) == (not passes, pytest.approx(1 - score))


@pytest.mark.parametrize("kind", ["context-faithfulness", "answer-relevance"])
def test_an_output_that_is_no_text_is_an_error(kind):
    with pytest.raises(EvaluatorError, match=f"{kind} needs a text as output, found a mapping"):
        given(kind, ["a"], seen={"output": {"a": 1}})


def test_the_context_is_what_a_transform_finds_in_the_output_of_the_provider():
    seen = {"provided": {"text": "On its way.", "parts": ["Found 1.", "Found 2."]}}
    _, models = given("context-recall", [RECALLED], seen=seen, contextTransform="output.parts")
    assert "<Context>\nFound 1.\n\nFound 2.\n</Context>" in models.prompt
    _, models = given("context-recall", [RECALLED], variables={"q": "x"})
    assert "<Context>\nWhere is it?\n</Context>" in models.prompt


def test_parts_of_a_context_count_as_they_are():
    seen = {"output": {"parts": ["One. Two.", "Three. Four."]}}
    evaluation, _ = given("context-relevance", ["One. Two."], seen=seen, contextTransform="output.parts")
    assert evaluation.score == 0.5


@pytest.mark.parametrize(
    ("kind", "variables", "keys", "said"),
    [
        ("context-relevance", {"context": "a"}, {}, "needs a text in the variable 'query'"),
        ("context-faithfulness", {"query": "a"}, {}, "list of texts in the variable 'context'"),
        ("context-recall", {"query": "a"}, {"contextTransform": "output.zip"}, "contextTransform: .* returned nothing"),
        ("context-recall", {"context": ["a", 5]}, {}, "list of texts in the variable 'context'"),
    ],
)
def test_what_is_needed_is_named(kind, variables, keys, said):
    with pytest.raises(EvaluatorError, match=said):
        given(kind, ["x"], variables=variables, answer={"a": 1}, **keys)


@pytest.mark.parametrize(
    ("kind", "replies", "said"),
    [
        ("context-relevance", ["Something else."], "no sentence of it is in the context"),
        ("context-faithfulness", ["a\nb", "Final verdict for each statement in order: Yes."], "1 final verdicts on 2"),
    ],
)
def test_a_reply_on_something_else_is_no_verdict(kind, replies, said):
    with pytest.raises(EvaluatorError, match=said):
        given(kind, replies, variables={"context": "One. Two.", "query": "q"})


def test_an_empty_reply_is_no_question_to_compare():
    with pytest.raises(EvaluatorError, match="no question"):
        given("answer-relevance", [" \n"], vectors={"q": [1.0, 0.0], "": [1.0, 0.0]})


def test_a_prompt_of_the_configuration_replaces_ours():
    _, models = given("context-recall", [RECALLED], rubricPrompt="{{context}}/{{groundTruth}}", answer="a")
    assert models.prompt.strip() == "a/x"


@pytest.mark.parametrize(
    ("replies", "said"),
    [
        ([{"steps": ["look"]}, {"score": 9}], "no reason for the score"),
        ([{"steps": ["look"]}, {"score": 9, "reason": " "}], "no reason for the score"),
        ([{"steps": ["look", {"step": "say"}]}, {"score": 9, "reason": "r"}], "expected a list of texts as 'steps'"),
        ([{"steps": ["look", ""]}, {"score": 9, "reason": "r"}], "expected a list of texts as 'steps'"),
    ],
)
def test_g_eval_needs_steps_and_a_reason(replies, said):
    with pytest.raises(EvaluatorError, match=said):
        given("g-eval", replies)


def test_g_eval_is_turned_round_with_its_score():
    replies = [{"steps": ["look"]}, {"score": 8, "reason": "r"}]
    for kind, passed, score in (("g-eval", True, 0.8), ("not-g-eval", False, 0.2)):
        evaluation, _ = given(kind, replies)
        assert (evaluation.passed, evaluation.score) == (passed, pytest.approx(score))


@pytest.mark.parametrize(
    ("kind", "keys", "found"),
    [
        ("similar", {}, (True, 0.8)),
        ("similar:cosine", {"threshold": 0.9}, (False, 0.8)),
        ("similar:cosine", {"value": ["x", "y"], "threshold": 0.5}, (True, 0.8)),  # the first that is near enough
        ("not-similar", {"value": ["x", "y"]}, (False, 0.0)),
        ("similar:dot", {"threshold": 1.5}, (True, 1.6)),
        ("not-similar:dot", {"threshold": 1.5}, (False, -0.6)),
        ("similar:euclidean", {"threshold": 2}, (True, 1 / (1 + 1.8**0.5))),
        ("similar:euclidean", {}, (False, 1 / (1 + 1.8**0.5))),
        ("not-similar:euclidean", {}, (True, 1 - 1 / (1 + 1.8**0.5))),
        ("similar:euclidean", {"value": ["x", "y"], "threshold": 0}, (True, 1.0)),
    ],
)
def test_embeddings_are_near_by_three_measures(kind, keys, found):
    vectors = {"On its way.": [0.0, 1.0], "x": [1.2, 1.6], "y": [0.0, 1.0]}
    result, _ = given(kind, [], vectors=vectors, **keys)
    assert (result.passed, result.score) == (found[0], pytest.approx(found[1]))


TALK = [{"input": "Paris?", "output": "In France."}, {"input": "And Oslo?", "output": "Bananas."}]


@pytest.mark.parametrize(
    ("kind", "keys", "passed", "score"),
    [
        ("conversation-relevance", {}, True, 0.5),
        ("conversation-relevance", {"threshold": 0.6}, False, 0.5),
        ("not-conversation-relevance", {"threshold": 0.6}, True, 0.5),
    ],
)
def test_each_turn_of_a_conversation_is_judged_after_those_before_it(kind, keys, passed, score):
    replies = ['{"verdict": "yes"}', '{"verdict": "no", "reason": "no town"}']
    evaluation, models = given(kind, replies, variables={"_conversation": TALK}, **keys)
    assert (evaluation.passed, evaluation.score) == (passed, score)
    assert "User: Paris?\nAssistant: In France.\nUser: And Oslo?\nAssistant: Bananas." in models.prompt
    if not passed:
        assert "turn 2: no town" in evaluation.reason


def test_the_users_own_prompt_reads_the_turns_of_a_conversation():
    prompt = "{% for turn in messages %}{{turn.input}}: {{turn.output}};{% endfor %} {{user.name}}"
    variables = {"_conversation": TALK[:1], "user": {"name": "Ann"}}
    _, models = given("conversation-relevance", ['{"verdict": "yes"}'], variables=variables, rubricPrompt=prompt)
    assert models.prompt.strip() == f"{TALK[0]['input']}: {TALK[0]['output']}; Ann"


def test_a_window_of_a_conversation_is_as_wide_as_is_said():
    replies = ['{"verdict": "yes"}'] * 2
    evaluation, models = given(
        "conversation-relevance", replies, variables={"_conversation": TALK}, config={"windowSize": 1}
    )
    assert evaluation.passed
    assert "Paris" not in models.prompt


def test_without_earlier_turns_the_prompt_and_the_output_are_judged():
    evaluation, models = given("conversation-relevance", ['{"verdict": "yes"}'])
    assert evaluation.score == 1
    assert "User: Where is it?\nAssistant: On its way." in models.prompt
    with pytest.raises(EvaluatorError, match="expected yes or no as 'verdict'"):
        given("conversation-relevance", ['{"verdict": "maybe"}'])


@pytest.mark.parametrize(
    ("reply", "score"), [("(B) because", 1), ("a) it is", 1), ("The answer is (C).", 1), ("I think (D), so (d).", 0)]
)
def test_a_category_may_be_a_letter_in_a_sentence(reply, score):
    evaluation, _ = given("factuality", [reply])
    assert evaluation.score == score


@pytest.mark.parametrize("reply", ["C", "(A) or (D)", "as said above) then", "(F)"])
def test_a_reply_without_one_category_is_no_verdict(reply):
    with pytest.raises(EvaluatorError, match="no category from A to E"):
        given("factuality", [reply])


@pytest.mark.parametrize(("score", "inverted"), [(5, 0), (-1, 1), (0.25, 0.75)])
def test_an_inverted_score_stays_between_0_and_1(score, inverted):
    evaluation, _ = given("not-llm-rubric", [{"pass": True, "score": score}])
    assert evaluation.score == inverted
