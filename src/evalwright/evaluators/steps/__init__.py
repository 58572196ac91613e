"""Checks of the steps behind an answer."""

from evalwright.model.format import EvaluatorEntry, entry

__all__ = ["EVALUATORS"]

EVALUATORS: dict[str, EvaluatorEntry] = {
    "bad_tool_failure_recovery": entry(
        "evalwright.evaluators.steps.checks:BadToolFailureRecovery",
        "After each failed tool call the system says or reasons something.",
        format="NorthStar",
        see={"failure_origin": "names the first failed step"},
    ),
    "failure_origin": entry(
        "evalwright.evaluators.steps.checks:FailureOrigin",
        "Nothing failed (then it is skipped); otherwise names the first step that did.",
        format="NorthStar",
        see={"bad_tool_failure_recovery": "each failed tool call"},
        example={"strict": True},
    ),
    "invalid_state_transition": entry(
        "evalwright.evaluators.steps.checks:InvalidStateTransition",
        "Each observed change of state is allowed; staying in a state must be listed, too.",
        format="NorthStar",
    ),
    "retrieval_precision_recall": entry(
        "evalwright.evaluators.steps.checks:RetrievalPrecisionRecall",
        "Retrieved documents reach the precision and recall that the case asks for.",
        format="NorthStar",
        example={"strict": True},
    ),
    "stale_context_usage": entry(
        "evalwright.evaluators.steps.checks:StaleContextUsage",
        "No event is marked as using stale context.",
        format="NorthStar",
    ),
    "step_cost_attribution": entry(
        "evalwright.evaluators.steps.checks:StepCostAttribution",
        "No step costs more US dollars than the case allows.",
        format="NorthStar",
        see={"cost_under": "all steps together"},
    ),
    "unnecessary_tool_loop": entry(
        "evalwright.evaluators.steps.checks:UnnecessaryToolLoop",
        "No tool is called with the same arguments more often than allowed.",
        format="NorthStar",
        see={"max_tool_calls": "all calls together"},
        example={"strict": True},
    ),
}
