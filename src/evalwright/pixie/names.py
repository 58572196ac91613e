"""The names of the pre-made evaluators."""

__all__ = ["BUILT_IN"]

BUILT_IN = (
    "AnswerCorrectness", "AnswerRelevancy", "Battle", "ClosedQA", "ContextRelevancy", "EmbeddingSimilarity",
    "ExactMatch", "Factuality", "Faithfulness", "Humor", "JSONDiff", "LevenshteinMatch", "ListContains", "Moderation",
    "NumericDiff", "Possible", "Security", "Sql", "Summary", "Translation", "ValidJSON",
)  # fmt: skip
