"""Assertions that a model judges by a rubric, by an expert's answer or by criteria."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from evalwright.errors import EvaluatorError, shorten
from evalwright.evaluators.judges.replies import BadReply
from evalwright.files.key_paths import as_written
from evalwright.formats.promptfoo.checks.replies import (
    graded_reply,
    one_object,
    passes_and_score,
    score_in,
    the_object,
)
from evalwright.formats.promptfoo.checks.rubrics import (
    Messages,
    judge_of,
    messages_for,
    parsed_output,
    required_texts,
    user_message,
)
from evalwright.formats.promptfoo.checks.traced_steps import traced_steps
from evalwright.formats.promptfoo.evaluator import AssertionInput
from evalwright.formats.promptfoo.graders import Grader
from evalwright.formats.promptfoo.shapes import FACTUALITY
from evalwright.formats.promptfoo.values import compact_json, template_text
from evalwright.model.result import Evaluation

__all__ = [
    "factuality", "g_eval", "goal_success", "llm_rubric", "model_graded_closedqa",
]  # fmt: skip

_KEPT = 2000
"""Characters of a reply that the result keeps."""
_CATEGORY = re.compile(r"\A\s*([A-E])\)|\(([A-E])\)", re.IGNORECASE)
_WRITTEN_CATEGORY = re.compile(r"\(?([A-E])(?:[).:].*)?", re.IGNORECASE | re.DOTALL)
"""A `category` in JSON: a letter, alone or marked as one. The first letter of a word such as Disagree is none."""
_LAST_LETTER = re.compile(r"\b([YN])\Z")
_FACTUAL = dict(zip("ABCDE", FACTUALITY, strict=True))
_DEFAULT_FACTUAL = {**dict.fromkeys(FACTUALITY, 1), "disagree": 0}
_RUBRIC = (
    "You grade the output of a system against a rubric. Reply with one JSON object and nothing else:"
    ' {"reason": text, "pass": true or false, "score": number from 0 to 1}.'
)
_GOAL = (
    "You say whether an agent has reached a goal, by the steps that it took and its final output. What the output only"
    ' claims is not done. Reply with one JSON object and nothing else: {"reason": text, "pass": true or false, "score":'
    " number from 0 to 1}."
)
_MOST_STEPS = 20_000
"""Characters of a list of steps that a judge is shown."""
_FACTUALITY = (
    "Compare the factual content of a submitted answer with an expert's answer, ignoring style. Reply with one JSON"
    ' object: {"category": letter, "reason": text}. A: the submission is a subset of the expert answer and consistent'
    " with it. B: a superset and consistent. C: all the same details. D: they disagree. E: they differ, not in facts."
)
_CLOSED = "Say whether a submission meets a criterion. Reason first; then the last line is Y if it does, else N."


async def llm_rubric(question: AssertionInput) -> Evaluation:
    """A judge says that the output meets the rubric."""
    value = question.value
    if isinstance(value, (bool, int, float)):
        shown = as_written(value)
        raise EvaluatorError(f"{question.kind} needs a value: expected text or a mapping, found {shown}", "bad_value")
    rubric = value if isinstance(value, str) else "" if value is None else compact_json(value)
    names = {"rubric": rubric, "output": parsed_output(question.text)}
    messages = await messages_for(question, names) or [
        {"role": "system", "content": _RUBRIC},
        {"role": "user", "content": f"<Output>\n{question.text}\n</Output>\n<Rubric>\n{rubric}\n</Rubric>"},
    ]
    return await _passed_by_judge(question, names, messages)


async def goal_success(question: AssertionInput) -> Evaluation:
    """A judge says that the traced steps and the output reach the goal."""
    value = question.value
    goal = value.get("goal") if isinstance(value, Mapping) else value
    if not isinstance(goal, str) or not goal.strip():
        raise EvaluatorError(f"{question.kind}: expected the goal as text, found {as_written(value)}", "bad_value")
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(traced_steps(question), 1))
    names = {"goal": goal.strip(), "trajectory": steps, "output": parsed_output(question.text)}
    messages = await messages_for(question, names) or [
        {"role": "system", "content": _GOAL},
        {
            "role": "user",
            "content": f"<Goal>\n{names['goal']}\n</Goal>\n<Steps>\n{shorten(steps, _MOST_STEPS)}\n</Steps>\n"
            f"<Output>\n{question.text}\n</Output>",
        },
    ]
    evaluation = await _passed_by_judge(question, names, messages)
    if question.negated:  # as in promptfoo, not the rest of the judge's score
        evaluation.score = float(evaluation.passed)
    return evaluation


async def _passed_by_judge(question: AssertionInput, names: Mapping[str, Any], messages: Messages) -> Evaluation:
    """The result of a judge that replies with `pass`, `score` and `reason`."""
    grader = judge_of(question, names)

    def read(reply: str) -> tuple[dict[str, Any], bool, float]:
        verdict = the_object(reply, ("pass", "score"))
        return verdict, *passes_and_score(verdict)

    (verdict, passed, score), text = await graded_reply(grader, messages, read)
    reason = verdict.get("reason")
    reached = passed and (question.threshold is None or score >= question.threshold)
    return Evaluation(
        reached != question.negated,
        min(1.0, max(0.0, 1 - score)) if question.negated else score,
        template_text(reason) if reason is not None else "",
        {**grader.detail, "judge_reply": shorten(text, _KEPT)},
        cost_usd=grader.cost_usd,
    )


async def factuality(question: AssertionInput) -> Evaluation:
    """A judge compares the facts of the output with those of the value."""
    [ideal] = required_texts(question)
    names = {
        "input": question.trace.extra["promptfoo"]["prompt"], "ideal": ideal,
        "completion": parsed_output(question.text),
    }  # fmt: skip
    messages = await messages_for(question, names) or [
        {"role": "system", "content": _FACTUALITY},
        {
            "role": "user",
            "content": f"<Question>\n{names['input']}\n</Question>\n"
            f"<Expert>\n{ideal}\n</Expert>\n<Submission>\n{question.text}\n</Submission>",
        },
    ]
    grader = judge_of(question, names)
    (category, letter), _ = await graded_reply(grader, messages, _category)
    scores = {**_DEFAULT_FACTUAL, **question.options.get("factuality", {})}
    score = float(scores[_FACTUAL[category]])
    reason = str(letter.get("reason") or f"the judge's category is {category}")
    return Evaluation(score > 0, score, reason, {**grader.detail, "category": category}, cost_usd=grader.cost_usd)


def _category(text: str) -> tuple[str, dict[str, Any]]:
    reply = one_object(text, ("category",))
    letters = {(one or other).upper() for one, other in _CATEGORY.findall(text)}
    if reply:
        written = _WRITTEN_CATEGORY.fullmatch(str(reply.get("category", "")).strip())
        letters = {written[1].upper()} if written else set()
    category = letters.pop() if len(letters) == 1 else ""
    if category not in _FACTUAL:
        raise BadReply("no category from A to E")
    return category, reply or {}


async def model_graded_closedqa(question: AssertionInput) -> Evaluation:
    """A judge's reply ends with Y. As in promptfoo, `not-` does not invert that."""
    [criterion] = required_texts(question)
    names = {
        "input": question.trace.extra["promptfoo"]["prompt"], "criteria": criterion,
        "completion": parsed_output(question.text),
    }  # fmt: skip
    messages = await messages_for(question, names) or [
        {"role": "system", "content": _CLOSED},
        {
            "role": "user",
            "content": f"<Task>\n{names['input']}\n</Task>\n<Submission>\n{question.text}\n</Submission>\n"
            f"<Criterion>\n{criterion}\n</Criterion>",
        },
    ]
    grader = judge_of(question, names)
    letter, text = await graded_reply(grader, messages, _last_letter)
    message = "" if letter == "Y" else f"the judge says: {shorten(text.strip())}"
    return Evaluation(letter == "Y", float(letter == "Y"), message, grader.detail, cost_usd=grader.cost_usd)


