"""Letta Evals: a dataset, an agent, graders and a gate in one YAML file.

The rules are those of letta-evals 0.9.0; docs/letta.md lists the differences.
"""

import re

from evalwright.model.format import ALLOW_OUTSIDE, Format, Judging, Option, entry, references

__all__ = ["FORMAT"]

_SURFACE = "evalwright.formats.letta.surface."
_RUNNER = "evalwright.letta.runner"
_DECORATORS = {
    name: f"{_SURFACE}decorators:{name}"
    for name in ("agent_factory", "extractor", "grader", "reward_composer", "role_of", "suite_setup")
}
_MODELS = {
    name: f"{_SURFACE}models:{name}"
    for name in (
        "AgentState", "Block", "GradeResult", "LettaMessageUnion", "PerTurnGrade", "RewardOutput", "Sample", "SampleId",
    )
} | {name: f"{_RUNNER}:{name}" for name in ("RunnerResult", "SuiteSpec")}  # fmt: skip


_MODELS |= references(
    f"{_SURFACE}results",
    "CostMetrics", "Error", "ErrorSummary", "MetricAggregate", "Metrics", "ModelMetrics", "ModelRun", "ModelSummary",
    "PerRunSummary", "RunStatistics", "SampleResult", "Summary", "TargetResult", "TargetTrace", "Timing", "TimingStats",
    "TurnTokenData", "Usage",
) | references(
    f"{_SURFACE}specs",
    "BaseGraderSpec", "BaseTargetSpec", "CustomRewardSpec", "GateSpec", "GraderSpec", "LettaAgentTargetSpec",
    "LettaCodeTargetSpec", "LettaJudgeGraderSpec", "LogicalGateSpec", "MetricRewardSpec", "ModelJudgeGraderSpec",
    "ModalSandboxSpec", "RewardSpec", "SandboxSpec", "SimpleCondition", "SimpleGateSpec", "TargetSpec",
    "ToolGraderSpec", "WeightedAverageGateSpec",
    "normalize_weights",
)  # fmt: skip
_REWARDS = references(f"{_SURFACE}results", "RewardContext", "coerce_reward_output", "load_reward_composer")
_WORDS = references(
    f"{_SURFACE}types",
    "Aggregation", "ErrorCategory", "GateKind", "GraderKind", "LLMProvider", "LogicalOp", "MetricOp", "RewardKind",
    "TargetKind",
)  # fmt: skip
_LOADERS = dict.fromkeys(("load_dataset", "load_jsonl", "load_csv"), _SURFACE + "datasets:load_dataset")
_CALLBACK = references(f"{_SURFACE}progress", "ProgressCallback")
_QUIET = references(f"{_SURFACE}progress", "NoOpProgress")
_DISPLAY = references(f"{_SURFACE}progress", "EvalProgress")
_STYLE = references(f"{_SURFACE}progress", "ProgressStyle", "create_progress_callback")
_RUN = {name: f"{_RUNNER}:{name}" for name in ("Runner", "run_suite")}
_EXTRACTORS = references(
    f"{_SURFACE}extractors",
    "after_marker", "all_assistant", "first_assistant", "last_assistant", "last_turn", "memory_block", "pattern",
    "tool_arguments", "tool_output",
)  # fmt: skip
_READERS = references(
    f"{_SURFACE}helpers",
    "flatten_content", "get_assistant_messages", "get_extractor", "get_last_turn_messages", "get_messages_by_type",
    "get_tool_calls",
)  # fmt: skip
_REGISTRY = {
    "get_extractor": _READERS["get_extractor"],
    **references(f"{_SURFACE}graders", "extractor_requires_agent_state"),
}
_FUNCTIONS = references(f"{_SURFACE}graders", "ascii_printable_only", "contains", "exact_match", "regex_match")
_GRADERS = references(f"{_SURFACE}graders", "AgentJudgeGrader", "Grader", "RubricGrader", "ToolGrader")
_TARGETS = references(f"{_SURFACE}targets", "AbstractAgentTarget", "LettaAgentTarget", "LettaCodeTarget", "TargetError")
_TURNS = references(
    f"{_SURFACE}turn_scores",
    "build_turn_summary",
    "build_turn_symbols",
    "calculate_turn_average",
    "is_per_turn_evaluation",
)
_CLIENT = _SURFACE + "client:"
_TYPES = {
    **{
        name: f"{_SURFACE}messages:{name}"
        for name in (
            "ApprovalRequestMessage", "AssistantMessage", "HiddenReasoningMessage", "LettaMessage", "ReasoningMessage",
            "SystemMessage", "TextContent", "ToolCall", "ToolCallMessage", "ToolReturnMessage", "UserMessage",
        )
    },
    **dict.fromkeys(("CreateBlock", "CreateBlockParam"), _CLIENT + "CreateBlock"),
    **dict.fromkeys(("MessageCreate", "MessageCreateParam"), _CLIENT + "MessageCreate"),
    **{name: _MODELS[name] for name in ("AgentState", "LettaMessageUnion")},
}  # fmt: skip
_TOOLS = {"BaseTool": _CLIENT + "BaseTool", "Tool": _CLIENT + "BaseTool"}


