"""The native format: `eval.yaml`.

It is the format of evalh (eval-harness 2.0) with additions, which docs/eval-yaml.md marks as *ours*.
"""

from evalwright.model.format import ALLOW_OUTSIDE, MAX_CONCURRENCY, Format, references

__all__ = ["FORMAT"]

_SURFACE = "evalwright.formats.native.surface."
_ERRORS = references(f"{_SURFACE}bases", "AdapterError", "ConfigError", "RetriableError")
_RECORDS = references(
    f"{_SURFACE}records",
    "ComparisonReport", "EvalCase", "EvaluationResult", "EvaluatorRollup", "EvaluatorVariantRollup", "ExpectedBehavior",
    "FileDiff", "FileEntry", "FileManifest", "FilesystemArtifact", "RunSummary", "RunVariant", "ToolCall", "ToolResult",
    "Trace", "TraceError", "TraceMessage", "TraceMetrics", "TraceOutput", "VariantDelta", "VariantSummary",
)  # fmt: skip
_SETTINGS = references(
    f"{_SURFACE}settings",
    "DatasetConfig", "EvalConfig", "EvalIdentity", "EvaluatorConfig", "ExecutorConfig", "MetricsConfig", "OutputConfig",
    "PassCriteria", "RetryPolicy", "RunOptions", "SystemConfig", "TraceCaptureConfig", "WorkspaceConfig",
)  # fmt: skip
_LOADER = references(f"{_SURFACE}settings", "load_config")
_MOMENTS = references(f"{_SURFACE}moments", "make_run_id", "utc_now")
_REGISTRY = references(f"{_SURFACE}builtin", "Registry")
_EVALUATOR = references(f"{_SURFACE}bases", "Evaluator")
_FACTORY = references(f"{_SURFACE}builtin", "EvaluatorFactory", "evaluator_factory")
_DATASET = references(f"{_SURFACE}bases", "DatasetAdapter")
_ENRICHER = references(f"{_SURFACE}bases", "TraceEnricher")
_STORE = references(f"{_SURFACE}bases", "TraceStore")
_SYSTEM = references(f"{_SURFACE}bases", "SystemAdapter")
_WORKSPACE = references(f"{_SURFACE}bases", "Workspace", "WorkspaceAdapter")
_ADAPTERS = {"dataset": _DATASET, "enricher": _ENRICHER, "system": _SYSTEM, "trace": _STORE, "workspace": _WORKSPACE}
_EVALUATORS = {
    "command": "CommandEvaluator",
    "contains_text": "ContainsTextEvaluator",
    "cost_under": "CostUnderEvaluator",
    "exact_match": "ExactMatchEvaluator",
    "git_diff": "GitDiffEvaluator",
    "latency_first_token_under": "LatencyFirstTokenUnderEvaluator",
    "latency_under": "LatencyUnderEvaluator",
    "llm_judge": "LlmJudgeEvaluator",
    "schema_match": "SchemaMatchEvaluator",
    "semantic_similarity": "SemanticSimilarityEvaluator",
    "stream_completed": "StreamCompletedEvaluator",
    "thinking_does_not_leak": "ThinkingDoesNotLeakEvaluator",
    "thinking_present": "ThinkingPresentEvaluator",
    "thinking_tokens_under": "ThinkingTokensUnderEvaluator",
    "tokens_per_second_above": "TokensPerSecondAboveEvaluator",
    "tool_called": "ToolCalledEvaluator",
}
_SHIMS = {
    "eval_harness": {"__version__": f"{_SURFACE}bases:VERSION"},
    "eval_harness.core": {**_ERRORS, **_RECORDS, **_SETTINGS, **_LOADER, **_MOMENTS, **_REGISTRY},
    "eval_harness.core.config": _SETTINGS,
    "eval_harness.core.config_loader": _LOADER,
    "eval_harness.core.errors": _ERRORS,
    "eval_harness.core.llm_backends": {
        **references(
            f"{_SURFACE}bases", "JudgeBackend", "LlmBackend", "LlmBackendError", "LlmBackendParseError", "LlmCall"
        ),
        "JudgeError": f"{_SURFACE}bases:LlmBackendError",
        "JudgeParseError": f"{_SURFACE}bases:LlmBackendParseError",
    },
    "eval_harness.core.models": _RECORDS,
    "eval_harness.core.registry": _REGISTRY,
    "eval_harness.core.run_reader": references(f"{_SURFACE}run_reader", "RunReader"),
    "eval_harness.core.time": _MOMENTS,
    **{
        name: names
        for kind, names in _ADAPTERS.items()
        for name in (f"eval_harness.adapters.{kind}", f"eval_harness.adapters.{kind}.base")
    },
    "eval_harness.evaluators": _EVALUATOR,
    "eval_harness.evaluators.base": _EVALUATOR,
    **{
        f"eval_harness.evaluators.{module}": references(f"{_SURFACE}builtin", name)
        for module, name in _EVALUATORS.items()
    },
    "eval_harness.factories": _FACTORY,
}

FORMAT = Format(
    name="native",
    title="native",
    summary="The suite in `eval.yaml`: systems, evaluators and a dataset.",
    docs="docs/eval-yaml.md",
    suffixes=(".yaml", ".yml", ".json"),
    keys=(frozenset({"eval"}), frozenset({"dataset", "systems"})),
    original="evalh",
    load="evalwright.formats.native.suite:load",
    schemas={
        "eval": ("evalwright.formats.native.schema:eval_schema", "eval.yaml, the suite"),
        "cases": ("evalwright.formats.native.schema:cases_schema", "cases.yaml, a dataset of type yaml"),
        "case": ("evalwright.formats.native.schema:case_schema", "a case, one line of a dataset of type jsonl"),
        "prices": ("evalwright.formats.native.schema:prices_schema", "a price table, of metrics.price_table_path"),
    },
    options=(ALLOW_OUTSIDE, MAX_CONCURRENCY),
    names_in="evalwright.formats.native.conversion:names_in",
    unread="evalwright.formats.native.conversion:unread",
    write="evalwright.formats.native.writer:write_native",
    expands="evalwright.formats.native.conversion:has_rows",
    adopt_run="evalwright.formats.native.suite:adopt_run",
    adopts={
        "enrichers": ("eval_harness.trace_enrichers", f"{_SURFACE}plugins:enricher"),
        "evaluators": ("eval_harness.evaluators", f"{_SURFACE}plugins:evaluator"),
        "targets": ("eval_harness.system_adapters", f"{_SURFACE}plugins:system_adapter"),
    },
    command="evalwright.cli.evalh:command",
    stands_for="evalh",
    shims=_SHIMS,
)
