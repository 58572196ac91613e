"""Checks of the text of an answer, and of its thinking."""

from evalwright.model.format import EvaluatorEntry, entry

__all__ = ["EVALUATORS"]

EVALUATORS: dict[str, EvaluatorEntry] = {
    "answered": entry(
        "evalwright.evaluators.text.contains:Answered",
        "There is a final answer. Skipped if the recording cannot tell.",
    ),
    "ascii_printable_only": entry(
        "evalwright.evaluators.text.ground_truth:AsciiPrintableOnly",
        "Every character except CR and LF is between U+0020 and U+007E.",
        format="Letta Evals",
    ),
    "contains_text": entry(
        "evalwright.evaluators.text.contains:ContainsText",
        "The text contains all of, one of and none of these strings.",
        see={"contains": "phrases only, never case-sensitive", "text_check": "one question, negatable"},
        example={"all_of": ["refunded"], "none_of": ["sorry"]},
    ),
    "ground_truth_contained": entry(
        "evalwright.evaluators.text.ground_truth:Contained",
        "The answer contains the ground truth, ignoring case.",
        format="Letta Evals",
        see={"ground_truth_match": "ignores white space too"},
    ),
    "ground_truth_equals": entry(
        "evalwright.evaluators.text.ground_truth:Equals",
        "The answer equals the ground truth, ignoring white space around both.",
        format="Letta Evals",
        see={"exact_match": "any field, no stripping"},
    ),
    "ground_truth_matches": entry(
        "evalwright.evaluators.text.ground_truth:Matches",
        "The ground truth, a regular expression, is found in the answer.",
        format="Letta Evals",
        see={"regex": "a pattern for all cases"},
    ),
    "regex": entry(
        "evalwright.evaluators.text.regex:Regex",
        "The pattern is found in the final response, or in a value of the case or run.",
        format="NorthStar",
        see={"text_check": "the final answer only, negatable", "field_check": "`matches` on any field of the trace"},
        example={"pattern": r"order \d{4}", "flags": ["ignorecase"]},
    ),
    "text_check": entry(
        "evalwright.evaluators.text.comparison:TextCheck",
        "The answer contains, starts with, ends with, equals or matches `value`, or is JSON.",
        format="AgentV",
        see={"contains_text": "several strings at once", "regex": "any value of the conversation"},
        example={"check": "starts_with", "value": "Dear"},
    ),
    "thinking_does_not_leak": entry(
        "evalwright.evaluators.text.leaks:ThinkingDoesNotLeak",
        "The thinking matches no forbidden pattern, and a judge finds no leak in it.",
        example={"forbidden_patterns": ["password", "re:sk-[a-z0-9]{8,}"]},
    ),
    "thinking_present": entry(
        "evalwright.evaluators.text.contains:ThinkingPresent",
        "The answer comes with thinking.",
    ),
}