_SNAKE = {name: re.sub("(?<!^)(?=[A-Z])", "_", name).lower() for name in _TYPES}

_SHIMS = {
    "letta_evals": {
        **_DECORATORS,
        **_MODELS,
        **_REWARDS,
        **_WORDS,
        **_CALLBACK,
        **_STYLE,
        **_RUN,
        **_GRADERS,
        **_TARGETS,
        "load_dataset": _LOADERS["load_dataset"],
    },
    "letta_evals.datasets": _LOADERS,
    "letta_evals.datasets.loader": _LOADERS,
    "letta_evals.decorators": _DECORATORS,
    "letta_evals.extractors": {**_EXTRACTORS, **_REGISTRY},
    "letta_evals.extractors.builtin": _EXTRACTORS,
    "letta_evals.extractors.registry": _REGISTRY,
    "letta_evals.extractors.utils": _READERS,
    "letta_evals.graders": {**_GRADERS, **_FUNCTIONS},
    "letta_evals.graders.agent_judge": {"AgentJudgeGrader": _GRADERS["AgentJudgeGrader"]},
    "letta_evals.graders.base": {"Grader": _GRADERS["Grader"]},
    "letta_evals.graders.builtin": _FUNCTIONS,
    "letta_evals.graders.prompt_utils": references(f"{_SURFACE}graders", "build_judge_prompt"),
    "letta_evals.graders.rubric": {"RubricGrader": _GRADERS["RubricGrader"]},
    "letta_evals.graders.tool": {"ToolGrader": _GRADERS["ToolGrader"]},
    **dict.fromkeys(
        ("letta_evals.models", *(f"letta_evals.models.{part}" for part in ("results", "sample", "specs", "summaries"))),
        _MODELS,
    ),
    "letta_evals.rewards": {**_REWARDS, "RewardOutput": _MODELS["RewardOutput"]},
    "letta_evals.runner": _RUN,
    "letta_evals.streaming": {"StreamingReader": "evalwright.letta.streaming:StreamingReader"},
    "letta_evals.targets": _TARGETS,
    "letta_evals.targets.base": {"AbstractAgentTarget": _TARGETS["AbstractAgentTarget"]},
    "letta_evals.targets.errors": {"TargetError": _TARGETS["TargetError"]},
    "letta_evals.targets.letta_agent": {"LettaAgentTarget": _TARGETS["LettaAgentTarget"]},
    "letta_evals.targets.letta_code_target": {"LettaCodeTarget": _TARGETS["LettaCodeTarget"]},
    "letta_evals.types": _WORDS,
    "letta_evals.utils": {**_TURNS, **references(f"{_SURFACE}graders", "load_object")},
    "letta_evals.visualization": {**_CALLBACK, **_DISPLAY, **_STYLE},
    "letta_evals.visualization.base": _CALLBACK,
    "letta_evals.visualization.factory": _STYLE,
    "letta_evals.visualization.noop_progress": _QUIET,
    "letta_evals.visualization.rich_progress": _DISPLAY,
    "letta_evals.visualization.simple_progress": {"SimpleProgress": _DISPLAY["EvalProgress"]},
    "letta_client": {**dict.fromkeys(("AsyncLetta", "Letta"), _CLIENT + "AsyncLetta"), **_TYPES},
    "letta_client.client": {"BaseTool": _CLIENT + "BaseTool"},
    "letta_client.types": _TYPES,
    "letta_client.types.agents": _TYPES,
    # the real package has a module for each of its types
    **{f"letta_client.types.{_SNAKE[name]}": {name: ref} for name, ref in _TYPES.items()},
    **{f"letta_client.types.agents.{_SNAKE[name]}": {name: ref} for name, ref in _TYPES.items()},
    "letta_client.types.tool": _TOOLS,
    "letta_client.types.tools": _TOOLS,
}

