"""What is there, by kind and name: one table of `"module:attribute"` strings, plus entry points.

Nothing is imported before it is asked for. Another package adds a name with an entry point in the group
`evalwright.<kind>`; a name of ours wins over the same name elsewhere.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from evalwright.errors import InputError, did_you_mean

__all__ = ["KINDS", "PREMADE", "load", "names", "package_of"]

PREMADE = (
    "AnswerCorrectness", "AnswerRelevancy", "Battle", "ClosedQA", "ContextRelevancy", "EmbeddingSimilarity",
    "ExactMatch", "Factuality", "Faithfulness", "Humor", "JSONDiff", "LevenshteinMatch", "ListContains", "Moderation",
    "NumericDiff", "Possible", "Security", "Sql", "Summary", "Translation", "ValidJSON",
)  # fmt: skip
"""Evaluators that every format knows by these names (specification pixie, 3)."""

KINDS: dict[str, dict[str, str]] = {
    "dialects": {
        "agentv": "evalwright.dialects.agentv:Agentv",
        "evalh": "evalwright.dialects.evalh:Evalh",
        "letta": "evalwright.dialects.letta:Letta",
        "northstar": "evalwright.dialects.northstar:Northstar",
        "pixie": "evalwright.dialects.pixie:Pixie",
    },
    "targets": {
        "anthropic": "evalwright.targets.chat:Anthropic",
        "cli": "evalwright.targets.command:Command",
        "agentv": "evalwright.agentv.target:AgentvTarget",
        "docker": "evalwright.targets.docker:container",
        "git_branch": "evalwright.targets.git_branch:git_branch",
        "http": "evalwright.targets.http:Http",
        "in_test": "evalwright.pytest_runs.stand_ins:target",
        "openai_chat": "evalwright.targets.chat:OpenAIChat",
        "letta_agent": "evalwright.letta.target:LettaAgent",
        "pixie_app": "evalwright.pixie.target:PixieApp",
        "python_function": "evalwright.targets.python_function:PythonFunction",
        "replay": "evalwright.targets.replay:Replay",
        "subprocess": "evalwright.targets.command:Command",
        "user_simulator": "evalwright.targets.user_simulator:UserSimulator",
    },
    "evaluators": {
        **{name: f"evalwright.pixie.premade:{name}" for name in PREMADE},
        "answered": "evalwright.evaluators.answered:Answered",
        "ascii_printable_only": "evalwright.evaluators.ground_truth:AsciiPrintableOnly",
        "bad_tool_failure_recovery": "evalwright.evaluators.step_checks:BadToolFailureRecovery",
        "code_judge": "evalwright.evaluators.code_judge:CodeJudge",
        "command": "evalwright.evaluators.command:CommandCheck",
        "composite": "evalwright.evaluators.composite:Composite",
        "contains": "evalwright.evaluators.conversation_checks:Contains",
        "contains_text": "evalwright.evaluators.text:ContainsText",
        "cost": "evalwright.evaluators.execution:Cost",
        "cost_under": "evalwright.evaluators.limits:CostUnder",
        "cost_within": "evalwright.evaluators.conversation_checks:CostWithin",
        "criteria_judge": "evalwright.agentv.judges:CriteriaJudge",
        "exact_match": "evalwright.evaluators.json:ExactMatch",
        "execution_metrics": "evalwright.evaluators.execution:ExecutionMetrics",
        "failure_origin": "evalwright.evaluators.step_checks:FailureOrigin",
        "faithfulness_judge": "evalwright.evaluators.conversation_judges:FaithfulnessJudge",
        "field_accuracy": "evalwright.evaluators.field_accuracy:FieldAccuracy",
        "field_check": "evalwright.evaluators.json:FieldCheck",
        "forbidden_tools": "evalwright.evaluators.conversation_checks:ForbiddenTools",
        "git_diff": "evalwright.evaluators.git_diff:GitDiff",
        "ground_truth_contained": "evalwright.evaluators.ground_truth:Contained",
        "ground_truth_equals": "evalwright.evaluators.ground_truth:Equals",
        "ground_truth_match": "evalwright.evaluators.conversation_checks:GroundTruthMatch",
        "ground_truth_matches": "evalwright.evaluators.ground_truth:Matches",
        "hallucinated_tool_result_judge": "evalwright.evaluators.conversation_judges:HallucinatedToolResultJudge",
        "invalid_state_transition": "evalwright.evaluators.step_checks:InvalidStateTransition",
        "in_test": "evalwright.pytest_runs.stand_ins:Said",
        "latency": "evalwright.evaluators.execution:Latency",
        "latency_first_token_under": "evalwright.evaluators.limits:LatencyFirstTokenUnder",
        "latency_under": "evalwright.evaluators.limits:LatencyUnder",
        "latency_within": "evalwright.evaluators.conversation_checks:LatencyWithin",
        "llm_judge": "evalwright.evaluators.llm_judge:LlmJudge",
        "max_tool_calls": "evalwright.evaluators.conversation_checks:MaxToolCalls",
        "not_contains": "evalwright.evaluators.conversation_checks:NotContains",
        "pairwise_judge": "evalwright.evaluators.pairwise:PairwiseJudge",
        "pixie": "evalwright.pixie.evaluator:PixieEvaluator",
        "planning_action_mismatch_judge": "evalwright.evaluators.conversation_judges:PlanningActionMismatchJudge",
        "python_code": "evalwright.evaluators.code_checks:PythonCode",
        "python_grader": "evalwright.letta.functions:PythonGrader",
        "python_reward": "evalwright.letta.functions:PythonReward",
        "regex": "evalwright.evaluators.regex:Regex",
        "required_tools": "evalwright.evaluators.conversation_checks:RequiredTools",
        "retrieval_precision_recall": "evalwright.evaluators.step_checks:RetrievalPrecisionRecall",
        "rubric_checks": "evalwright.agentv.judges:RubricChecks",
        "rubric_judge": "evalwright.evaluators.conversation_judges:RubricJudge",
        "rubric_template": "evalwright.evaluators.rubric_template:RubricTemplate",
        "schema_match": "evalwright.evaluators.json:SchemaMatch",
        "semantic_similarity": "evalwright.evaluators.similarity:SemanticSimilarity",
        "stale_context_usage": "evalwright.evaluators.step_checks:StaleContextUsage",
        "step_cost_attribution": "evalwright.evaluators.step_checks:StepCostAttribution",
        "stream_completed": "evalwright.evaluators.limits:StreamCompleted",
        "test_outcome": "evalwright.pytest_runs.stand_ins:TestOutcome",
        "text_check": "evalwright.evaluators.text_check:TextCheck",
        "thinking_does_not_leak": "evalwright.evaluators.leaks:ThinkingDoesNotLeak",
        "thinking_present": "evalwright.evaluators.text:ThinkingPresent",
        "thinking_tokens_under": "evalwright.evaluators.limits:ThinkingTokensUnder",
        "token_usage": "evalwright.evaluators.execution:TokenUsage",
        "tokens_per_second_above": "evalwright.evaluators.limits:TokensPerSecondAbove",
        "tool_arguments_match": "evalwright.evaluators.conversation_checks:ToolArgumentsMatch",
        "tool_called": "evalwright.evaluators.tools:ToolCalled",
        "tool_calls_match": "evalwright.evaluators.tools:ToolCallsMatch",
        "tool_output_referenced": "evalwright.evaluators.conversation_checks:ToolOutputReferenced",
        "tool_sequence": "evalwright.evaluators.conversation_checks:ToolSequence",
        "tool_trajectory": "evalwright.evaluators.trajectory:ToolTrajectory",
        "wrap_check": "evalwright.pixie.evaluator:WrapCheck",
        "typescript_code": "evalwright.evaluators.code_checks:TypeScriptCode",
        "unnecessary_tool_loop": "evalwright.evaluators.step_checks:UnnecessaryToolLoop",
    },
    "embedders": {
        "openai-text-embedding-3-small": "evalwright.evaluators.embedders:openai_small",
        "sentence-transformers/all-MiniLM-L6-v2": "evalwright.evaluators.embedders:minilm",
    },
    "stores": {
        "local_files": "evalwright.stores.local_files:local_files",
        "postgres": "evalwright.stores.postgres:postgres",
        "sqlite": "evalwright.stores.sqlite:sqlite",
    },
    "extractors": {
        "after_marker": "evalwright.evaluators.extractors:AfterMarker",
        "all_assistant": "evalwright.evaluators.extractors:AllAssistant",
        "first_assistant": "evalwright.evaluators.extractors:FirstAssistant",
        "last_assistant": "evalwright.evaluators.extractors:LastAssistant",
        "last_turn": "evalwright.evaluators.extractors:LastTurn",
        "memory_block": "evalwright.evaluators.extractors:MemoryBlock",
        "pattern": "evalwright.evaluators.extractors:Pattern",
        "python_extractor": "evalwright.letta.functions:PythonExtractor",
        "tool_arguments": "evalwright.evaluators.extractors:ToolArguments",
        "tool_output": "evalwright.evaluators.extractors:ToolOutput",
    },
    "providers": {},
    "mirrors": {
        "letta_progress": "evalwright.letta.progress:ProgressMirror",
        "local_files": "evalwright.stores.mirroring:local_files_mirror",
        "otel": "evalwright.mirrors.otel:OpenTelemetry",
        "postgres": "evalwright.stores.mirroring:postgres_mirror",
        "sqlite": "evalwright.stores.mirroring:sqlite_mirror",
        "webhook": "evalwright.mirrors.webhook:Webhook",
    },
    "exports": {
        "agentv_results": "evalwright.agentv.result_file:ResultFile",
        "letta_results": "evalwright.letta.layout:LettaResults",
    },
    "workspaces": {
        "docker": "evalwright.workspaces.docker:docker_workspace",
        "docker_volume": "evalwright.workspaces.docker:docker_volume",
        "git": "evalwright.workspaces.git:git_workspace",
        "git_branch": "evalwright.workspaces.git:git_branch",
        "tempdir_snapshot": "evalwright.workspaces.snapshot:tempdir_snapshot",
    },
    "enrichers": {
        "langfuse": "evalwright.enrichers.fetching:Langfuse",
        "otel": "evalwright.enrichers.fetching:OpenTelemetryBackend",
        "phoenix": "evalwright.enrichers.fetching:Phoenix",
    },
    "datasets": {
        "cases": "evalwright.dialects.evalh_whole_cases:WholeCases",
        "fixture": "evalwright.dialects.evalh_datasets:fixture",
        "jsonl": "evalwright.dialects.evalh_datasets:jsonl",
        "yaml": "evalwright.dialects.evalh_datasets:yaml",
    },
    "formats": {
        "openai-messages": "evalwright.dialects.openai_messages:OpenAIMessages",
        "openinference": "evalwright.dialects.span_import:OpenInference",
        "otlp-json": "evalwright.dialects.span_import:OtlpJson",
    },
    "reports": {
        "agentv": "evalwright.agentv.results:AgentvResults",
        "html": "evalwright.reports.html:HtmlPage",
        "json": "evalwright.reports.json:Json",
        "junit": "evalwright.reports.junit:JUnit",
        "markdown": "evalwright.reports.markdown:Markdown",
    },
}

LABELS = {
    "dialects": "dialect",
    "targets": "system adapter",
    "evaluators": "evaluator",
    "embedders": "embedder",
    "stores": "store",
    "extractors": "extractor",
    "providers": "provider of models",
    "mirrors": "store",
    "exports": "form of results",
    "workspaces": "workspace",
    "enrichers": "trace enricher",
    "datasets": "dataset",
    "formats": "import format",
    "reports": "report format",
}


@cache
def _plugins(kind: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=f"evalwright.{kind}")}


def names(kind: str) -> list[str]:
    """Every registered name of a kind, ours and other packages', sorted."""
    return sorted(KINDS[kind].keys() | _plugins(kind).keys())


def package_of(kind: str, name: str) -> str | None:
    """The other package that a name comes from; None for ours."""
    point = None if name in KINDS[kind] else _plugins(kind).get(name)
    return point.dist.name if point and point.dist else None


@cache
def load(kind: str, name: str) -> Any:
    """The thing registered under `name`. Raises InputError that lists the known names."""
    place = KINDS[kind].get(name)
    if place is not None:
        module, _, attribute = place.partition(":")
        return getattr(import_module(module), attribute)
    point = _plugins(kind).get(name)
    if point is None:
        known = names(kind)
        raise InputError(f"Unknown {LABELS[kind]} {name!r}{did_you_mean(name, known)} (registered: {', '.join(known)})")
    try:
        return point.load()
    except Exception as error:
        package = point.dist.name if point.dist else "a plug-in"
        raise InputError(
            f"{LABELS[kind]} {name!r} of {package} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
