"""Judges: evaluators that call a model, and what they share."""

from evalwright.model.format import EvaluatorEntry, entry

__all__ = ["EVALUATORS"]

EVALUATORS: dict[str, EvaluatorEntry] = {
    "faithfulness_judge": entry(
        "evalwright.evaluators.judges.conversation:FaithfulnessJudge",
        "A judge finds every claim of the final response in the context or tool outputs.",
        format="NorthStar",
        see={"Faithfulness": "the share of statements supported by `metadata.context`"},
        example={"model": "gpt-4o-mini"},
    ),
    "hallucinated_tool_result_judge": entry(
        "evalwright.evaluators.judges.conversation:HallucinatedToolResultJudge",
        "A judge finds no claimed tool result that no tool returned.",
        format="NorthStar",
        see={"faithfulness_judge": "all claims"},
        example={"model": "gpt-4o-mini"},
    ),
    "llm_judge": entry(
        "evalwright.evaluators.judges.llm_judge:LlmJudge",
        "A judge finds that assertions hold, that a rubric's score is reached, or both.",
        see={"rubric_judge": "the conversation's goal", "rubric_template": "you write the whole prompt"},
        example={"model": "gpt-4o-mini", "nl_assertions": ["The answer names the order."]},
    ),
    "pairwise_judge": entry(
        "evalwright.evaluators.judges.pairwise:PairwiseJudge",
        "A judge finds the answer as good as a reference, or better; both orders are tried.",
        see={"Battle": "one order, the reference is the ground truth"},
        example={"model": "gpt-4o-mini", "criteria": "Which answer helps more?", "reference_text": "Refunded."},
    ),
    "planning_action_mismatch_judge": entry(
        "evalwright.evaluators.judges.conversation:PlanningActionMismatchJudge",
        "A judge finds that the system did what it had reasoned or announced.",
        format="NorthStar",
        example={"model": "gpt-4o-mini"},
    ),
    "rubric_judge": entry(
        "evalwright.evaluators.judges.conversation:RubricJudge",
        "A judge finds that the conversation reaches its goal, by a rubric.",
        format="NorthStar",
        see={"llm_judge": "assertions, several judges"},
        example={"model": "gpt-4o-mini", "rubric": "The customer's question is answered."},
    ),
    "rubric_template": entry(
        "evalwright.evaluators.judges.rubric_template:RubricTemplate",
        "Score: a judge's number from 0 to 1, for a prompt that you write.",
        format="Letta Evals",
        see={"llm_judge": "evalwright writes the prompt"},
        example={"prompt": "Is this answer right?\n{submission}\nExpected: {ground_truth}"},
    ),
}
