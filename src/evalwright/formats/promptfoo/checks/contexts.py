"""Assertions on what answers rest on: their context, their question, and the conversation before them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from evalwright.errors import EvaluatorError
from evalwright.evaluators.judges.replies import BadReply
from evalwright.evaluators.similarity.cosine import cosine
from evalwright.files.key_paths import as_written, kind_in_words
from evalwright.formats.promptfoo.checks.embeddings import EPSILON
from evalwright.formats.promptfoo.checks.replies import graded_reply, the_object
from evalwright.formats.promptfoo.checks.rubrics import (
    judge_of,
    messages_for,
    parsed_output,
    required_texts,
    user_message,
)
from evalwright.formats.promptfoo.evaluator import AssertionInput, transform_context_of
from evalwright.formats.promptfoo.faults import ScriptError
from evalwright.formats.promptfoo.graders import Grader, grader_of
from evalwright.formats.promptfoo.prompts import TURNS
from evalwright.formats.promptfoo.transforms import transformed
from evalwright.formats.promptfoo.values import compact_json
from evalwright.model.result import Evaluation

__all__ = [
    "answer_relevance", "context_faithfulness", "context_recall", "context_relevance", "conversation_relevance",
]  # fmt: skip

_NUMBERED = re.compile(r"^\s*(?:\d+[.)]|[-*])\s*")
_ONLY_NUMBER = re.compile(r"\d+[.)]")
_RELEVANT = (
    "You say whether the last answer of an assistant fits the conversation: it responds to what the user last wrote, as"
    ' that is meant after the turns before it. Reply with one JSON object and nothing else: {"verdict": "yes" or "no",'
    ' "reason": text}.'
)
_WINDOW = 5
"""Turns that a judge is shown."""


async def conversation_relevance(question: AssertionInput) -> Evaluation:
    """The share of turns whose answer fits the conversation up to there, of which a judge sees the last `windowSize`
    turns (5). The turns are those in the variable `_conversation`; without it, the prompt and the output are the only
    one."""
    turns = question.names.get(TURNS)
    if not isinstance(turns, list) or not turns:
        turns = [{"input": question.trace.extra["promptfoo"]["prompt"], "output": question.text}]
    if not all(isinstance(turn, Mapping) for turn in turns):
        raise EvaluatorError(
            f"{question.kind}: expected {TURNS} to be a list of turns with input and output", "bad_value"
        )
    size = question.assertion.get("config", {}).get("windowSize") or _WINDOW
    if not isinstance(size, int) or size < 1:
        raise EvaluatorError(f"{question.kind}: expected windowSize to be a whole number from 1", "bad_value")
    grader, missed = judge_of(question), []
    for number in range(1, len(turns) + 1):
        window = turns[max(0, number - size) : number]
        shown = "\n".join(
            f"User: {_turn_text(turn, 'input')}\nAssistant: {_turn_text(turn, 'output')}" for turn in window
        )
        messages = await messages_for(question, {"messages": window}, in_parts=True) or [
            {"role": "system", "content": _RELEVANT},
            {"role": "user", "content": f"<Conversation>\n{shown}\n</Conversation>"},
        ]
        (fits, reason), _ = await graded_reply(grader, messages, _fitting_turn)
        if not fits:
            missed.append(f"turn {number}: {reason}" if reason else f"turn {number}")
    share = _share(question, (len(turns) - len(missed)) / len(turns), grader)
    share.reason = share.reason and "; ".join([share.reason, *missed])
    return share


def _turn_text(turn: Mapping[str, Any], part: str) -> str:
    value = turn.get(part, "")
    return value if isinstance(value, str) else compact_json(value)


def _fitting_turn(text: str) -> tuple[bool, str]:
    reply = the_object(text, ("verdict",))
    if (verdict := reply.get("verdict")) not in ("yes", "no"):
        raise BadReply(f"expected yes or no as 'verdict', found {as_written(verdict)}")
    return verdict == "yes", str(reply.get("reason") or "")


async def context_recall(question: AssertionInput) -> Evaluation:
    """The share of the value's sentences that the context supports, which without any is the prompt."""
    context = "\n\n".join(await _context(question, otherwise=question.trace.extra["promptfoo"]["prompt"]))
    [answer] = required_texts(question)
    names = {"context": context, "groundTruth": answer}
    wanted = (
        "For each sentence of the answer say whether the context bears it out: repeat it on a line of its own,"
        " followed by [Attributed] or [Not Attributed].\n"
        f"<Context>\n{context}\n</Context>\n<Answer>\n{answer}\n</Answer>"
    )
    grader = judge_of(question, names)
    lines, _ = await graded_reply(grader, await messages_for(question, names) or user_message(wanted), _marked_lines)
    borne = sum("[not attributed]" not in line.lower() for line in lines)
    return _share(question, borne / len(lines), grader)


def _marked_lines(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if "attributed]" in line.lower()]
    if not lines:
        raise BadReply("no sentence is marked")
    return lines


