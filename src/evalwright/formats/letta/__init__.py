"""Letta Evals: a dataset, an agent, graders and a gate in one YAML file."""

from evalwright.model.format import Format, Option

__all__ = ["FORMAT"]

_IGNORED = "Accepted and ignored: no Letta server is used."

FORMAT = Format(
    name="letta",
    title="Letta Evals",
    summary="A dataset, an agent, graders and a gate in one YAML file.",
    docs="docs/letta.md",
    suffixes=(".yaml", ".yml", ".json"),
    detects="evalwright.formats.letta.detection:detects",
    load="evalwright.formats.letta.suite:load",
    options=(
        Option(("--target",), metavar="SPEC", help="What answers: file.py:function, a URL, or openai:MODEL."),
        Option(("--trials", "--num-runs"), "int", minimum=1, metavar="N", help="Run each sample N times."),
        Option(("--cached", "-c"), "path", metavar="DIR", help="Replay recorded results."),
        Option(("--output", "-o"), "path", metavar="DIR", help="Also write the original's result files.", writes=True),
        Option(("--model-handle",), metavar="MODEL", help="Use this model instead of those of the suite."),
        Option(("--strict",), "flag", help="Reject unknown keys."),
        Option(("--strict-rubric",), "flag", help="Reject unknown names in rubrics."),
        Option(("--allow-empty",), "flag", help="Allow a dataset without samples."),
        Option(
            ("--max-error-rate",), "float", minimum=0, maximum=1, metavar="F", help="Fail above this share of errors."
        ),
        Option(("--display",), "choice", ("rich", "simple", "none"), help="Progress display; none is --quiet."),
        Option(("--api-key",), metavar="KEY", help=_IGNORED),
        Option(("--base-url",), metavar="URL", help=_IGNORED),
        Option(("--project-id",), metavar="ID", help=_IGNORED),
    ),
    targets={"letta_agent": "evalwright.formats.letta.target:LettaAgent"},
    evaluators={
        "python_grader": "evalwright.formats.letta.functions:PythonGrader",
        "python_reward": "evalwright.formats.letta.functions:PythonReward",
    },
    extractors={"python_extractor": "evalwright.formats.letta.functions:PythonExtractor"},
    exports={"letta_results": "evalwright.formats.letta.layout:LettaResults"},
    mirrors={"letta_progress": "evalwright.formats.letta.surface.progress:ProgressMirror"},
    totals="evalwright.formats.letta.totals:LettaTotals",
)