_EVERYWHERE = {**_MODELS, **_WORDS, **_CALLBACK, **_DECORATORS, "Grader": _GRADERS["Grader"]}
"""Names that modules of the original import themselves, so that programs may import them from any of these modules."""
_SHIMS |= {name: {**_EVERYWHERE, **_SHIMS[name]} for name in _SHIMS if name.startswith("letta_evals.")}

_IGNORED = "Accepted and ignored: no server is needed."

FORMAT = Format(
    name="letta",
    title="Letta Evals",
    summary="A dataset, an agent, graders and a gate in one YAML file.",
    docs="docs/letta.md",
    suffixes=(".yaml", ".yml", ".json"),
    keys=(frozenset({"dataset", "graders"}), frozenset({"dataset", "grader"})),
    load="evalwright.formats.letta.suite:load",
    schemas={
        "letta": ("evalwright.formats.letta.schema:suite_schema", "Letta Evals: suite.yaml"),
        "letta-sample": ("evalwright.formats.letta.schema:sample_schema", "Letta Evals: one line of a dataset"),
    },
    options=(
        Option(("--target",), metavar="SPEC", help="The system to call: file.py:function, a URL, or openai:MODEL."),
        Option(("--trials", "--num-runs"), "int", minimum=1, metavar="N", help="Run each sample N times."),
        Option(("--cached", "-c"), "path", metavar="DIR", help="Replay recorded results."),
        Option(("--output", "-o"), "path", metavar="DIR", help="Also write the original's result files.", writes=True),
        Option(("--model-handle",), metavar="MODEL", help="Use this model instead of those of the suite."),
        Option(("--strict",), "flag", help="Reject unknown keys."),
        Option(("--strict-rubric",), "flag", help="Reject unknown names in rubrics."),
        Option(("--allow-empty",), "flag", help="Allow a dataset or a selection without cases."),
        Option(
            ("--max-error-rate",),
            "float",
            minimum=0,
            maximum=1,
            metavar="F",
            help="Fail if more than this share of samples had errors (default: no limit).",
        ),
        Option(
            ("--display",),
            "choice",
            ("rich", "simple", "none"),
            help="Progress display; none is --quiet.",
            only_runs=True,
        ),
        Option(("--api-key",), metavar="KEY", help=_IGNORED, only_runs=True),
        Option(("--base-url",), metavar="URL", help=_IGNORED, only_runs=True),
        Option(("--project-id",), metavar="ID", help=_IGNORED, only_runs=True),
        ALLOW_OUTSIDE,
    ),
    judging=Judging(on_errored_trace="evaluate"),
    targets={"letta_agent": "evalwright.formats.letta.target:LettaAgent"},
    evaluators={
        "python_grader": entry(
            "evalwright.formats.letta.functions:PythonGrader",
            "Score from your `@grader` function: `(sample, submission) -> GradeResult`.",
            see={"python_code": "isolated, in the suite file"},
            example={"function": "graders.py:grade"},
        ),
        "python_reward": entry(
            "evalwright.formats.letta.rewards:PythonReward",
            "Score from your `@reward_composer` function, which sees all grades of a sample.",
            see={"composite": "a fixed rule, evaluators of its own"},
            example={"function": "graders.py:reward"},
        ),
    },
    extractors={"python_extractor": "evalwright.formats.letta.functions:PythonExtractor"},
    exports={"letta_results": "evalwright.formats.letta.layout:LettaResults"},
    mirrors={"letta_progress": "evalwright.formats.letta.surface.progress:ProgressMirror"},
    normalize="evalwright.formats.letta.conversion:normalize",
    unread="evalwright.formats.letta.conversion:unread",
    write="evalwright.formats.letta.writer:write_letta",
    totals="evalwright.formats.letta.totals:LettaTotals",
    gates={
        "simple": "evalwright.stores.stored_gates:Simple",
        "weighted_average": "evalwright.stores.stored_gates:Weighted",
        "legacy": "evalwright.stores.stored_gates:Legacy",
        "logical": "evalwright.stores.stored_gates:Logical",
        "reward": "evalwright.stores.stored_gates:Reward",
    },
    command="evalwright.cli.letta:command",
    stands_for="letta-evals",
    shims=_SHIMS,
)
