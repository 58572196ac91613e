"""What is available, by kind and name: tables of `"module:attribute"` references, and what other packages add to them.

Nothing is imported before it is used. Our names take precedence over the same names elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from evalwright.entry_points import Loader, first_sentence, of_group, of_kind, suite_formats
from evalwright.errors import EvalwrightError, InputError, did_you_mean

if TYPE_CHECKING:
    from evalwright.model.format import EvaluatorEntry, Format, Ref
    from evalwright.model.plan import Plan

__all__ = [
    "FAMILIES",
    "INTERNAL",
    "KINDS",
    "NATIVE",
    "PREMADE",
    "WITH_COMMAND",
    "blaming",
    "families",
    "format_of",
    "format_of_run",
    "formats",
    "is_built_in",
    "knows",
    "load",
    "names",
    "our_formats",
    "package_of",
    "resolve",
    "summary",
]

PREMADE = (
    "AnswerCorrectness", "AnswerRelevancy", "Battle", "ClosedQA", "ContextRelevancy", "EmbeddingSimilarity",
    "ExactMatch", "Factuality", "Faithfulness", "Humor", "JSONDiff", "LevenshteinMatch", "ListContains", "Moderation",
    "NumericDiff", "Possible", "Security", "Sql", "Summary", "Translation", "ValidJSON",
)  # fmt: skip
"""Evaluators that every format knows by these names, which autoevals and ragas have in pixie-qa."""

FAMILIES = (
    "text", "values", "tools", "conversation", "steps", "limits", "similarity", "judges", "workspace", "code",
    "combined",
)  # fmt: skip
"""Sub-packages of `evaluators`; each has a table, `EVALUATORS`."""

INTERNAL = frozenset({"in_test", "pixie_app", "test_outcome", "wrap_check"})
"""Names of any kind that occur only in stored runs: no file can use them, so lists leave them out."""

KINDS: dict[str, dict[str, str]] = {
    "formats": {
        "agentv": "evalwright.formats.agentv:FORMAT",
        "letta": "evalwright.formats.letta:FORMAT",
        "native": "evalwright.formats.native:FORMAT",
        "northstar": "evalwright.formats.northstar:FORMAT",
        "pixie": "evalwright.formats.pixie:FORMAT",
        "promptfoo": "evalwright.formats.promptfoo:FORMAT",
        "skills": "evalwright.formats.skills:FORMAT",
    },
    "targets": {
        "anthropic": "evalwright.targets.chat:Anthropic",
        "chat": "evalwright.targets.chat:ProviderChat",
        "cli": "evalwright.targets.command:Command",
        "coding_agent": "evalwright.targets.coding_agent.target:CodingAgent",
        "docker": "evalwright.targets.docker:Container",
        "git_branch": "evalwright.targets.git_branch:GitBranch",
        "http": "evalwright.targets.http:Http",
        "in_test": "evalwright.pytest_runs.registered:target",
        "openai_chat": "evalwright.targets.chat:OpenAIChat",
        "python_function": "evalwright.targets.python_function:PythonFunction",
        "replay": "evalwright.targets.replay:Replay",
        "subprocess": "evalwright.targets.command:Command",
        "user_simulator": "evalwright.targets.user_simulator:UserSimulator",
    },
    "evaluators": {
        "in_test": "evalwright.pytest_runs.registered:StoredResult",
        "test_outcome": "evalwright.pytest_runs.registered:TestOutcome",
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
        "tool_arguments": "evalwright.evaluators.conversation.extractors:ToolArguments",
        "tool_output": "evalwright.evaluators.conversation.extractors:ToolOutputText",
    },
    "providers": {},
    "mirrors": {
        "local_files": "evalwright.mirrors.stores:local_files_mirror",
        "otel": "evalwright.mirrors.otel:OpenTelemetry",
        "postgres": "evalwright.mirrors.stores:postgres_mirror",
        "sqlite": "evalwright.mirrors.stores:sqlite_mirror",
        "webhook": "evalwright.mirrors.webhook:Webhook",
    },
    "exports": {},
    "workspaces": {
        "case_files": "evalwright.workspaces.case_files:case_files",
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
        "csv": "evalwright.formats.native.row_files:CsvRows",
        "fixture": "evalwright.formats.native.yaml_datasets:fixture",
        "huggingface": "evalwright.formats.native.arrow_rows:HuggingFaceRows",
        "json": "evalwright.formats.native.row_files:JsonRows",
        "jsonl": "evalwright.formats.native.datasets:jsonl",
        "parquet": "evalwright.formats.native.arrow_rows:ParquetRows",
        "skills": "evalwright.formats.skills.dataset:SkillEvals",
        "tsv": "evalwright.formats.native.row_files:TsvRows",
        "yaml": "evalwright.formats.native.yaml_datasets:yaml",
    },
    "importers": {
        "agentdojo": "evalwright.importers.agentdojo:AgentDojoLogs",
        "anthropic-messages": "evalwright.importers.anthropic_messages:AnthropicMessages",
        "atif": "evalwright.importers.atif:Atif",
        "braintrust": "evalwright.importers.braintrust:BraintrustSpans",
        "claude-code": "evalwright.importers.claude_code:ClaudeCode",
        "codex": "evalwright.importers.codex:Codex",
        "copilot": "evalwright.importers.copilot:Copilot",
        "cursor": "evalwright.importers.cursor:Cursor",
        "deepeval": "evalwright.importers.deepeval:DeepEval",
        "gemini": "evalwright.importers.gemini:Gemini",
        "inspect": "evalwright.importers.inspect_logs:InspectLogs",
        "langfuse": "evalwright.importers.langfuse:LangfuseTraces",
        "langsmith": "evalwright.importers.langsmith:LangSmithRuns",
        "lm-eval": "evalwright.importers.lm_eval:LmEval",
        "mini-swe-agent": "evalwright.importers.mini_swe_agent:MiniSweAgent",
        "mlflow": "evalwright.importers.mlflow:MlflowTraces",
        "openai-messages": "evalwright.importers.openai_messages:OpenAIMessages",
        "openai-responses": "evalwright.importers.openai_responses:OpenAIResponses",
        "opencode": "evalwright.importers.opencode:OpenCode",
        "openhands": "evalwright.importers.openhands:OpenHands",
        "openinference": "evalwright.importers.spans:OpenInference",
        "otlp-json": "evalwright.importers.spans:OtlpJson",
        "promptfoo-results": "evalwright.importers.promptfoo_results:PromptfooResults",
        "pydantic-evals": "evalwright.importers.pydantic_evals:PydanticEvals",
        "skill-benchmark": "evalwright.importers.skill_benchmark:SkillBenchmarks",
        "swe-agent": "evalwright.importers.swe_agent:SweAgent",
        "tau2": "evalwright.importers.tau2:Tau2Results",
    },
    "reports": {
        "codequality": "evalwright.reports.code_quality:CodeQuality",
        "github": "evalwright.reports.github:GitHubAnnotations",
        "html": "evalwright.viewer.document:HtmlDocument",
        "json": "evalwright.reports.json:JsonReport",
        "junit": "evalwright.reports.junit:JUnit",
        "markdown": "evalwright.reports.markdown:Markdown",
        "sonar": "evalwright.reports.sonar:Sonar",
    },
}

NATIVE = "evalh"
"""The name under which records know the native format."""
WITH_COMMAND = {"letta": "letta-evals", NATIVE: "evalh", "pixie": "pixie"}
"""Our formats with the command line of their original, and its name, for `--help`, which loads no format."""
_STORED = {NATIVE: "native"}
"""Names in records and older command lines, with the formats' present names."""
_OF_FORMATS = ("targets", "evaluators", "extractors", "exports", "reports", "mirrors")
"""Kinds for which formats have their own tables."""