def _last_letter(text: str) -> str:
    last = _LAST_LETTER.search(text.strip())
    if last is None:
        raise BadReply("its last line is neither Y nor N")
    return last[1]


async def g_eval(question: AssertionInput) -> Evaluation:
    """A judge derives steps from the criteria, then scores the output by them from 0 to 10."""
    criteria = required_texts(question, several=True)
    grader, scores, reasons = judge_of(question), [], []
    for criterion in criteria:
        score, reason = await _g_eval(question, grader, criterion)
        scores.append(score)
        reasons.append(reason)
    score = sum(scores) / len(scores)
    limit = 0.7 if question.threshold is None else question.threshold
    passed = (score >= limit) != question.negated
    score = 1 - score if question.negated else score
    return Evaluation(passed, score, "\n\n".join(reasons), grader.detail, cost_usd=grader.cost_usd)


async def _g_eval(question: AssertionInput, grader: Grader, criteria: str) -> tuple[float, str]:
    """The score from 0 to 1, and the reason. A `rubricPrompt` has the two prompts under `steps` and `evaluate`."""
    source = question.trace.extra["promptfoo"]["prompt"]
    steps_wanted = (
        "Make three to five concise steps for evaluating a reply by these criteria. Reply with one JSON object:"
        f' {{"steps": [text]}}.\n<Criteria>\n{criteria}\n</Criteria>'
    )
    own = await messages_for(question, {"criteria": criteria}, "steps")
    steps, _ = await graded_reply(grader, own or user_message(steps_wanted), _steps)
    lines = "\n".join(steps)
    score_wanted = (
        'Score a reply from 0 to 10 by the steps. Reply with one JSON object: {"score": number, "reason": text}.\n'
        f"<Criteria>\n{criteria}\n</Criteria>\n<Steps>\n{lines}\n</Steps>\n"
        f"<Source>\n{source}\n</Source>\n<Reply>\n{question.text}\n</Reply>"
    )
    names = {
        "criteria": criteria, "steps": "\n- ".join(steps), "maxScore": "10", "input": parsed_output(source),
        "output": parsed_output(question.text),
    }  # fmt: skip
    own = await messages_for(question, names, "evaluate")
    (score, reason), _ = await graded_reply(grader, own or user_message(score_wanted), _score_of_ten)
    return score / 10, reason


def _steps(text: str) -> list[str]:
    steps = the_object(text, ("steps",)).get("steps")
    if not isinstance(steps, list) or not steps:
        raise BadReply("no list of steps")
    if not all(isinstance(step, str) and step.strip() for step in steps):
        raise BadReply("expected a list of texts as 'steps'")
    return steps


def _score_of_ten(text: str) -> tuple[float, str]:
    reply = the_object(text, ("score",))
    score = score_in(reply.get("score"))
    if not 0 <= score <= 10:
        raise BadReply("no score from 0 to 10")
    reason = reply.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        raise BadReply("no reason for the score")
    return score, reason
