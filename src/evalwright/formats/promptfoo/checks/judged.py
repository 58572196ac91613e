"""Assertions that are judged by a model or an embedding."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from evalwright.errors import EvaluatorError
from evalwright.evaluators.judges.replies import BadReply
from evalwright.evaluators.similarity.cosine import cosine
from evalwright.evaluators.wording import shorten
from evalwright.formats.promptfoo.checks.replies import (
    graded_reply,
    one_object,
    passes_and_score,
    score_in,
    the_object,
)
from evalwright.formats.promptfoo.checks.rubrics import own_messages
from evalwright.formats.promptfoo.checks.trajectory import traced_steps
from evalwright.formats.promptfoo.evaluator import Asked, context_of
from evalwright.formats.promptfoo.faults import ScriptError
from evalwright.formats.promptfoo.graders import Grader, grader_of
from evalwright.formats.promptfoo.prompts import TURNS
from evalwright.formats.promptfoo.transforms import transformed
from evalwright.formats.promptfoo.values import compact_json, template_text
from evalwright.model.result import Evaluation
from evalwright.session import session

__all__ = [
    "answer_relevance", "context_faithfulness", "context_recall", "context_relevance", "conversation_relevance",
    "factuality", "g_eval", "goal_success", "llm_rubric", "model_graded_closedqa", "model_graded_factuality", "similar",
]  # fmt: skip

_EPSILON = 2.220446049250313e-16
"""JavaScript's: a similarity may be below its threshold by this much."""
_KEPT = 2000
"""Characters of a reply that the result keeps."""
_CATEGORY = re.compile(r"^\s*\(?([A-E])\)", re.IGNORECASE)
_NUMBERED = re.compile(r"^\s*(?:\d+[.)]|[-*])\s*")
_ONLY_NUMBER = re.compile(r"\d+[.)]")
_LAST_LETTER = re.compile(r"\b([YN])\Z")
_FACTUAL = {"A": "subset", "B": "superset", "C": "agree", "D": "disagree", "E": "differButFactual"}
_DEFAULT_FACTUAL = {"subset": 1, "superset": 1, "agree": 1, "disagree": 0, "differButFactual": 1}
_RUBRIC = (
    "You grade the output of a system against a rubric. Reply with one JSON object and nothing else:"
    ' {"reason": text, "pass": true or false, "score": number from 0 to 1}.'
)
_GOAL = (
    "You say whether an agent has reached a goal, by the steps that it took and its final output. What the output only"
    ' claims is not done. Reply with one JSON object and nothing else: {"reason": text, "pass": true or false, "score":'
    " number from 0 to 1}."
)
_RELEVANT = (
    "You say whether the last answer of an assistant fits the conversation: it responds to what the user last wrote, as"
    ' that is meant after the turns before it. Reply with one JSON object and nothing else: {"verdict": "yes" or "no",'
    ' "reason": text}.'
)
_WINDOW = 5
"""Turns that a judge is shown."""
_MOST_STEPS = 20_000
"""Characters of a list of steps that a judge is shown."""
_FACTUALITY = (
    "Compare the factual content of a submitted answer with an expert's answer, ignoring style. Reply with one JSON"
    ' object: {"category": letter, "reason": text}. A: the submission is a subset of the expert answer and consistent'
    " with it. B: a superset and consistent. C: all the same details. D: they disagree. E: they differ, not in facts."
)
_CLOSED = "Say whether a submission meets a criterion. Reason first; then the last line is Y if it does, else N."


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


class _Measure(NamedTuple):
    """How near two embeddings are: the more, the nearer."""

    name: str
    of: Callable[[Sequence[float], Sequence[float]], float]
    is_distance: bool = False


_MEASURES = {
    "similar": _Measure("similarity", cosine),
    "similar:cosine": _Measure("similarity", cosine),
    "similar:dot": _Measure("dot product", _dot),
    "similar:euclidean": _Measure("distance", lambda one, other: -math.dist(one, other), is_distance=True),
}


async def llm_rubric(question: Asked) -> Evaluation:
    """A judge says that the output meets the rubric."""
    value = question.value
    rubric = value if isinstance(value, str) else "" if value is None else compact_json(value)
    names = {"rubric": rubric, "output": question.text}
    messages = _custom(question, names) or [
        {"role": "system", "content": _RUBRIC},
        {"role": "user", "content": f"<Output>\n{question.text}\n</Output>\n<Rubric>\n{rubric}\n</Rubric>"},
    ]
    return await _passed(question, names, messages)


