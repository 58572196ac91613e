"""Evaluators that ask models, with a client that the user brings."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from evalwright.errors import EvaluatorError
from evalwright.formats.pixie import judge_calls
from evalwright.model.chat import Embedding
from evalwright.pixie import (
    AnswerCorrectness,
    AnswerRelevancy,
    ClosedQA,
    ContextRelevancy,
    EmbeddingSimilarity,
    Evaluable,
    Factuality,
    Faithfulness,
    Moderation,
    create_llm_evaluator,
)
from evalwright.session import Session


class Client:
    """Says what it is told to say, one reply after another."""

    def __init__(self, *replies, vectors=None, ended="stop"):
        self.asked = []
        left = iter(replies)

        def create(**given):
            self.asked.append(given)
            said = next(left)
            text = said if isinstance(said, str) else json.dumps(said)
            choice = SimpleNamespace(message=SimpleNamespace(content=text), finish_reason=ended)
            return SimpleNamespace(choices=[choice])

        def embed(*, model, input):
            return SimpleNamespace(data=[SimpleNamespace(embedding=vectors[text]) for text in input])

        def moderate(*, input):
            return SimpleNamespace(results=[SimpleNamespace(flagged=True, category_scores={"violence": 0.4})])

        self.chat = SimpleNamespace(completions=SimpleNamespace(create=create))
        self.embeddings = SimpleNamespace(create=embed)
        self.moderations = SimpleNamespace(create=moderate)


def judged(evaluator, **metadata):
    evaluable = Evaluable(eval_input="the question", eval_output="the answer", expectation="the truth")
    return asyncio.run(evaluator(evaluable.model_copy(update={"eval_metadata": metadata})))


@pytest.mark.parametrize(("choice", "score"), [("A", 0.4), ("B", 0.6), (" C ", 1.0), ("D", 0.0)])
def test_a_choice_has_its_score(choice, score):
    evaluation = judged(Factuality(client=Client({"reasons": ["one", "two"], "choice": choice})))
    assert (evaluation.score, evaluation.reasoning) == (score, "one\ntwo")


def test_a_text_is_embedded_once_but_not_kept_for_the_whole_run(monkeypatch):
    monkeypatch.setattr(judge_calls, "_MOST_VECTORS", 3)
    texts, asked = ["truth", *(f"answer {n}" for n in range(5))], []

    class Models:
        async def embed(self, request):
            asked.extend(request.texts)
            return Embedding([[1.0, 0.5]], request.model)

    async def compared():
        with Session(models=Models):
            for answer in [*texts[1:], texts[-1], texts[1]]:
                await EmbeddingSimilarity()(Evaluable(eval_input="q", eval_output=answer, expectation="truth"))

    asyncio.run(compared())
    assert sorted(asked) == sorted([*texts, texts[1]])


def test_a_reply_that_broke_off_is_no_choice():
    with pytest.raises(EvaluatorError, match="it ended with length"):
        judged(Factuality(client=Client({"reasons": ["one"], "choice": "C"}, ended="length")))


@pytest.mark.parametrize(
    "reply", [{"choice": "c"}, {"choice": ["C"]}, {"choice": None}, {"reasons": "r"}, "I think C", ""]
)
def test_what_is_no_choice_is_an_error(reply):
    with pytest.raises(EvaluatorError, match=r"the judge chose (.*), expected one of A, B|lacks 'choice'|none|empty"):
        judged(Factuality(client=Client(reply)))


def test_a_closed_question_is_judged_by_its_criteria_without_the_expectation():
    client = Client({"reasons": "", "choice": "Y"})
    judged(ClosedQA(client=client), criteria="is polite")
    shown = json.dumps(client.asked[0]["messages"])
    assert ("is polite" in shown, "the truth" in shown) == (True, False)


@pytest.mark.parametrize(("threshold", "score"), [(None, 0.0), (0.4, 1.0), (0.3, 0.0)])
def test_moderation_goes_by_flag_or_threshold(threshold, score):
    assert judged(Moderation(threshold=threshold, client=Client())).score == score


@pytest.mark.parametrize(("output", "text"), [("the answer", "the answer"), (None, "None")])
def test_similarity_begins_at_a_cosine_of_seven_tenths(output, text):
    client = Client(vectors={text: [1.0, 0.0], "the truth": [0.8, 0.6]})
    answered = Evaluable(eval_input="q", eval_output=[{"name": "r", "value": output}], expectation="the truth")
    assert asyncio.run(EmbeddingSimilarity(client=client)(answered)).score == pytest.approx(1 / 3)


@pytest.mark.parametrize("bits", [(1, 0), (True, False)])
def test_faithfulness_is_the_share_of_statements_borne_out(bits):
    verdicts = [{"statement": "s", "reason": "", "verdict": bit} for bit in bits]
    client = Client({"statements": ["s", "t"]}, {"faithfulness": verdicts})
    assert judged(Faithfulness(client=client), context=["c"]).score == 0.5


@pytest.mark.parametrize(
    ("context", "sentence", "error"),
    [("Paris.", None, "expected text"), (["Paris."], 5, "expected text"), (12, "Paris.", "text or a list of texts")],
)
def test_only_texts_have_a_length_that_counts(context, sentence, error):
    client = Client({"sentences": [{"sentence": sentence}]})
    with pytest.raises(EvaluatorError, match=error):
        judged(ContextRelevancy(client=client), context=context)


@pytest.mark.parametrize(("evades", "score"), [(0, 1.0), (False, 1.0), (1, 0.0), (True, 0.0)])
def test_an_answer_that_evades_is_not_relevant(evades, score):
    replies = [{"question": "q", "noncommittal": evades}] * 3
    client = Client(*replies, vectors={"q": [1.0, 0.0], "the question": [1.0, 0.0]})
    assert judged(AnswerRelevancy(client=client), context=["c"]).score == score


@pytest.mark.parametrize("neither", [2, 0.5, "perhaps", None])
def test_a_statement_is_borne_out_or_not(neither):
    client = Client({"statements": ["s"]}, {"faithfulness": [{"statement": "s", "verdict": neither}]})
    with pytest.raises(EvaluatorError, match="verdict"):
        judged(Faithfulness(client=client), context=["c"])


def test_correctness_weighs_statements_and_similarity():
    vectors = {"the answer": [1.0, 0.0], "the truth": [1.0, 0.0]}
    client = Client({"TP": ["a"], "FP": ["b"], "FN": ["c"]}, vectors=vectors)
    assert judged(AnswerCorrectness(client=client)).score == pytest.approx(0.75 * 0.5 + 0.25)


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("Score: 0.8\nfine", 0.8),
        ("Score: 1.5", 1.0),
        ("Raw score: 85\nScore: 0.85", 0.85),
        ("0.5 / 1", 0.5),
        ("words\n0.3\n", 0.3),
    ],
)
def test_a_score_is_read_out_of_a_reply(reply, score):
    assert judged(create_llm_evaluator("T", "{eval_output}", client=Client(reply))).score == score


@pytest.mark.parametrize("reply", [
    "Score: 8/10", "Score: 10", "Score: 85", "Score: -0.4", "**Score:** 0.8", "good",
    "Score: 1%", "Score: 0,8", "Score: 1e-3", "**Score:** 3/10, as it meets 1/1 of the form", "Score: 85\nMissing:\n0",
])  # fmt: skip
def test_no_score_is_guessed(reply):
    with pytest.raises(EvaluatorError, match="parse score"):
        judged(create_llm_evaluator("T", "{eval_output}", client=Client(reply)))
