"""What is there, by kind and name: one table of `"module:attribute"` strings, plus entry points.

Nothing is imported before it is asked for. Another package adds a name with an entry point in the group
`evalwright.<kind>`; a name of ours wins over the same name elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from evalwright.errors import InputError, did_you_mean
from evalwright.model.entry import EvaluatorEntry

__all__ = ["FAMILIES", "INTERNAL", "KINDS", "PREMADE", "families", "knows", "load", "names", "package_of"]

PREMADE = (
    "AnswerCorrectness", "AnswerRelevancy", "Battle", "ClosedQA", "ContextRelevancy", "EmbeddingSimilarity",
    "ExactMatch", "Factuality", "Faithfulness", "Humor", "JSONDiff", "LevenshteinMatch", "ListContains", "Moderation",
    "NumericDiff", "Possible", "Security", "Sql", "Summary", "Translation", "ValidJSON",
)  # fmt: skip
"""Evaluators that every format knows by these names (specification pixie, 3)."""

FAMILIES = (
    "text", "values", "tools", "conversation", "steps", "limits", "similarity", "judges", "workspace", "code",
    "combined",
)  # fmt: skip
"""Sub-packages of `evaluators`; each has a register, `EVALUATORS`."""

INTERNAL = frozenset({"in_test", "pixie_app", "test_outcome", "wrap_check"})
"""Names of any kind that are in stored runs only: no file can use them, so lists leave them out."""

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
        "criteria_judge": "evalwright.formats.agentv.judges:CriteriaJudge",
        "in_test": "evalwright.pytest_runs.registered:Said",
        "pixie": "evalwright.formats.pixie.evaluator:PixieEvaluator",
        "python_grader": "evalwright.formats.letta.functions:PythonGrader",
        "python_reward": "evalwright.formats.letta.functions:PythonReward",
        "rubric_checks": "evalwright.formats.agentv.judges:RubricChecks",
        "test_outcome": "evalwright.pytest_runs.registered:TestOutcome",
        "wrap_check": "evalwright.formats.pixie.evaluator:WrapCheck",
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


def families() -> dict[str, Mapping[str, EvaluatorEntry]]:
    """The registers of evaluators by family, which import no evaluator."""
    return {family: _register(family) for family in FAMILIES}


@cache
def _register(family: str) -> Mapping[str, EvaluatorEntry]:
    register: Mapping[str, EvaluatorEntry] = import_module(f"evalwright.evaluators.{family}").EVALUATORS
    return register


def _place(kind: str, name: str) -> str | None:
    """The reference of a name of ours. Opens the registers of evaluators one by one, until one has the name."""
    place = KINDS[kind].get(name)
    if place is None and kind == "evaluators":
        return next((register[name].ref for register in map(_register, FAMILIES) if name in register), None)
    return place


def knows(kind: str, name: str) -> bool:
    """Whether a name is registered: quicker than to look it up in all `names`."""
    return _place(kind, name) is not None or name in _plugins(kind)


def names(kind: str) -> list[str]:
    """Every registered name of a kind, ours and other packages', sorted."""
    registers = families().values() if kind == "evaluators" else ()
    return sorted({*KINDS[kind], *_plugins(kind), *(name for register in registers for name in register)})


def package_of(kind: str, name: str) -> str | None:
    """The other package that a name comes from; None for ours."""
    point = None if _place(kind, name) else _plugins(kind).get(name)
    return point.dist.name if point and point.dist else None


@cache
def load(kind: str, name: str) -> Any:
    """The thing registered under `name`. Raises InputError that lists the known names."""
    place = _place(kind, name)
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