async def goal_success(question: Asked) -> Evaluation:
    """A judge says that the traced steps and the output reach the goal."""
    value = question.value
    goal = value.get("goal") if isinstance(value, Mapping) else value
    if not isinstance(goal, str) or not goal.strip():
        raise EvaluatorError(f"{question.kind}: expected the goal as text, found {value!r:.60}", "bad_value")
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(traced_steps(question), 1))
    names = {"goal": goal.strip(), "trajectory": steps, "output": question.text}
    messages = _custom(question, names) or [
        {"role": "system", "content": _GOAL},
        {
            "role": "user",
            "content": f"<Goal>\n{names['goal']}\n</Goal>\n<Steps>\n{shorten(steps, _MOST_STEPS)}\n</Steps>\n"
            f"<Output>\n{question.text}\n</Output>",
        },
    ]
    return await _passed(question, names, messages)


async def _passed(question: Asked, names: Mapping[str, Any], messages: list[dict[str, Any]]) -> Evaluation:
    """The result of a judge that replies with `pass`, `score` and `reason`."""
    grader = _grader(question, names)

    def read(reply: str) -> tuple[dict[str, Any], bool, float]:
        found = the_object(reply, ("pass", "score"))
        return found, *passes_and_score(found)

    (said, passed, score), text = await graded_reply(grader, messages, read)
    reason = said.get("reason")
    reached = passed and (question.threshold is None or score >= question.threshold)
    return Evaluation(
        reached != question.negated,
        1 - score if question.negated else score,
        template_text(reason) if reason is not None else "",
        {**grader.detail, "judge_reply": shorten(text, _KEPT)},
        cost_usd=grader.cost_usd,
    )


async def factuality(question: Asked) -> Evaluation:
    """A judge compares the facts of the output with those of the value."""
    names = {"input": question.trace.extra["promptfoo"]["prompt"], "ideal": question.value, "completion": question.text}
    messages = _custom(question, names) or [
        {"role": "system", "content": _FACTUALITY},
        {
            "role": "user",
            "content": f"<Question>\n{names['input']}\n</Question>\n"
            f"<Expert>\n{template_text(question.value)}\n</Expert>\n<Submission>\n{question.text}\n</Submission>",
        },
    ]
    grader = _grader(question, names)
    (category, found), _ = await graded_reply(grader, messages, _category)
    scores = {**_DEFAULT_FACTUAL, **question.options.get("factuality", {})}
    score = float(scores[_FACTUAL[category]])
    reason = str(found.get("reason") or f"the judge's category is {category}")
    return Evaluation(score > 0, score, reason, {**grader.detail, "category": category}, cost_usd=grader.cost_usd)


def _category(text: str) -> tuple[str, dict[str, Any]]:
    found, plain = one_object(text, ("category",)), _CATEGORY.match(text)
    category = str(found.get("category", "")).strip("() ").upper()[:1] if found else plain[1].upper() if plain else ""
    if category not in _FACTUAL:
        raise BadReply("no category from A to E")
    return category, found or {}


async def model_graded_factuality(question: Asked) -> Evaluation:
    """`factuality` by its older name."""
    return await factuality(question)


async def model_graded_closedqa(question: Asked) -> Evaluation:
    """A judge's reply ends with Y. As in promptfoo, `not-` does not invert that."""
    names = {
        "input": question.trace.extra["promptfoo"]["prompt"], "criteria": question.value, "completion": question.text,
    }  # fmt: skip
    messages = _custom(question, names) or [
        {"role": "system", "content": _CLOSED},
        {
            "role": "user",
            "content": f"<Task>\n{names['input']}\n</Task>\n<Submission>\n{question.text}\n</Submission>\n"
            f"<Criterion>\n{template_text(question.value)}\n</Criterion>",
        },
    ]
    grader = _grader(question, names)
    letter, text = await graded_reply(grader, messages, _last_letter)
    said = "" if letter == "Y" else f"the judge says: {shorten(text.strip())}"
    return Evaluation(letter == "Y", float(letter == "Y"), said, grader.detail, cost_usd=grader.cost_usd)


