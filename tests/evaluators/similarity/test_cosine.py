"""`semantic_similarity`: cosines, references, embedders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.scripted_models import Scripted, case, fails, judged, problems, trace
from evalwright.errors import EvaluatorError
from evalwright.evaluators.similarity.cosine import cosine
from evalwright.model.chat import Embedding, EmbeddingRequest, Purpose

VECTORS = {
    "": [0.0, 0.0, 1.0],
    "far": [0.0, 1.0, 0.0],
    "long": [0.6, 0.8, 0.0],
    "near": [0.9, 0.1, 0.0],
    "none": [],
    "opposite": [-1.0, 0.0, 0.0],
    "ref": [1.0, 0.0, 0.0],
    "short": [1.0, 0.0],
    "unlimited": [math.inf, 0.0, 0.0],
    "zero": [0.0, 0.0, 0.0],
}
CONFIG = {"embedder_name": "openai-text-embedding-3-small", "reference_text": "ref"}


def embeds() -> Scripted:
    return Scripted(vectors=VECTORS)


@pytest.mark.parametrize(
    ("answer", "score", "passed"),
    [("ref", 1.0, True), ("near", 0.993884, True), ("long", 0.6, False), ("opposite", -1.0, False), (None, 0.0, False)],
)
def test_the_cosine_is_the_score(answer: str | None, score: float, passed: bool) -> None:
    evaluation = judged("semantic_similarity", CONFIG, embeds(), on=trace(answer))
    assert evaluation.score == pytest.approx(score, abs=1e-6)
    assert evaluation.passed is passed


@pytest.mark.parametrize("threshold", [0.6, -1.0, 0])
def test_the_threshold_itself_passes(threshold: float) -> None:
    assert judged("semantic_similarity", {**CONFIG, "threshold": threshold}, embeds(), on=trace("long")).passed


@pytest.mark.parametrize("answer", ["zero", "short", "none", "unlimited", "not embedded"])
def test_vectors_that_cannot_be_compared_are_an_error(answer: str) -> None:
    assert fails("semantic_similarity", CONFIG, embeds(), on=trace(answer)).type == "embedder_error"


def test_a_reference_in_the_case_and_one_in_the_text_which_wins() -> None:
    by_path = {**CONFIG, "reference_text": None, "reference_path": "$.case.expected.facts.ref"}
    there = case(facts={"ref": "far"})
    assert judged("semantic_similarity", by_path, embeds(), on=trace("far"), of=there).score == 1.0
    both = {**by_path, "reference_text": "ref"}
    assert judged("semantic_similarity", both, embeds(), on=trace("far"), of=there).score == 0.0


def test_no_reference_in_the_case_is_an_error() -> None:
    config = {**CONFIG, "reference_text": None, "reference_path": "$.case.expected.facts.ref"}
    assert fails("semantic_similarity", config, embeds(), on=trace("far")).type == "missing_reference"


def test_the_cost_of_embeddings_is_recorded() -> None:
    assert judged("semantic_similarity", CONFIG, embeds(), on=trace("near")).cost_usd == 0.001


SOURCE = """
def lengths(texts):
    return [(len(text), 1) for text in texts]

async def waited(texts):
    return [[len(text), 1] for text in texts]

class Model:
    def embed(self, texts):
        return [[1.0, 2.0] for _ in texts]

model = Model()
number = 3

def fails(texts):
    raise OSError("no model here")

def too_few(texts):
    return [[1.0]]

def words(texts):
    return [["a"], ["b"]]
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_embedders.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    return "own_embedders"


@pytest.mark.parametrize("name", ["lengths", "waited", "model.embed"])
def test_an_embedder_of_ones_own(own: str, name: str) -> None:
    config = {"embedder_name": f"{own}:{name}", "reference_text": "abc"}
    assert judged("semantic_similarity", config, embeds(), on=trace("abc")).score == 1.0


@pytest.mark.parametrize(
    ("name", "why"), [("fails", "no model here"), ("too_few", "2 vectors"), ("words", "ValueError")]
)
def test_an_embedder_that_fails_is_an_error(own: str, name: str, why: str) -> None:
    error = fails("semantic_similarity", {"embedder_name": f"{own}:{name}", "reference_text": "abc"}, embeds())
    assert error.type == "embedder_error"
    assert why in str(error)


@pytest.mark.parametrize("kind", ["cost_limit", "no_price", "network_refused"])
def test_what_the_run_forbids_is_no_error_of_the_embedder(kind: str) -> None:
    class Forbidden(Scripted):
        async def embed(self, request: EmbeddingRequest, purpose: Purpose = "judge") -> Embedding:
            raise EvaluatorError("not in this run", kind)

    assert fails("semantic_similarity", CONFIG, Forbidden(), on=trace("near")).type == kind


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("own_embedders:absent", "AttributeError"),
        ("own_embedders:number", "not a function"),
        ("not_there:embed", "ModuleNotFoundError"),
        ("openai-text-embedding-3-smal", 'did you mean "openai-text-embedding-3-small"?'),
        ("mine", "sentence-transformers/all-MiniLM-L6-v2"),
    ],
)
def test_embedders_that_are_not_there(own: str, name: str, said: str) -> None:
    assert said in problems("semantic_similarity", {"embedder_name": name, "reference_text": "x"})["embedder_name"]


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"embedder_name": "openai-text-embedding-3-small"}, "reference_text"),
        ({**CONFIG, "threshold": 1.5}, "threshold"),
        ({**CONFIG, "threshold": -1.5}, "threshold"),
        ({"reference_text": "x"}, "embedder_name"),
    ],
)
def test_mistakes_of_a_configuration(config: dict[str, Any], key: str) -> None:
    assert key in problems("semantic_similarity", config)


_vectors = st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=8)


@pytest.mark.slow("long vectors")
@given(_vectors)
def test_every_vector_is_like_itself(vector: Sequence[float]) -> None:
    try:
        assert cosine(vector, vector) == 1.0
    except EvaluatorError:
        assert not any(vector)


@given(st.data(), st.integers(1, 8))
def test_cosines_are_symmetric_and_bounded(data: st.DataObject, size: int) -> None:
    one, other = (data.draw(st.lists(st.floats(-1e100, 1e100), min_size=size, max_size=size)) for _ in range(2))
    if any(one) and any(other):
        assert -1.0 <= cosine(one, other) == cosine(other, one) <= 1.0