_MOST_NAMED = 30
"""Names in the error about an unknown one, if one of them is nearly the same."""
LABELS = {
    "formats": "format",
    "targets": "system adapter",
    "evaluators": "evaluator",
    "embedders": "embedder",
    "stores": "store",
    "extractors": "extractor",
    "providers": "provider of models",
    "mirrors": "store",
    "exports": "export",
    "workspaces": "workspace",
    "enrichers": "trace enricher",
    "datasets": "dataset",
    "importers": "input format",
    "reports": "report format",
}


def resolve(ref: EvaluatorEntry | Ref) -> Any:
    """The object that a reference names."""
    if isinstance(ref, str):
        module, _, attribute = ref.partition(":")
        return getattr(import_module(module), attribute)
    from evalwright.model.format import EvaluatorEntry

    return resolve(ref.ref) if isinstance(ref, EvaluatorEntry) else ref


def families() -> dict[str, Mapping[str, EvaluatorEntry]]:
    """The tables of evaluators by family; this imports no evaluator."""
    return {family: _register(family) for family in FAMILIES}


@cache
def _register(family: str) -> Mapping[str, EvaluatorEntry]:
    register: Mapping[str, EvaluatorEntry] = import_module(f"evalwright.evaluators.{family}").EVALUATORS
    return register


def _place(kind: str, name: str) -> EvaluatorEntry | Ref | None:
    """Where one of our names is. Opens the tables of evaluators one by one, until one has the name."""
    place: EvaluatorEntry | Ref | None = KINDS[kind].get(name)
    if place is None and kind == "evaluators":
        place = next((register[name] for register in map(_register, FAMILIES) if name in register), None)
    return place or _entries_of_our_formats(kind).get(name)


def knows(kind: str, name: str) -> bool:
    """Whether a name is registered; faster than searching all `names`."""
    return _place(kind, name) is not None or name in _plugins(kind)


