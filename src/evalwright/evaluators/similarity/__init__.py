"""Similarity of texts by embeddings."""

from evalwright.model.format import EvaluatorEntry, entry

__all__ = ["EVALUATORS"]

EVALUATORS: dict[str, EvaluatorEntry] = {
    "semantic_similarity": entry(
        "evalwright.evaluators.similarity.cosine:SemanticSimilarity",
        "The cosine of the embeddings of a field and a reference is ≥ `threshold`.",
        see={"EmbeddingSimilarity": "compares with the case's ground truth"},
        example={"embedder_name": "openai-text-embedding-3-small", "reference_text": "The mug was refunded."},
    ),
}