def _last_letter(text: str) -> str:
    last = _LAST_LETTER.search(text.strip())
    if last is None:
        raise BadReply("its last line is neither Y nor N")
    return last[1]


async def g_eval(question: Asked) -> Evaluation:
    """A judge derives steps from the criteria, then scores the output by them from 0 to 10."""
    criteria = question.value if isinstance(question.value, list) else [question.value]
    grader, scores, reasons = _grader(question), [], []
    for one in criteria:
        score, reason = await _g_eval(question, grader, template_text(one))
        scores.append(score)
        reasons.append(reason)
    score = sum(scores) / len(scores)
    limit = 0.7 if question.threshold is None else question.threshold
    passed = (score >= limit) != question.negated
    score = 1 - score if question.negated else score
    return Evaluation(passed, score, "\n\n".join(filter(None, reasons)), grader.detail, cost_usd=grader.cost_usd)


async def _g_eval(question: Asked, grader: Grader, criteria: str) -> tuple[float, str]:
    steps_wanted = (
        "Make three to five concise steps for evaluating a reply by these criteria. Reply with one JSON object:"
        f' {{"steps": [text]}}.\n<Criteria>\n{criteria}\n</Criteria>'
    )
    steps, _ = await graded_reply(grader, _user(steps_wanted), _steps)
    listed = "\n".join(map(template_text, steps))
    score_wanted = (
        'Score a reply from 0 to 10 by the steps. Reply with one JSON object: {"score": number, "reason": text}.\n'
        f"<Criteria>\n{criteria}\n</Criteria>\n<Steps>\n{listed}\n</Steps>\n"
        f"<Source>\n{question.trace.extra['promptfoo']['prompt']}\n</Source>\n<Reply>\n{question.text}\n</Reply>"
    )
    (score, reason), _ = await graded_reply(grader, _user(score_wanted), _score_of_ten)
    return score / 10, reason


def _steps(text: str) -> list[Any]:
    steps = the_object(text, ("steps",)).get("steps")
    if not isinstance(steps, list) or not steps:
        raise BadReply("no list of steps")
    return steps


def _score_of_ten(text: str) -> tuple[float, str]:
    said = the_object(text, ("score",))
    score = score_in(said.get("score"))
    if not 0 <= score <= 10:
        raise BadReply("no score from 0 to 10")
    return score, str(said.get("reason") or "")


async def conversation_relevance(question: Asked) -> Evaluation:
    """The share of turns whose answer fits the conversation up to there, of which a judge sees the last `windowSize`
    turns (5). The turns are those in the variable `_conversation`; without it, the prompt and the output are the only
    one."""
    turns = question.names.get(TURNS)
    if not isinstance(turns, list) or not turns:
        turns = [{"input": question.trace.extra["promptfoo"]["prompt"], "output": question.text}]
    if not all(isinstance(one, Mapping) for one in turns):
        raise EvaluatorError(
            f"{question.kind}: expected {TURNS} to be a list of turns with input and output", "bad_value"
        )
    size = question.assertion.get("config", {}).get("windowSize") or _WINDOW
    if not isinstance(size, int) or size < 1:
        raise EvaluatorError(f"{question.kind}: expected windowSize to be a whole number from 1", "bad_value")
    grader, missed = _grader(question), []
    for number in range(1, len(turns) + 1):
        window = turns[max(0, number - size) : number]
        shown = "\n".join(f"User: {_said(one, 'input')}\nAssistant: {_said(one, 'output')}" for one in window)
        messages = _custom(question, {"messages": window}) or [
            {"role": "system", "content": _RELEVANT},
            {"role": "user", "content": f"<Conversation>\n{shown}\n</Conversation>"},
        ]
        (fits, reason), _ = await graded_reply(grader, messages, _fitting_turn)
        if not fits:
            missed.append(f"turn {number}: {reason}" if reason else f"turn {number}")
    found = _share(question, (len(turns) - len(missed)) / len(turns), grader)
    found.reason = found.reason and "; ".join([found.reason, *missed])
    return found


def _said(turn: Mapping[str, Any], part: str) -> str:
    value = turn.get(part, "")
    return value if isinstance(value, str) else compact_json(value)


