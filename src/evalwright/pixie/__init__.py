"""Test an instrumented application by running its real code: `wrap`, `Runnable`, evaluators, captured traces.

Names are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_PLACES = {
    "capture.handlers": ("InstrumentationHandler",),
    "capture.listeners": ("add_handler", "flush", "remove_handler"),
    "capture.observations": ("observe", "start_observation"),
    "capture.spans": (
        "AssistantMessage", "ImageContent", "LLMSpan", "ObserveSpan", "SystemMessage", "TextContent", "ToolCall",
        "ToolDefinition", "ToolResultMessage", "UserMessage",
    ),
    "capture.tree": ("MemoryTraceHandler", "ObservationNode"),
    "capture.wrap": (
        "WrapRegistryMissError", "WrapTypeMismatchError", "clear_eval_input", "clear_eval_output", "get_eval_input",
        "get_eval_output", "init_eval_output", "set_eval_input", "wrap",
    ),
    "formats.pixie.surface.agent_evaluator": ("create_agent_evaluator",),
    "formats.pixie.surface.config": ("PixieConfig", "RateLimitConfig", "get_config"),
    "formats.pixie.surface.dataset_store": ("Dataset", "DatasetStore"),
    "formats.pixie.surface.evals": (
        "AnswerCorrectness", "AnswerRelevancy", "AutoevalsAdapter", "Battle", "ClosedQA", "ContextRelevancy",
        "EmbeddingSimilarity", "EvalAssertionError", "ExactMatch", "Factuality", "Faithfulness", "Humor", "JSONDiff",
        "LevenshteinMatch", "ListContains", "Moderation", "NumericDiff", "Possible", "ScoreThreshold", "Security",
        "Sql", "Summary", "Translation", "ValidJSON", "as_evaluable", "assert_dataset_pass", "assert_pass",
        "capture_traces", "create_llm_evaluator", "last_llm_call", "root", "run_and_evaluate",
    ),
    "formats.pixie.surface.evaluable": ("UNSET", "Evaluable", "NamedData", "TestCase", "collapse_named_data"),
    "formats.pixie.surface.evaluation": ("Evaluation", "Evaluator", "evaluate"),
    "formats.pixie.surface.instrumentation": ("enable_llm_tracing", "init"),
    "formats.pixie.surface.observation_store": ("ObservationStore", "StorageHandler", "build_tree"),
    "formats.pixie.surface.rates": ("configure_rate_limits",),
    "formats.pixie.surface.runnable": ("Runnable",),
    "formats.pixie.surface.scorecard": (
        "DatasetEntryResult", "DatasetScorecard", "generate_dataset_scorecard_html", "save_dataset_scorecard",
    ),
    "formats.pixie.surface.trace_records": ("WrappedData",),
    "formats.pixie.surface.trace_store": ("enable_storage",),
}  # fmt: skip
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}

__all__ = sorted(_PLACE_OF, key=lambda name: (not name.isupper(), not name[:1].isupper(), name))


def __getattr__(name: str) -> Any:
    place = _PLACE_OF.get(name)
    if place is None:
        raise AttributeError(f"module 'evalwright.pixie' has no attribute {name!r}")
    return getattr(import_module(f"evalwright.{place}"), name)


def __dir__() -> list[str]:
    return list(__all__)
