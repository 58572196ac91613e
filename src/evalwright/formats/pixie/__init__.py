"""pixie: datasets whose entries drive an instrumented application.

The rules are those of pixie-qa 0.4 to 0.8; docs/pixie.md lists the differences.
"""

from evalwright.model.format import ALLOW_OUTSIDE, Format, Judging, Option, entry

__all__ = ["FORMAT"]

_SURFACE = "evalwright.formats.pixie.surface."
_SCORERS = {
    name: f"evalwright.formats.pixie.scorers:{name}"
    for name in ("ExactMatch", "JSONDiff", "Levenshtein", "ListContains", "NumericDiff", "ValidJSON")
}
"""The scorers of `autoevals` that need no model, for files that name them if it is not installed."""
_PRE_MADE = (
    "AnswerCorrectness", "AnswerRelevancy", "AutoevalsAdapter", "Battle", "ClosedQA", "ContextRelevancy",
    "EmbeddingSimilarity", "ExactMatch", "Factuality", "Faithfulness", "Humor", "JSONDiff", "LevenshteinMatch",
    "ListContains", "Moderation", "NumericDiff", "Possible", "Security", "Sql", "Summary", "Translation", "ValidJSON",
)  # fmt: skip
_OF_EVALS = {
    name: f"{_SURFACE}evals:{name}"
    for name in (
        *_PRE_MADE,
        "DatasetEntryResult", "DatasetScorecard", "EvalAssertionError", "Evaluation", "Evaluator", "MemoryTraceHandler",
        "ObservationNode", "ScoreThreshold", "as_evaluable", "assert_dataset_pass", "assert_pass", "capture_traces",
        "create_llm_evaluator", "evaluate", "generate_dataset_scorecard_html", "last_llm_call", "root",
        "run_and_evaluate", "save_dataset_scorecard",
    )
}  # fmt: skip
_INSTRUMENTATION = _SURFACE + "instrumentation"
_INSTRUMENTATION_PARTS = ("handler", "handlers", "llm_tracing", "models", "observation", "spans", "wrap")
"""Modules of releases 0.4 to 0.6, each with a part of what the package itself has."""

_MODULES_OF_0_4 = {
    "criteria": ("ScoreThreshold",),
    "eval_utils": ("EvalAssertionError", "assert_dataset_pass", "assert_pass", "run_and_evaluate"),
    "evaluation": ("Evaluation", "Evaluator", "evaluate"),
    "llm_evaluator": ("create_llm_evaluator",),
    "scorecard": (
        "DatasetEntryResult", "DatasetScorecard", "generate_dataset_scorecard_html", "save_dataset_scorecard",
    ),
    "scorers": _PRE_MADE,
    "trace_capture": ("MemoryTraceHandler", "capture_traces"),
    "trace_helpers": ("as_evaluable", "last_llm_call", "root"),
}  # fmt: skip
_SHIMS_OF_0_4 = {
    "pixie.evals": _OF_EVALS,
    **{f"pixie.evals.{module}": {name: _OF_EVALS[name] for name in names} for module, names in _MODULES_OF_0_4.items()},
    "pixie.evals.rate_limiter": {
        "RateLimitConfig": _SURFACE + "config:RateLimitConfig",
        **{
            name: f"{_SURFACE}rates:{name}"
            for name in (
                "EvalRateLimiter",
                "RateLimiter",
                "configure_rate_limits",
                "configure_rate_limits_from_config",
                "get_rate_limiter",
            )
        },
    },
}
"""What programs import from the modules below `pixie.evals`, which later releases no longer have."""

