"""promptfoo: prompts, providers and tests with assertions, in one configuration.

The rules are those of promptfoo 0.123.1; docs/promptfoo.md lists the differences.
"""

from evalwright.model.format import ALLOW_OUTSIDE, MAX_CONCURRENCY, Format, Judging, Option, entry

__all__ = ["FORMAT"]

FORMAT = Format(
    name="promptfoo",
    title="promptfoo",
    summary="Prompts, providers and tests with assertions, in one configuration.",
    docs="docs/promptfoo.md",
    suffixes=(".yaml", ".yml", ".json", ".js", ".cjs", ".mjs", ".ts", ".cts", ".mts"),
    names=tuple(
        f"promptfooconfig.{suffix}" for suffix in ("yaml", "yml", "json", "cjs", "cts", "js", "mjs", "mts", "ts")
    ),
    excluded_by=frozenset({"eval", "results"}),
    detects="evalwright.formats.promptfoo.detection:detects",
    load="evalwright.formats.promptfoo.suite:load",
    schemas={
        "promptfoo": ("evalwright.formats.promptfoo.schema:configuration_schema", "promptfoo: promptfooconfig.yaml"),
        "promptfoo-tests": ("evalwright.formats.promptfoo.schema:tests_schema", "promptfoo: a file of tests"),
        "promptfoo-test": (
            "evalwright.formats.promptfoo.schema:test_schema",
            "promptfoo: a test, one line of JSON Lines, or the file of defaultTest",
        ),
        "promptfoo-scenarios": (
            "evalwright.formats.promptfoo.schema:scenario_schema",
            "promptfoo: a file of scenarios",
        ),
        "promptfoo-providers": (
            "evalwright.formats.promptfoo.schema:provider_schema",
            "promptfoo: a file of providers",
        ),
    },
    options=(
        Option(("--repeat",), "int", minimum=1, metavar="N", help="Run each test N times."),
        MAX_CONCURRENCY,
        Option(
            ("--max-retries",),
            "int",
            minimum=0,
            metavar="N",
            help="Further calls of http providers after HTTP 429 and 503 (4 unless given) and other 5xx (0).",
        ),
        Option(("--filter-pattern",), metavar="REGEX", help="Only tests whose description matches."),
        Option(("--filter-first-n", "-n"), "int", minimum=1, metavar="N", help="Only the first N tests."),
        Option(
            ("--filter-providers", "--filter-targets"),
            metavar="REGEX",
            help="Only providers whose id or label matches.",
        ),
        Option(("--filter-prompts",), metavar="REGEX", help="Only prompts whose id or label matches."),
        Option(
            ("--filter-metadata",),
            metavar="KEY=VALUE",
            help="Only tests with this metadata (repeatable).",
            multiple=True,
        ),
        Option(("--filter-range",), metavar="START:END", help="Only these tests, counted from 0, END excluded."),
        Option(
            ("--filter-sample",), "int", minimum=1, metavar="N", help="Only N tests, drawn by --filter-sample-seed."
        ),
        Option(("--filter-sample-seed",), "int", metavar="N", help="Seed of --filter-sample (default: 0)."),
        Option(
            ("--filter-failing",),
            "path",
            metavar="FILE",
            help="Only tests that did not pass in promptfoo's result file.",
        ),
        Option(("--filter-failing-only",), "path", metavar="FILE", help="The same without errors."),
        Option(("--filter-errors-only",), "path", metavar="FILE", help="Only tests with an error in that file."),
        Option(
            ("--env-file", "--env-path"),
            "path",
            metavar="FILE",
            help="Read variables from this file, before those of .env (repeatable).",
            multiple=True,
        ),
        Option(("--cached", "-c"), "path", metavar="FILE", help="Evaluate the outputs in a result file of promptfoo."),
        Option(
            ("--output", "-o"), "path", metavar="FILE", help="Also write promptfoo's result file (JSON).", writes=True
        ),
        Option(
            ("--add-config",),
            "path",
            metavar="FILE",
            help="Join this configuration with the suite's, as a second -c does (repeatable).",
            multiple=True,
        ),
        ALLOW_OUTSIDE,
    ),
    suite_flags=("-c", "--config"),
    joining_flag="--add-config",
    judging=Judging(on_errored_trace="skip"),
    verdicts="evalwright.formats.promptfoo.verdicts:verdict",
    targets={"promptfoo": "evalwright.formats.promptfoo.target:PromptfooTarget"},
    evaluators={
        "promptfoo": entry(
            "evalwright.formats.promptfoo.evaluator:PromptfooAssertion",
            "One assertion of promptfoo, by its own rules.",
            see={"text_check": "one question to a text"},
            example={"assertion": {"type": "contains", "value": "hello"}},
        ),
        "promptfoo_comparison": entry(
            "evalwright.formats.promptfoo.checks.comparison:PromptfooComparison",
            "Whether an output is the best of all variants': promptfoo's `select-best` (by a judge) and `max-score`.",
            example={"assertion": {"type": "max-score"}},
        ),
        "promptfoo_scoring": entry(
            "evalwright.formats.promptfoo.scoring:ScoringFunction",
            "The outcome of a cell by a function of the suite's, promptfoo's `assertScoringFunction`.",
            example={"function": "file://score.py:score", "folder": "."},
        ),
    },
    exports={"promptfoo_results": "evalwright.formats.promptfoo.result_file:ResultsFile"},
    mirrors={"promptfoo_extensions": "evalwright.formats.promptfoo.after_hooks:AfterHooks"},
    reports={"promptfoo": "evalwright.formats.promptfoo.result_file:ResultsReport"},
    names_in="evalwright.formats.promptfoo.conversion:names_in",
    totals="evalwright.formats.promptfoo.totals:PromptfooTotals",
    gates={"promptfoo": "evalwright.formats.promptfoo.totals:PassRateGate"},
    known_by="evalwright.formats.promptfoo.recorded_results:known_by",
)