def names(kind: str) -> list[str]:
    """Every registered name of a kind, ours and other packages', sorted."""
    registers = families().values() if kind == "evaluators" else ()
    ours = {*KINDS[kind], *_entries_of_our_formats(kind), *(name for register in registers for name in register)}
    return sorted({*ours, *_plugins(kind)})


def package_of(kind: str, name: str) -> str | None:
    """The other package that provides a name; None for ours."""
    plugin = None if _place(kind, name) else _plugins(kind).get(name)
    return plugin[0] if plugin is not None else None


@contextmanager
def blaming(kind: str, name: str) -> Iterator[None]:
    """Raise InputError, with the name of its package, for what a plug-in raises by mistake."""
    package = package_of(kind, name)
    try:
        yield
    except Exception as error:
        if package is None or isinstance(error, EvalwrightError | OSError):
            raise
        message = f"{type(error).__name__}: {error}"
        raise InputError(f"{LABELS[kind]} {name!r} of {package} failed: {message}") from error


def is_built_in(kind: type) -> bool:
    """Whether a class is evalwright's own: what others return is checked, as Python checks no types."""
    return kind.__module__.startswith("evalwright.")


@cache
def load(kind: str, name: str) -> Any:
    """The object registered under `name`. Raises InputError that lists the known names."""
    place = _place(kind, name)
    if place is not None:
        return resolve(place)
    plugin = _plugins(kind).get(name)
    if plugin is None:
        known = [known_name for known_name in names(kind) if known_name not in INTERNAL]
        near, there = did_you_mean(name, known), f"registered: {', '.join(known)}"
        if near and len(known) > _MOST_NAMED:
            there = f"`evalwright list {kind}` lists all {len(known)}"
        raise InputError(f"Unknown {LABELS[kind]} {name!r}{near} ({there})")
    package, load_it = plugin
    try:
        return load_it()
    except InputError:
        raise
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        raise InputError(f"{LABELS[kind]} {name!r} of {package} cannot be loaded: {message}") from error


def summary(kind: str, name: str) -> str:
    """One sentence about what is registered under `name`; why, if it is of a plug-in that cannot be loaded."""
    try:
        factory = load(kind, name)
    except InputError as error:  # must not hide all others
        return str(error)
    return factory.summary if kind == "formats" else first_sentence(factory)


def format_of(name: str) -> Format:
    """The format with a name, which may be one used in records. Raises InputError that lists the known names."""
    loaded: Format = load("formats", _STORED.get(name, name))
    return loaded


def format_of_run(plan: Plan) -> Format:
    """The format by whose rules a run is judged and counted: the one named by `totals`, if any, else its own.

    The native one for suites that no format reads, such as pytest's tests.
    """
    name = plan.totals or plan.dialect
    return format_of(name if plan.totals or knows("formats", _STORED.get(name, name)) else NATIVE)


def formats() -> list[Format]:
    """Every format that can be loaded, ours first. A warning, and `format_of`, name plug-ins that cannot be loaded."""
    return [*our_formats(), *_plugin_formats()]


@cache
def our_formats() -> tuple[Format, ...]:
    """The formats of this package; no other package is searched."""
    return tuple(map(resolve, KINDS["formats"].values()))


@cache
def _entries_of_our_formats(kind: str) -> dict[str, EvaluatorEntry | Ref]:
    """What our formats add to a kind."""
    tables = (getattr(our_format, kind) for our_format in our_formats()) if kind in _OF_FORMATS else ()
    return {name: ref for table in tables for name, ref in table.items()}


@cache
def _plugin_formats() -> tuple[Format, ...]:
    """Formats of other packages. One that cannot be loaded is left out, and named once."""
    entries = []
    for name in _plugins("formats"):
        if name not in KINDS["formats"]:
            try:
                entries.append(format_of(name))
            except InputError as error:
                import logging  # only if something is wrong: every command loads this module

                logging.getLogger(__name__).warning("%s", error)
    return tuple(entries)


@cache
def _plugins(kind: str) -> dict[str, Loader]:
    """What other packages add to a kind, by name."""
    if kind == "formats":
        return suite_formats()
    return {**_adopted_plugins(kind), **_loaders_of_plugin_formats(kind), **of_kind(kind)}


def _adopted_plugins(kind: str) -> dict[str, Loader]:
    """What other packages have registered for the original of one of our formats."""
    groups = [our_format.adopts[kind] for our_format in our_formats() if kind in our_format.adopts]
    return {
        name: (package, partial(_adopt, adapt, load))
        for group, adapt in groups
        for name, (package, load) in of_group(group).items()
    }


def _adopt(adapt: Ref, load: Callable[[], Any]) -> Any:
    return resolve(adapt)(load)


def _loaders_of_plugin_formats(kind: str) -> dict[str, Loader]:
    """What formats of other packages add to a kind."""
    return {
        name: (package_of("formats", plugin_format.name) or "", partial(resolve, ref))
        for plugin_format in (_plugin_formats() if kind in _OF_FORMATS else ())
        for name, ref in getattr(plugin_format, kind).items()
    }
