"""Assertions on how near a text is to another."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence

from evalwright.errors import EvaluatorError
from evalwright.formats.promptfoo.evaluator import Asked
from evalwright.formats.promptfoo.values import template_text
from evalwright.model.result import Evaluation

__all__ = ["bleu", "gleu", "levenshtein", "rouge_n"]

_ORDERS = 4
_WORDS = re.compile(r"\w+|[^\w\s]")
_LEAST = 1e-7
"""Stands for a precision of 0, of which there is no logarithm."""
_LARGEST = 4_000_000
"""Cells of the table of a Levenshtein distance."""


def levenshtein(question: Asked) -> Evaluation:
    """The edit distance is at most `threshold` (5)."""
    value, limit = _texts(question)[0], 5 if question.threshold is None else question.threshold
    distance = _distance(question.text, value)
    return question.of(distance <= limit, f"the edit distance is {distance}, the limit is {limit:g}")


def rouge_n(question: Asked) -> Evaluation:
    """ROUGE-1, the harmonic mean of precision and recall, is at least `threshold` (0.75)."""

    def score(text: str, other: str) -> float:
        words, others = Counter(_WORDS.findall(text.lower())), Counter(_WORDS.findall(other.lower()))
        total = words.total() + others.total()
        return 2 * (words & others).total() / total if total else 0.0

    return _scored(question, score, 0.75)


def bleu(question: Asked) -> Evaluation:
    """BLEU with up to four words at a time is at least `threshold` (0.5)."""
    return _scored(question, _bleu, 0.5)


def gleu(question: Asked) -> Evaluation:
    """GLEU with up to four words at a time is at least `threshold` (0.5)."""
    return _scored(question, _gleu, 0.5)


def _scored(question: Asked, score: Callable[[str, str], float], default: float) -> Evaluation:
    limit = default if question.threshold is None else question.threshold
    found = max(score(question.text, value) for value in _texts(question))
    passed = (found >= limit) != question.negated
    said = "" if passed else f"{question.kind} is {found:.4g}, the threshold is {limit:g}"
    return Evaluation(passed, 1 - found if question.negated else found, said)


def _texts(question: Asked) -> Sequence[str]:
    value = question.value
    if isinstance(value, list) and value:
        return [template_text(one) for one in value]
    if value is None or isinstance(value, (dict, list)):
        raise EvaluatorError(f"{question.kind} needs a value: expected a text", "bad_value")
    return [template_text(value)]


def _distance(left: str, right: str) -> int:
    if len(left) * len(right) > _LARGEST:
        raise EvaluatorError("the texts are too long for an edit distance", "too_long")
    before = list(range(len(right) + 1))
    for i, sign in enumerate(left, 1):
        row = [i]
        for j, other in enumerate(right, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (sign != other)))
        before = row
    return before[-1]


def _grams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def _bleu(text: str, other: str) -> float:
    words, others = text.lower().split(), other.lower().split()
    if not words:
        return 0.0
    logarithms = []
    for n in range(1, _ORDERS + 1):
        grams = _grams(words, n)
        if grams:
            precision = (grams & _grams(others, n)).total() / grams.total()
            logarithms.append(math.log(precision or _LEAST))
    brevity = 1.0 if len(words) > len(others) else math.exp(1 - len(others) / len(words))
    return brevity * math.exp(sum(logarithms) / len(logarithms))


def _gleu(text: str, other: str) -> float:
    words, others = _WORDS.findall(text.lower()), _WORDS.findall(other.lower())
    if not words:
        return 0.0
    if words == others:
        return 1.0
    common = total = wanted = 0
    for n in range(1, _ORDERS + 1):
        grams, expected = _grams(words, n), _grams(others, n)
        common, total, wanted = common + (grams & expected).total(), total + grams.total(), wanted + expected.total()
    return min(common / total, common / wanted) if wanted else 0.0