FORMAT = Format(
    name="pixie",
    title="pixie",
    summary="Datasets whose entries drive an instrumented application.",
    docs="docs/pixie.md",
    suffixes=(".json",),
    keys=(frozenset({"runnable", "entries"}), frozenset({"runnable", "items"})),
    load="evalwright.formats.pixie.suite:load",
    schemas={"pixie": ("evalwright.formats.pixie.schema:dataset_schema", "pixie: a dataset")},
    options=(
        Option(("--trust-pickled-types",), "flag", help="Restore objects of the project's own classes."),
        ALLOW_OUTSIDE,
    ),
    reads_folders=True,
    judging=Judging(on_errored_trace="evaluate"),
    targets={"pixie_app": "evalwright.formats.pixie.target:PixieApp"},
    evaluators={
        "AnswerCorrectness": entry(
            "evalwright.formats.pixie.premade:AnswerCorrectness",
            "Score: how much of the expected statements the output makes, and their similarity.",
            example={"model": "gpt-4o-mini"},
        ),
        "AnswerRelevancy": entry(
            "evalwright.formats.pixie.premade:AnswerRelevancy",
            "Score: similarity of the input and of questions that the output would answer.",
            example={"model": "gpt-4o-mini"},
        ),
        "Battle": entry(
            "evalwright.formats.pixie.premade:Battle",
            "A judge finds that the output follows the input better than the expectation does.",
            see={"pairwise_judge": "both orders"},
            example={"model": "gpt-4o-mini"},
        ),
        "ClosedQA": entry(
            "evalwright.formats.pixie.premade:ClosedQA",
            "A judge finds that the output answers the input by `metadata.criteria`.",
            example={"model": "gpt-4o-mini"},
        ),
        "ContextRelevancy": entry(
            "evalwright.formats.pixie.premade:ContextRelevancy",
            "Score: the share of `metadata.context` that is needed to answer the input.",
            example={"model": "gpt-4o-mini"},
        ),
        "EmbeddingSimilarity": entry(
            "evalwright.formats.pixie.premade:EmbeddingSimilarity",
            "Score: similarity of the embeddings of output and expectation.",
            see={"semantic_similarity": "a reference and threshold of the configuration"},
            example={"prefix": "Answer: "},
        ),
        "ExactMatch": entry(
            "evalwright.formats.pixie.premade:ExactMatch",
            "The output equals the expectation as text; containers are compared as JSON.",
            see={"exact_match": "Python equality, `expected` in the configuration"},
            example={"field": "output.final_answer"},
        ),
        "Factuality": entry(
            "evalwright.formats.pixie.premade:Factuality",
            "A judge finds that the output states the same facts as the expectation.",
            example={"model": "gpt-4o-mini"},
        ),
        "Faithfulness": entry(
            "evalwright.formats.pixie.premade:Faithfulness",
            "Score: the share of statements of the output that `metadata.context` supports.",
            see={"faithfulness_judge": "passes or fails as a whole"},
            example={"model": "gpt-4o-mini"},
        ),
        "Humor": entry(
            "evalwright.formats.pixie.premade:Humor",
            "A judge finds the output funny.",
            example={"model": "gpt-4o-mini"},
        ),
        "JSONDiff": entry(
            "evalwright.formats.pixie.premade:JSONDiff",
            "Score: similarity of two JSON documents, part by part.",
            see={"field_accuracy": "named fields with weights"},
            example={"field": "output.structured"},
        ),
        "LevenshteinMatch": entry(
            "evalwright.formats.pixie.premade:LevenshteinMatch",
            "Score: 1 minus the share of characters that must be edited.",
            example={"field": "output.final_answer"},
        ),
        "ListContains": entry(
            "evalwright.formats.pixie.premade:ListContains",
            "Score: the share of an expected list that is in the output.",
            example={"allow_extra_entities": True},
        ),
        "Moderation": entry(
            "evalwright.formats.pixie.premade:Moderation",
            "A moderation model does not flag the output.",
            example={"threshold": 0.5},
        ),
        "NumericDiff": entry(
            "evalwright.formats.pixie.premade:NumericDiff",
            "Score: how near two numbers are, relative to their size.",
            see={"field_check": "bounds on a number"},
            example={"field": "output.structured"},
        ),
        "Possible": entry(
            "evalwright.formats.pixie.premade:Possible",
            "A judge finds that the output offers a solution rather than calling it impossible.",
            example={"model": "gpt-4o-mini"},
        ),
        "Security": entry(
            "evalwright.formats.pixie.premade:Security",
            "A judge finds nothing malicious in the output.",
            example={"model": "gpt-4o-mini"},
        ),
        "Sql": entry(
            "evalwright.formats.pixie.premade:Sql",
            "A judge finds that the SQL in the output means what the expected SQL means.",
            example={"model": "gpt-4o-mini"},
        ),
        "Summary": entry(
            "evalwright.formats.pixie.premade:Summary",
            "A judge finds the output a better summary of the input than the expectation.",
            example={"model": "gpt-4o-mini"},
        ),
        "Translation": entry(
            "evalwright.formats.pixie.premade:Translation",
            "A judge finds the output as good a translation into `language` as the expectation.",
            example={"language": "French"},
        ),
        "ValidJSON": entry(
            "evalwright.formats.pixie.premade:ValidJSON",
            "The output is a JSON object or list, or satisfies `schema`.",
            see={"schema_match": "a field that is not text"},
            example={"schema": {"type": "object"}},
        ),
        "pixie": entry(
            "evalwright.formats.pixie.evaluator:PixieEvaluator",
            "Score from your own function or object, `file.py:name`.",
            see={"python_code": "isolated, in the suite file"},
            example={"reference": "checks.py:polite", "folders": ["."]},
        ),
        "wrap_check": entry(
            "evalwright.formats.pixie.evaluator:WrapCheck",
            "The entry had every input that the application asked for; skipped if it had.",
        ),
    },
    exports={"pixie_results": "evalwright.formats.pixie.result_file:PixieResults"},
    normalize="evalwright.formats.pixie.conversion:normalize",
    unread="evalwright.formats.pixie.conversion:unread",
    write="evalwright.formats.pixie.writer:write_pixie",
    totals="evalwright.formats.pixie.totals:PixieTotals",
    command="evalwright.cli.pixie:command",
    stands_for="pixie",
    shims={
        "pixie": "evalwright.pixie",
        "pixie.config": _SURFACE + "config",
        "pixie.dataset": _SURFACE + "dataset_store",
        "pixie.dataset.store": _SURFACE + "dataset_store",
        "pixie.eval": _OF_EVALS,
        "pixie.eval.evaluable": _SURFACE + "evaluable",
        "pixie.eval.evaluation": _SURFACE + "evaluation",
        "pixie.eval.rate_limiter": _SURFACE + "rates",
        **_SHIMS_OF_0_4,
        "pixie.dataset.models": _SURFACE + "dataset_store",
        "pixie.eval.llm_evaluator": {"create_llm_evaluator": _OF_EVALS["create_llm_evaluator"]},
        "pixie.eval.scorers": {name: _OF_EVALS[name] for name in _PRE_MADE},
        "pixie.eval.agent_evaluator": _SURFACE + "agent_evaluator",
        "pixie.evals.test_result": _SURFACE + "run_results",
        "pixie.harness.run_result": _SURFACE + "run_results",
        "pixie.harness": _SURFACE + "runnable",
        "pixie.harness.runnable": _SURFACE + "runnable",
        "pixie.instrumentation": _INSTRUMENTATION,
        **{f"pixie.instrumentation.{part}": _INSTRUMENTATION for part in _INSTRUMENTATION_PARTS},
        "pixie.storage": "evalwright.pixie",
        "pixie.storage.evaluable": "evalwright.pixie",
        "pixie.storage.store": _SURFACE + "observation_store",
        "pixie.storage.tree": {
            "ObservationNode": "evalwright.capture.tree:ObservationNode",
            "build_tree": _SURFACE + "observation_store:build_tree",
        },
        "autoevals": _SCORERS,
        "autoevals.json": {name: _SCORERS[name] for name in ("JSONDiff", "ValidJSON")},
        "autoevals.list": {name: _SCORERS[name] for name in ("ListContains",)},
        "autoevals.number": {name: _SCORERS[name] for name in ("NumericDiff",)},
        "autoevals.string": {name: _SCORERS[name] for name in ("Levenshtein",)},
        "autoevals.value": {name: _SCORERS[name] for name in ("ExactMatch",)},
    },
    replaces=("pixie",),  # if both were installed, their two registries of `wrap` would never meet
)
