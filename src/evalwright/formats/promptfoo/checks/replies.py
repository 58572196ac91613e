"""What graders reply: the only object in a reply, and booleans and scores as models write them. Nothing is guessed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from evalwright.errors import EvaluatorError, shorten
from evalwright.evaluators.judges.replies import BadReply, keys_once
from evalwright.files.key_paths import as_written
from evalwright.formats.promptfoo.checks.structures import objects_in
from evalwright.formats.promptfoo.graders import Grader

__all__ = ["graded_reply", "one_object", "passes_and_score", "score_in", "the_object"]

T = TypeVar("T")

_KEPT = 2000
"""Characters of an unreadable reply that are kept."""
_SHOWN = 8000
"""Characters of it that a grader sees again."""
_TRUE, _FALSE = ("true", "yes", "pass", "y"), ("false", "no", "fail", "n")


def _unreadable(grader: Grader, text: str, why: object) -> EvaluatorError:
    message = f"the reply of the judge {grader.name} cannot be used: {why}"
    detail = {**grader.detail, "judge_reply": shorten(text, _KEPT)}
    return EvaluatorError(message, "unreadable_reply", detail, grader.cost_usd)


async def graded_reply(grader: Grader, messages: list[dict[str, Any]], read: Callable[[str], T]) -> tuple[T, str]:
    """What `read` makes of the grader's reply, and the reply. If `read` raises BadReply, the grader gets the reason
    and is called again, as often as it allows. Raises EvaluatorError."""
    question, requests = messages, []
    for left in range(grader.reply_retries, -1, -1):
        requests.append(question)
        text = await grader.ask(question)
        try:
            return read(text), text
        except BadReply as error:
            problem = str(error)
        if left:
            grader.complaints.append(problem)
            question = [*messages, *_repeated_request(text, problem)]
    for request in requests:  # or the same unreadable replies would come from the cache for ever
        grader.forget(request)
    raise _unreadable(grader, text, problem)


def _repeated_request(text: str, problem: str) -> list[dict[str, Any]]:
    # some servers reject an empty message of the assistant
    reply = [{"role": "assistant", "content": text[:_SHOWN]}] if text.strip() else []
    complaint = f"This reply cannot be used: {problem}. Reply once more, only in the form that was asked for."
    return [*reply, {"role": "user", "content": complaint}]


def the_object(text: str, keys: Iterable[str]) -> dict[str, Any]:
    """The object in a text. Raises BadReply as `one_object` does, and if there is none."""
    verdict = one_object(text, keys)
    if verdict is None:
        raise BadReply("expected a JSON object, found none")
    return verdict


def one_object(text: str, keys: Iterable[str]) -> dict[str, Any] | None:
    """The only object in a text with one of `keys`; None if there is no object.

    Raises BadReply for several that differ, one of which the judge may have quoted, and for a repeated key.
    """
    objects = list(objects_in(text, keys_once))
    wanted = frozenset(keys)
    verdicts = [verdict for verdict in objects if not wanted.isdisjoint(verdict)]
    if (different := len({json.dumps(verdict, sort_keys=True, default=str) for verdict in verdicts})) > 1:
        raise BadReply(f"expected one verdict, found {different} different ones")
    return next(iter(verdicts or objects), None)


def passes_and_score(reply: Mapping[str, Any]) -> tuple[bool, float]:
    """`pass` and `score` of a reply; each can be derived from the other, as in promptfoo, where a score in words says
    no more than `pass`. Raises BadReply."""
    if reply.keys().isdisjoint(("pass", "score")):
        raise BadReply("expected 'pass' or 'score', found neither")
    if "pass" not in reply:
        return True, 0.0 if reply["score"] is None else score_in(reply["score"])
    passed, score = _truth(reply["pass"]), reply.get("score", "")
    try:
        return passed, 0.0 if score is None else score_in(score)
    except BadReply:
        return passed, float(passed)


def score_in(value: Any) -> float:
    """A number, also one in a string. Raises BadReply for anything else, including true and false."""
    usable = isinstance(value, (int, float, str)) and not isinstance(value, bool)
    try:
        number = float(value) if usable else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise BadReply(f"expected a number as 'score', found {as_written(value)}")
    return number


def _truth(value: Any) -> bool:
    word = str(value).lower() if isinstance(value, (bool, str)) else ""
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise BadReply(f"expected true or false as 'pass', found {as_written(value)}")