async def context_relevance(question: AssertionInput) -> Evaluation:
    """The share of the context's sentences, or of its parts if it is a list, that the variable `query` needs."""
    parts = await _context(question)
    names = {"context": "\n\n".join(parts), "query": _question_of(question)}
    wanted = (
        "Copy from the context, unchanged and one a line, only the sentences that are needed to answer the question."
        " If there are none, reply Insufficient Information.\n"
        f"<Context>\n{names['context']}\n</Context>\n<Question>\n{names['query']}\n</Question>"
    )
    grader = judge_of(question, names)
    all_of_it = _folded_text(names["context"])
    in_lines = len(parts) > 1 or len(_full_lines(names["context"])) > 1

    def read(reply: str) -> set[str]:
        if "insufficient information" in reply.lower():
            return set()
        copied = {*(_full_lines(reply) if in_lines else _sentences(reply))}
        if not any(_folded_text(_NUMBERED.sub("", line)) in all_of_it for line in copied):
            raise BadReply("no sentence of it is in the context")
        return copied

    needed, _ = await graded_reply(grader, await messages_for(question, names) or user_message(wanted), read)
    total = len(parts) if len(parts) > 1 else len(_sentences(names["context"]))
    return _share(question, min(1.0, len(needed) / total), grader)


async def context_faithfulness(question: AssertionInput) -> Evaluation:
    """The share of statements in the output that the context supports."""
    grader, context = judge_of(question), "\n\n".join(await _context(question))
    question_text = _question_of(question)
    _require_text(question)
    wanted = (
        "Break the answer to the question into single statements, one a line, nothing else.\n"
        f"<Question>\n{question_text}\n</Question>\n<Answer>\n{question.text}\n</Answer>"
    )
    own = await messages_for(question, {"question": question_text, "answer": parsed_output(question.text)}, 0)
    statements, _ = await graded_reply(grader, own or user_message(wanted), _statements)
    wanted = (
        "Say for each statement whether the context bears it out. End with one line: Final verdict for each statement"
        f" in order: Yes. or No. for each.\n<Context>\n{context}\n</Context>\n<Statements>\n"
        + "\n".join(statements)
        + "\n</Statements>"
    )
    own = await messages_for(question, {"context": context, "statements": statements}, 1)
    claim, _ = await graded_reply(grader, own or user_message(wanted), partial(_final_verdicts, len(statements)))
    return _share(question, claim.count("yes") / len(claim), grader)


def _statements(text: str) -> list[str]:
    lines = _full_lines(text)
    if not lines:
        raise BadReply("no statements")
    return lines


def _final_verdicts(statements: int, text: str) -> list[str]:
    _, *marked = text.lower().split("final verdict for each statement in order:")
    reply = re.findall(r"\b(yes|no)\b", marked[-1]) if len(marked) == 1 else []
    if len(reply) != statements:
        raise BadReply(f"{len(reply)} final verdicts on {statements} statements")
    return reply


async def answer_relevance(question: AssertionInput) -> Evaluation:
    """How similar the questions that the output answers are to the one that was asked."""
    _require_text(question)
    names = {"answer": parsed_output(question.text)}
    grader = judge_of(question, names)
    embedder = grader_of(question.assertion, question.options, question.folder, "embedding")
    wanted = f"Write the one question that this answer answers, nothing else.\n<Answer>\n{question.text}\n</Answer>"
    text, _ = await graded_reply(grader, await messages_for(question, names) or user_message(wanted), _derived_question)
    query = question.names.get("query")
    prompt = query if isinstance(query, str) else question.trace.extra["promptfoo"]["prompt"]
    embedding = await embedder.embed([prompt, text])
    return _share(question, cosine(*embedding.vectors), grader)


def _derived_question(text: str) -> str:
    if not text.strip():
        raise BadReply("no question")
    return text.strip()


def _share(question: AssertionInput, score: float, grader: Grader) -> Evaluation:
    limit = 0.5 if question.threshold is None else question.threshold
    passed = (score >= limit - EPSILON) != question.negated
    message = "" if passed else f"{question.kind} is {score:.4g}, the threshold is {limit:g}"
    score = 1 - score if question.negated else score
    return Evaluation(passed, score, message, grader.detail, cost_usd=grader.cost_usd)


def _require_text(question: AssertionInput) -> None:
    """Raise EvaluatorError if the output is no text, which is not judged in promptfoo, either."""
    if not isinstance(question.output, str):
        raise EvaluatorError(
            f"{question.kind} needs a text as output, found {kind_in_words(question.output)}: a transform can make one",
            "bad_value",
        )


async def _context(question: AssertionInput, otherwise: str = "") -> list[str]:
    """The parts of what the answer should rest on: what `contextTransform` finds in the provider's output, else the
    variable `context`. Raises EvaluatorError if there are none."""
    context: Any = question.names.get("context") or otherwise
    if code := question.assertion.get("contextTransform"):
        seen = question.trace.extra["promptfoo"]
        try:
            output = seen.get("provided", seen.get("output"))
            context = await transformed(code, output, transform_context_of(question), question.folder)
        except ScriptError as error:
            raise EvaluatorError(f"contextTransform: {error}", "transform_error") from None
    parts = context if isinstance(context, list) else [context]
    if not parts or not all(isinstance(part, str) and part.strip() for part in parts):
        where = "what contextTransform returns" if code else "the variable 'context'"
        raise EvaluatorError(f"{question.kind} needs a text or a list of texts in {where}", "bad_value")
    return parts


def _question_of(question: AssertionInput) -> str:
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


def _folded_text(text: str) -> str:
    return " ".join(text.lower().split())
