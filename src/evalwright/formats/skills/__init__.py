"""Agent Skills: `evals/evals.json`, the tasks and criteria by which a skill is measured.

The rules are those of anthropics/skills (skill-creator) and agentskills.io; docs/agent-skills.md lists what differs.
"""

from evalwright.model.format import Format, Judging, Option, entry

__all__ = ["FORMAT"]

FORMAT = Format(
    name="skills",
    title="Agent Skills",
    summary="Whether a skill helps a coding agent: `evals/evals.json`, run with and without it.",
    docs="docs/agent-skills.md",
    suffixes=(".json",),
    detects="evalwright.formats.skills.detection:detects",
    suite_in="evalwright.formats.skills.detection:suite_in",
    load="evalwright.formats.skills.suite:load",
    schemas={"skills": ("evalwright.formats.skills.schema:evals_schema", "Agent Skills: evals/evals.json")},
    options=(
        Option(
            ("--agent",),
            metavar="NAME|COMMAND",
            help="claude, codex, gemini, copilot, or a command line (repeatable).",
            multiple=True,
        ),
        Option(("--agent-command",), metavar="COMMAND", help="The program of the agent, and its first arguments."),
        Option(("--agent-output",), metavar="FORMAT", help="Input format of what a command prints (default: text)."),
        Option(("--skill-folder",), metavar="DIR", help="Where in the workspace a command looks for skills."),
        Option(("--model",), metavar="MODEL", help="The agent's model (repeatable).", multiple=True),
        Option(
            ("--variants",), metavar="NAMES", help="with_skill or without_skill (default: with_skill,without_skill)."
        ),
        Option(("--baseline",), "path", metavar="DIR", help="Compare with this version of the skill, not with none."),
        Option(("--prompt-prefix",), metavar="TEXT", help="Text before the prompts of all variants."),
        Option(("--agent-seconds",), "float", minimum=1, metavar="S", help="Seconds per task.  [default: 600]"),
        Option(("--max-turns",), "int", minimum=1, metavar="N", help="Turns per task (claude)."),
        Option(("--max-budget",), "float", minimum=0.001, metavar="USD", help="Dollars per task (claude)."),
        Option(("--allow-tools",), "flag", help="Let the agent do anything with your rights."),
        Option(("--sandbox",), "choice", choices=("docker",), help="Run the agent in a container."),
        Option(("--image",), metavar="IMAGE", help="With --sandbox: an image that contains the agent."),
        Option(("--judge-model",), metavar="MODEL", help="Default model for judges."),
        Option(
            ("--criteria",), "choice", choices=("own", "all"), help="all: expected_output counts as a criterion, too."
        ),
        Option(
            ("--benchmark",), "path", metavar="DIR", help="Folder for grading.json and benchmark.json.", writes=True
        ),
        Option(("--gate",), "choice", choices=("better",), help="better: pass only if the skill is shown to help."),
    ),
    judging=Judging(on_errored_trace="skip"),
    verdicts="evalwright.formats.skills.verdicts:verdict",
    totals="evalwright.formats.skills.totals:SkillTotals",
    evaluators={
        "skill_criterion": entry(
            "evalwright.formats.skills.criterion:SkillCriterion",
            "A judge finds evidence for one criterion in the answer, the changed files or the tool calls.",
            see={"llm_judge": "sees the answer alone, several assertions at once"},
            example={"text": "The report names the failing test.", "model": "gpt-4o-mini"},
        ),
        "skill_used": entry(
            "evalwright.formats.skills.use:SkillUsed",
            "The agent used the skill where it had to, and not where it must not.",
            example={"skill": "pdf"},
        ),
        "skill_file": entry(
            "evalwright.formats.skills.checks:SkillFile",
            "A file is in the workspace when the agent has ended.",
            see={"git_diff": "which files changed"},
            example={"path": "report.md"},
        ),
        "skill_transcript": entry(
            "evalwright.formats.skills.checks:SkillTranscript",
            "A text is in what the agent said, called or was given back.",
            example={"text": "pytest"},
        ),
    },
    exports={"skill_benchmark": "evalwright.formats.skills.benchmark:SkillBenchmark"},
    names_in="evalwright.formats.skills.detection:names_in",
)
