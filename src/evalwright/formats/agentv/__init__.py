"""AgentV: files of evalcases in YAML or JSON Lines.

The rules are those of the standard AgentEvals 1.0 and, where it says nothing, those of AgentV 2.7; docs/agentv.md lists
the differences.
"""

from evalwright.model.format import ALLOW_OUTSIDE, Format, Judging, Option, entry

__all__ = ["FORMAT"]

_JUDGES = {"targets": {"gpt": {"name": "gpt", "provider": "openai", "model": "gpt-4o-mini"}}, "default": "gpt"}

FORMAT = Format(
    name="agentv",
    title="AgentV",
    summary="Cases with rubrics and assertions, in YAML or JSON Lines.",
    docs="docs/agentv.md",
    suffixes=(".yaml", ".yml", ".json", ".jsonl"),
    keys=(frozenset({"evalcases"}),),
    excluded_by=frozenset({"eval", "providers", "prompts"}),
    detects="evalwright.formats.agentv.detection:detects",
    load="evalwright.formats.agentv.suite:load",
    schemas={
        "agentv": ("evalwright.formats.agentv.schema:eval_schema", "AgentV: an eval file in YAML"),
        "agentv-case": ("evalwright.formats.agentv.schema:case_schema", "AgentV: a case, one line of JSON Lines"),
        "agentv-sidecar": ("evalwright.formats.agentv.schema:sidecar_schema", "AgentV: the YAML file beside them"),
        "agentv-cases": ("evalwright.formats.agentv.schema:cases_schema", "AgentV: a file of cases that tests name"),
        "agentv-folder-case": (
            "evalwright.formats.agentv.schema:folder_case_schema",
            "AgentV: case.yaml in a folder of cases",
        ),
        "agentv-workspace": (
            "evalwright.formats.agentv.schema:workspace_schema",
            "AgentV: a file that workspace names",
        ),
        "agentv-assertions": (
            "evalwright.formats.agentv.schema:assertions_schema",
            "AgentV: assertions that include names",
        ),
        "agentv-targets": ("evalwright.formats.agentv.schema:targets_schema", "AgentV: targets.yaml"),
        "agentv-config": ("evalwright.formats.agentv.schema:config_schema", "AgentV: .agentv/config.yaml"),
    },
    options=(
        Option(("--target",), metavar="NAME", help="Evaluate this target of the targets file."),
        Option(("--targets",), "path", metavar="FILE", help="File that defines the targets."),
        Option(("--allow-tools",), "flag", help="Let coding agents do anything with your rights."),
        Option(("--conversation",), metavar="GLOB", help="Only cases whose conversation_id matches."),
        Option(("--description",), metavar="GLOB", help="Only cases whose description matches."),
        Option(
            ("--agent-timeout",),
            "float",
            minimum=0.001,
            maximum=1_000_000_000,
            metavar="S",
            help="Seconds per attempt (default: the file's, else 120).",
        ),
        Option(
            ("--max-retries",),
            "int",
            minimum=0,
            metavar="N",
            help="Further attempts after a timeout (default: the file's, else 2).",
        ),
        Option(
            ("--workers",),
            "int",
            minimum=1,
            maximum=50,
            metavar="N",
            help="Cases at the same time (default: the file's, else 3).",
        ),
        Option(("--threshold",), "float", minimum=0, maximum=1, metavar="F", help="Minimum score to pass."),
        Option(("--output", "-o"), "path", metavar="FILE", help="Also write the original's result file.", writes=True),
        Option(
            ("--output-format",),
            "choice",
            ("jsonl", "yaml", "json", "junit", "html"),
            help="The format of --output.",
            only_runs=True,
        ),
        ALLOW_OUTSIDE,
    ),
    targets={"agentv": "evalwright.formats.agentv.target:AgentvTarget"},
    evaluators={
        "criteria_judge": entry(
            "evalwright.formats.agentv.judges:CriteriaJudge",
            "Score, hits and misses from a judge that sees the case's criterion.",
            see={"llm_judge": "assertions and rubrics of the configuration"},
            example={"judges": _JUDGES},
        ),
        "javascript_regex": entry(
            "evalwright.formats.agentv.regex:JavaScriptRegex",
            "A regular expression of JavaScript is found in the answer, or is not.",
            see={"text_check": "its `regex` is one of Python"},
            example={"value": r"^order \d{4}$", "flags": "im"},
        ),
        "rubric_checks": entry(
            "evalwright.formats.agentv.judges:RubricChecks",
            "Score from rubrics: each is met or not, or scored from 0 to 10 if it has ranges.",
            see={"llm_judge": "one rubric, other scales"},
            example={
                "judges": _JUDGES,
                "rubrics": [{"id": "polite", "text": "The answer is polite.", "weight": 1, "required": False}],
            },
        ),
        "conversation_turns": entry(
            "evalwright.formats.agentv.turns:ConversationTurns",
            "Scores of the turns of a conversation, each judged by checks of its own.",
            see={"composite": "one answer, several checks"},
            example={"turns": [[{"name": "says_30", "type": "contains", "config": {"phrases": ["30"]}}]], "stop": True},
        ),
        "skill_trigger": entry(
            "evalwright.formats.agentv.skills:SkillTrigger",
            "The agent loaded a skill, or did not, by its tool calls.",
            see={"tool_called": "any tool"},
            example={"skill": "csv-analyzer", "should_trigger": False},
        ),
    },
    exports={"agentv_results": "evalwright.formats.agentv.report:AgentvFile"},
    reports={
        "agentv": "evalwright.formats.agentv.report:AgentvResults",
        "agentv_yaml": "evalwright.formats.agentv.report:AgentvDocuments",
    },
    names_in="evalwright.formats.agentv.conversion:names_in",
    normalize="evalwright.formats.agentv.conversion:normalize",
    unread="evalwright.formats.agentv.conversion:unread",
    write="evalwright.formats.agentv.writer:write_agentv",
    other_form="evalwright.formats.agentv.forms:other_form",
    sidecar_of="evalwright.formats.agentv.detection:lines_beside",
    repository="evalwright.formats.agentv.discovery:repository_of",
    read_results="evalwright.formats.agentv.result_keys:read_scores",
    totals="evalwright.formats.agentv.totals:AgentvTotals",
    judging=Judging(concurrent=False),
)