def _fitting_turn(text: str) -> tuple[bool, str]:
    said = the_object(text, ("verdict",))
    if (verdict := said.get("verdict")) not in ("yes", "no"):
        raise BadReply(f"expected yes or no as 'verdict', found {verdict!r}")
    return verdict == "yes", str(said.get("reason") or "")


async def similar(question: Asked) -> Evaluation:
    """The embeddings of output and value are near enough: their cosine or dot product is at least `threshold` (0.75),
    their distance at most; for a list, with any of its values."""
    values = question.value if isinstance(question.value, list) else [question.value]
    texts = [template_text(one) for one in values]
    if not any(texts):
        raise EvaluatorError(f"{question.kind} needs a value: expected text, or a list of texts", "bad_value")
    model = grader_of(question.assertion, question.options, question.folder, "embedding").model
    given = await session().models.embed(model, [question.text, *texts])
    own, *others = given.vectors
    limit = 0.75 if question.threshold is None else question.threshold
    measure = _MEASURES[question.kind]
    nearness = [measure.of(own, other) for other in others]  # a distance is negative here
    wanted = -limit if measure.is_distance else limit
    reached = [one for one in nearness if one >= wanted - _EPSILON]
    nearest = reached[0] if reached and not question.negated else max(nearness)
    passed = nearest <= wanted + _EPSILON if question.negated else bool(reached)
    score = 1 / (1 - nearest) if measure.is_distance else nearest
    said = "" if passed else f"the {measure.name} is {abs(nearest):.4g}, the threshold is {limit:g}"
    return Evaluation(
        passed, 1 - score if question.negated else score, said, {"embedder": model}, cost_usd=given.cost_usd
    )


async def context_recall(question: Asked) -> Evaluation:
    """The share of the value's sentences that the context supports, which without any is the prompt."""
    context = "\n\n".join(await _context(question, otherwise=question.trace.extra["promptfoo"]["prompt"]))
    names = {"context": context, "groundTruth": question.value}
    wanted = (
        "For each sentence of the answer say whether the context bears it out: repeat it on a line of its own,"
        " followed by [Attributed] or [Not Attributed].\n"
        f"<Context>\n{context}\n</Context>\n<Answer>\n{template_text(question.value)}\n</Answer>"
    )
    grader = _grader(question, names)
    lines, _ = await graded_reply(grader, _custom(question, names) or _user(wanted), _marked_lines)
    borne = sum("[not attributed]" not in line.lower() for line in lines)
    return _share(question, borne / len(lines), grader)


def _marked_lines(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if "attributed]" in line.lower()]
    if not lines:
        raise BadReply("no sentence is marked")
    return lines


async def context_relevance(question: Asked) -> Evaluation:
    """The share of the context's sentences, or of its parts if it is a list, that the variable `query` needs."""
    parts = await _context(question)
    names = {"context": "\n\n".join(parts), "query": _asked_in(question)}
    wanted = (
        "Copy from the context, unchanged and one a line, only the sentences that are needed to answer the question."
        " If there are none, reply Insufficient Information.\n"
        f"<Context>\n{names['context']}\n</Context>\n<Question>\n{names['query']}\n</Question>"
    )
    grader = _grader(question, names)
    all_of_it = _plain(names["context"])
    in_lines = len(parts) > 1 or len(_full_lines(names["context"])) > 1

    def read(reply: str) -> set[str]:
        if "insufficient information" in reply.lower():
            return set()
        copied = {*(_full_lines(reply) if in_lines else _sentences(reply))}
        if not any(_plain(_NUMBERED.sub("", one)) in all_of_it for one in copied):
            raise BadReply("no sentence of it is in the context")
        return copied

    needed, _ = await graded_reply(grader, _custom(question, names) or _user(wanted), read)
    total = len(parts) if len(parts) > 1 else len(_sentences(names["context"]))
    return _share(question, min(1.0, len(needed) / total), grader)


