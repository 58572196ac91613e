"""Evaluators made of other evaluators."""

from evalwright.model.format import EvaluatorEntry, entry

__all__ = ["EVALUATORS"]

EVALUATORS: dict[str, EvaluatorEntry] = {
    "composite": entry(
        "evalwright.evaluators.combined.composite:Composite",
        "Score: the scores of several evaluators, combined by an aggregator.",
        format="AgentV",
        example={
            "evaluators": [
                {"name": "short", "type": "python_code", "config": {"code": "def validate(o, c, r): return True"}},
                {"name": "says", "type": "contains_text", "config": {"all_of": ["refunded"]}},
            ],
            "aggregator": {"type": "minimum"},
        },
    ),
}
