"""Names with the same meaning here and in other tools, for the hint about an unknown name."""

from __future__ import annotations

__all__ = ["SYNONYMS"]

_LINES = (
    "run evaluate eval test execute start",
    "retry retry_failed rerun",
    "re-evaluate rescore re_score regrade grade",
    "inspect show traces",
    "view serve ui studio dashboard visualize",
    "compare diff",
    "systems targets providers agents models",
    "cases evalcases entries dataset tests test_cases examples samples records",
    "eval name suite",
    "input prompt question query vars",
    "expected expectation expected_output ideal",
    "evaluators graders scorers assertions assert checks",
    "adapter type kind provider",
    "endpoint url uri address",
    "body request_template json data payload",
    "command cmd args",
    "stdin_template stdin input",
    "user_template messages prompt",
    "system_prompt system instructions",
    "max_concurrency workers max_workers parallel concurrency",
    "trials num_runs repeats repeat epochs n",
    "all_required all required",
    "any_required any",
    "verdict label passed result",
    "path file filename",
    "python_function python function",
    "openai_chat openai chat",
    "local_files local file files",
    "llm_judge llm_rubric model_graded judge rubric",
    "contains_text contains icontains includes",
    "exact_match equals equal",
    "schema_match is_json json_schema",
    "jsonl json csv",
    "clear clean delete reset",
    "tempdir_snapshot copy folder tempdir",
    "assistant bot ai model",
    "user human",
    "input_per_million_tokens input_per_1k input_per_1m input",
    "output_per_million_tokens output_per_1k output_per_1m output",
    "final_answer answer output text content response",
)

SYNONYMS = tuple(line.split() for line in _LINES)
"""Each group in the order of preference: the first name of it that is known is meant."""