async def context_faithfulness(question: Asked) -> Evaluation:
    """The share of statements in the output that the context supports."""
    grader, context = _grader(question), "\n\n".join(await _context(question))
    wanted = (
        "Break the answer to the question into single statements, one a line, nothing else.\n"
        f"<Question>\n{_asked_in(question)}\n</Question>\n<Answer>\n{question.text}\n</Answer>"
    )
    statements, _ = await graded_reply(grader, _user(wanted), _statements)
    wanted = (
        "Say for each statement whether the context bears it out. End with one line: Final verdict for each statement"
        f" in order: Yes. or No. for each.\n<Context>\n{context}\n</Context>\n<Statements>\n"
        + "\n".join(statements)
        + "\n</Statements>"
    )
    said, _ = await graded_reply(grader, _user(wanted), partial(_final_verdicts, len(statements)))
    return _share(question, said.count("yes") / len(said), grader)


def _statements(text: str) -> list[str]:
    lines = _full_lines(text)
    if not lines:
        raise BadReply("no statements")
    return lines


def _final_verdicts(statements: int, text: str) -> list[str]:
    _, *marked = text.lower().split("final verdict for each statement in order:")
    said = re.findall(r"\b(yes|no)\b", marked[-1]) if len(marked) == 1 else []
    if len(said) != statements:
        raise BadReply(f"{len(said)} final verdicts on {statements} statements")
    return said


async def answer_relevance(question: Asked) -> Evaluation:
    """How similar the questions that the output answers are to the one that was asked."""
    names = {"answer": question.text}
    grader = _grader(question, names)
    model = grader_of(question.assertion, question.options, question.folder, "embedding").model
    wanted = f"Write the one question that this answer answers, nothing else.\n<Answer>\n{question.text}\n</Answer>"
    text = (await grader.ask(_custom(question, names) or _user(wanted))).strip()
    query = question.names.get("query")
    asked = query if isinstance(query, str) else question.trace.extra["promptfoo"]["prompt"]
    given = await session().models.embed(model, [asked, text])
    return _share(question, cosine(*given.vectors), grader)


def _share(question: Asked, score: float, grader: Grader) -> Evaluation:
    limit = 0.5 if question.threshold is None else question.threshold
    passed = (score >= limit - _EPSILON) != question.negated
    said = "" if passed else f"{question.kind} is {score:.4g}, the threshold is {limit:g}"
    return Evaluation(passed, 1 - score if question.negated else score, said, grader.detail, cost_usd=grader.cost_usd)


async def _context(question: Asked, otherwise: str = "") -> list[str]:
    """The parts of what the answer should rest on: what `contextTransform` finds in the provider's output, else the
    variable `context`. Raises EvaluatorError if there are none."""
    found: Any = question.names.get("context") or otherwise
    if code := question.assertion.get("contextTransform"):
        seen = question.trace.extra["promptfoo"]
        try:
            output = seen.get("provided", seen.get("output"))
            found = await transformed(code, output, context_of(question), question.folder)
        except ScriptError as error:
            raise EvaluatorError(f"contextTransform: {error}", "transform_error") from None
    parts = found if isinstance(found, list) else [found]
    if not parts or not all(isinstance(one, str) and one.strip() for one in parts):
        where = "what contextTransform returns" if code else "the variable 'context'"
        raise EvaluatorError(f"{question.kind} needs a text or a list of texts in {where}", "bad_value")
    return parts


def _asked_in(question: Asked) -> str:
    """The question that the system was asked. Raises EvaluatorError if no variable has it."""
    query = question.names.get("query")
    if not isinstance(query, str):
        raise EvaluatorError(f"{question.kind} needs a text in the variable 'query'", "bad_value")
    return query


def _full_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _sentences(text: str) -> list[str]:
    """The lines of a text, or the sentences if it is one line."""
    lines = _full_lines(text)
    parts = lines if len(lines) > 1 else re.split(r"(?<=[.!?])\s+", text.strip())
    return [part.strip() for part in parts if part.strip() and not _ONLY_NUMBER.fullmatch(part.strip())]


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def _user(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


def _grader(question: Asked, names: Mapping[str, Any] | None = None) -> Grader:
    """The judge, with the variables of the test and those that the user's own prompts have."""
    known = {**question.names, **(names or {"output": question.text})}
    return grader_of(question.assertion, question.options, question.folder, "text", known)


def _custom(question: Asked, names: Mapping[str, Any]) -> list[dict[str, Any]]:
    return own_messages(question.assertion, question.options, {**question.names, **names})
