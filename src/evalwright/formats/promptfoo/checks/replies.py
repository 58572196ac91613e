"""What graders reply: the one object in a reply, and truths and scores as models write them. Nothing is guessed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from evalwright.errors import EvaluatorError
from evalwright.evaluators.judges.replies import BadReply, keys_once
from evalwright.evaluators.wording import shorten
from evalwright.formats.promptfoo.checks.structures import objects_in
from evalwright.formats.promptfoo.graders import Grader

__all__ = ["asked_object", "one_object", "passes_and_score", "score_in", "unreadable"]

_KEPT = 2000
"""Characters of a reply that are kept when it cannot be read."""
_TRUE, _FALSE = ("true", "yes", "pass", "y", "1"), ("false", "no", "fail", "n", "0")


def unreadable(grader: Grader, text: str, why: object) -> EvaluatorError:
    message = f"the reply of the judge {grader.name} cannot be used: {why}"
    detail = {"judge_reply": shorten(text, _KEPT)}
    return EvaluatorError(message, "unreadable_reply", detail, grader.cost_usd)


async def asked_object(
    grader: Grader, messages: list[dict[str, Any]], keys: Iterable[str]
) -> tuple[dict[str, Any], str]:
    """The object in the grader's reply, and the reply. Raises EvaluatorError."""
    text = await grader.ask(messages)
    try:
        found = one_object(text, keys)
    except BadReply as error:
        raise unreadable(grader, text, error) from None
    if found is None:
        raise unreadable(grader, text, "expected a JSON object, found none")
    return found, text


def one_object(text: str, keys: Iterable[str]) -> dict[str, Any] | None:
    """The only object in a text with one of `keys`; None if there is no object.

    Raises BadReply for several that differ, of which the judge may have quoted one, and for a key that comes twice.
    """
    found = list(objects_in(text, keys_once))
    wanted = frozenset(keys)
    verdicts = [one for one in found if not wanted.isdisjoint(one)]
    if (different := len({json.dumps(one, sort_keys=True, default=str) for one in verdicts})) > 1:
        raise BadReply(f"expected one verdict, found {different} different ones")
    return next(iter(verdicts or found), None)


def passes_and_score(said: Mapping[str, Any]) -> tuple[bool, float]:
    """`pass` and `score` of a reply; either follows from the other, as in promptfoo. Raises BadReply."""
    if said.keys().isdisjoint(("pass", "score")):
        raise BadReply("expected 'pass' or 'score', found neither")
    passed = _truth(said["pass"]) if "pass" in said else True
    return passed, (1.0 if passed else 0.0) if said.get("score") is None else score_in(said["score"])


def score_in(value: Any) -> float:
    """A number, also one in a text. Raises BadReply for anything else, true and false included."""
    usable = isinstance(value, (int, float, str)) and not isinstance(value, bool)
    try:
        number = float(value) if usable else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise BadReply(f"expected a number as 'score', found {value!r}")
    return number


def _truth(value: Any) -> bool:
    word = str(value).strip().lower() if isinstance(value, (bool, int, str)) else ""
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise BadReply(f"expected true or false as 'pass', found {value!r}")
