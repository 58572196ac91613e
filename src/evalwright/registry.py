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
        "agentv": "evalwright.formats.agentv.suite:Agentv",
        "evalh": "evalwright.formats.native.suite:Evalh",
        "letta": "evalwright.formats.letta.suite:Letta",
        "northstar": "evalwright.formats.northstar.suite:Northstar",
        "pixie": "evalwright.formats.pixie.suite:Pixie",
    },
    "targets": {
        "anthropic": "evalwright.targets.chat:Anthropic",
        "cli": "evalwright.targets.command:Command",
        "agentv": "evalwright.formats.agentv.target:AgentvTarget",
        "docker": "evalwright.targets.docker:container",
        "git_branch": "evalwright.targets.git_branch:git_branch",
        "http": "evalwright.targets.http:Http",
        "in_test": "evalwright.pytest_runs.registered:target",
        "openai_chat": "evalwright.targets.chat:OpenAIChat",
        "letta_agent": "evalwright.formats.letta.target:LettaAgent",
        "pixie_app": "evalwright.formats.pixie.target:PixieApp",
        "python_function": "evalwright.targets.python_function:PythonFunction",
        "replay": "evalwright.targets.replay:Replay",
        "subprocess": "evalwright.targets.command:Command",
        "user_simulator": "evalwright.targets.user_simulator:UserSimulator",
    },
    "evaluators": {
        **{name: f"evalwright.formats.pixie.premade:{name}" for name in PREMADE},
        "answered": "evalwright.evaluators.text.answered:Answered",
        "ascii_printable_only": "evalwright.evaluators.text.ground_truth:AsciiPrintableOnly",
        "bad_tool_failure_recovery": "evalwright.evaluators.steps.checks:BadToolFailureRecovery",
        "code_judge": "evalwright.evaluators.code.judge:CodeJudge",
        "command": "evalwright.evaluators.workspace.command:CommandCheck",
        "composite": "evalwright.evaluators.combined.composite:Composite",
        "contains": "evalwright.evaluators.conversation.checks:Contains",
        "contains_text": "evalwright.evaluators.text.contains:ContainsText",
        "cost": "evalwright.evaluators.limits.execution:Cost",
        "cost_under": "evalwright.evaluators.limits.limits:CostUnder",
        "cost_within": "evalwright.evaluators.conversation.checks:CostWithin",
        "criteria_judge": "evalwright.formats.agentv.judges:CriteriaJudge",
        "exact_match": "evalwright.evaluators.values.json:ExactMatch",
        "execution_metrics": "evalwright.evaluators.limits.execution:ExecutionMetrics",
        "failure_origin": "evalwright.evaluators.steps.checks:FailureOrigin",
        "faithfulness_judge": "evalwright.evaluators.judges.conversation:FaithfulnessJudge",
        "field_accuracy": "evalwright.evaluators.values.field_accuracy:FieldAccuracy",
        "field_check": "evalwright.evaluators.values.json:FieldCheck",
        "forbidden_tools": "evalwright.evaluators.conversation.checks:ForbiddenTools",
        "git_diff": "evalwright.evaluators.workspace.git_diff:GitDiff",
        "ground_truth_contained": "evalwright.evaluators.text.ground_truth:Contained",
        "ground_truth_equals": "evalwright.evaluators.text.ground_truth:Equals",
        "ground_truth_match": "evalwright.evaluators.conversation.checks:GroundTruthMatch",
        "ground_truth_matches": "evalwright.evaluators.text.ground_truth:Matches",
        "hallucinated_tool_result_judge": "evalwright.evaluators.judges.conversation:HallucinatedToolResultJudge",
        "invalid_state_transition": "evalwright.evaluators.steps.checks:InvalidStateTransition",
        "in_test": "evalwright.pytest_runs.registered:Said",
        "latency": "evalwright.evaluators.limits.execution:Latency",
        "latency_first_token_under": "evalwright.evaluators.limits.limits:LatencyFirstTokenUnder",
        "latency_under": "evalwright.evaluators.limits.limits:LatencyUnder",
        "latency_within": "evalwright.evaluators.conversation.checks:LatencyWithin",
        "llm_judge": "evalwright.evaluators.judges.llm_judge:LlmJudge",
        "max_tool_calls": "evalwright.evaluators.conversation.checks:MaxToolCalls",
        "not_contains": "evalwright.evaluators.conversation.checks:NotContains",
        "pairwise_judge": "evalwright.evaluators.judges.pairwise:PairwiseJudge",
        "pixie": "evalwright.formats.pixie.evaluator:PixieEvaluator",
        "planning_action_mismatch_judge": "evalwright.evaluators.judges.conversation:PlanningActionMismatchJudge",
        "python_code": "evalwright.evaluators.code.checks:PythonCode",
        "python_grader": "evalwright.formats.letta.functions:PythonGrader",
        "python_reward": "evalwright.formats.letta.functions:PythonReward",
        "regex": "evalwright.evaluators.text.regex:Regex",
        "required_tools": "evalwright.evaluators.conversation.checks:RequiredTools",
        "retrieval_precision_recall": "evalwright.evaluators.steps.checks:RetrievalPrecisionRecall",
        "rubric_checks": "evalwright.formats.agentv.judges:RubricChecks",
        "rubric_judge": "evalwright.evaluators.judges.conversation:RubricJudge",
        "rubric_template": "evalwright.evaluators.judges.rubric_template:RubricTemplate",
        "schema_match": "evalwright.evaluators.values.json:SchemaMatch",
        "semantic_similarity": "evalwright.evaluators.similarity.similarity:SemanticSimilarity",
        "stale_context_usage": "evalwright.evaluators.steps.checks:StaleContextUsage",
        "step_cost_attribution": "evalwright.evaluators.steps.checks:StepCostAttribution",
        "stream_completed": "evalwright.evaluators.limits.limits:StreamCompleted",
        "test_outcome": "evalwright.pytest_runs.registered:TestOutcome",
        "text_check": "evalwright.evaluators.text.comparison:TextCheck",
        "thinking_does_not_leak": "evalwright.evaluators.text.leaks:ThinkingDoesNotLeak",
        "thinking_present": "evalwright.evaluators.text.contains:ThinkingPresent",
        "thinking_tokens_under": "evalwright.evaluators.limits.limits:ThinkingTokensUnder",
        "token_usage": "evalwright.evaluators.limits.execution:TokenUsage",
        "tokens_per_second_above": "evalwright.evaluators.limits.limits:TokensPerSecondAbove",
        "tool_arguments_match": "evalwright.evaluators.conversation.checks:ToolArgumentsMatch",
        "tool_called": "evalwright.evaluators.tools.called:ToolCalled",
        "tool_calls_match": "evalwright.evaluators.tools.called:ToolCallsMatch",
        "tool_output_referenced": "evalwright.evaluators.conversation.checks:ToolOutputReferenced",
        "tool_sequence": "evalwright.evaluators.conversation.checks:ToolSequence",
        "tool_trajectory": "evalwright.evaluators.tools.trajectory:ToolTrajectory",
        "wrap_check": "evalwright.formats.pixie.evaluator:WrapCheck",
        "typescript_code": "evalwright.evaluators.code.checks:TypeScriptCode",
        "unnecessary_tool_loop": "evalwright.evaluators.steps.checks:UnnecessaryToolLoop",
    },
    "embedders": {
        "openai-text-embedding-3-small": "evalwright.evaluators.similarity.embedders:openai_small",
        "sentence-transformers/all-MiniLM-L6-v2": "evalwright.evaluators.similarity.embedders:minilm",
    },
    "stores": {
        "local_files": "evalwright.stores.local_files:local_files",
        "postgres": "evalwright.stores.postgres:postgres",
        "sqlite": "evalwright.stores.sqlite:sqlite",
    },
    "extractors": {
        "after_marker": "evalwright.evaluators.conversation.extractors:AfterMarker",
        "all_assistant": "evalwright.evaluators.conversation.extractors:AllAssistant",
        "first_assistant": "evalwright.evaluators.conversation.extractors:FirstAssistant",
        "last_assistant": "evalwright.evaluators.conversation.extractors:LastAssistant",
        "last_turn": "evalwright.evaluators.conversation.extractors:LastTurn",
        "memory_block": "evalwright.evaluators.conversation.extractors:MemoryBlock",
        "pattern": "evalwright.evaluators.conversation.extractors:Pattern",
        "python_extractor": "evalwright.formats.letta.functions:PythonExtractor",
        "tool_arguments": "evalwright.evaluators.conversation.extractors:ToolArguments",
        "tool_output": "evalwright.evaluators.conversation.extractors:ToolOutput",
    },
    "providers": {},
    "mirrors": {
        "letta_progress": "evalwright.formats.letta.surface.progress:ProgressMirror",
        "local_files": "evalwright.mirrors.stores:local_files_mirror",
        "otel": "evalwright.mirrors.otel:OpenTelemetry",
        "postgres": "evalwright.mirrors.stores:postgres_mirror",
        "sqlite": "evalwright.mirrors.stores:sqlite_mirror",
        "webhook": "evalwright.mirrors.webhook:Webhook",
    },
    "exports": {
        "agentv_results": "evalwright.formats.agentv.result_file:ResultFile",
        "letta_results": "evalwright.formats.letta.layout:LettaResults",
    },
    "workspaces": {
        "docker": "evalwright.workspaces.docker:docker_workspace",
        "docker_volume": "evalwright.workspaces.docker:docker_volume",
        "git": "evalwright.workspaces.git:git_workspace",
        "git_branch": "evalwright.workspaces.git:git_branch",
        "tempdir_snapshot": "evalwright.workspaces.snapshot:tempdir_snapshot",
    },
    "enrichers": {
        "langfuse": "evalwright.enrichers.backends:Langfuse",
        "otel": "evalwright.enrichers.backends:OpenTelemetryBackend",
        "phoenix": "evalwright.enrichers.backends:Phoenix",
    },
    "datasets": {
        "cases": "evalwright.formats.native.cases_dataset:WholeCases",
        "fixture": "evalwright.formats.native.datasets:fixture",
        "jsonl": "evalwright.formats.native.datasets:jsonl",
        "yaml": "evalwright.formats.native.datasets:yaml",
    },
    "formats": {
        "openai-messages": "evalwright.importers.openai_messages:OpenAIMessages",
        "openinference": "evalwright.importers.spans:OpenInference",
        "otlp-json": "evalwright.importers.spans:OtlpJson",
    },
    "reports": {
        "agentv": "evalwright.formats.agentv.report:AgentvResults",
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
