"""Assertions on the similarity of texts, with promptfoo's measures."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from evalwright.errors import EvaluatorError
from evalwright.formats.promptfoo.checks.treebank import treebank_words
from evalwright.formats.promptfoo.evaluator import AssertionInput
from evalwright.formats.shared.javascript.characters import CLASSES, code_units
from evalwright.model.result import Evaluation

__all__ = ["bleu", "gleu", "levenshtein", "rouge_n"]

_ORDERS = 4
_SPACES = re.compile(f"[{CLASSES['s']}]+")
_LEAST = 1e-7
"""Replaces a precision of 0, which has no logarithm."""
_LARGEST = 10**10
"""Cells in the table of an edit distance: for two texts of 100,000 characters, some seconds."""


def levenshtein(question: AssertionInput) -> Evaluation:
    """The edit distance in code units is at most `threshold` (5)."""
    value, limit = _text(question), 5 if question.threshold is None else question.threshold
    distance = _distance(code_units(question.text), code_units(value))
    shown = f"the edit distance is {distance}"
    return question.of(distance <= limit, f"{shown}, the limit is {limit:g}", f"{shown}, expected more than {limit:g}")


def rouge_n(question: AssertionInput) -> Evaluation:
    """ROUGE-1, the harmonic mean of precision and recall, is at least `threshold` (0.75)."""
    words, others = Counter(treebank_words(question.text.lower())), Counter(treebank_words(_text(question).lower()))
    common = (words & others).total()
    return _scored_evaluation(
        question, _harmonic_mean(common / words.total(), common / others.total()) if common else 0.0, 0.75
    )


def _harmonic_mean(one: float, other: float) -> float:
    """In the steps of js-rouge, so that a score is at its threshold here exactly where it is there."""
    low, high = sorted((one, other))
    return low if low == high else min(high, low * (2 / (1 + low / high)))


def bleu(question: AssertionInput) -> Evaluation:
    """BLEU with up to four words at a time is at least `threshold` (0.5)."""
    return _scored_evaluation(question, _bleu(question.text, _texts(question)), 0.5)


def gleu(question: AssertionInput) -> Evaluation:
    """GLEU with up to four words at a time, with the nearest of the texts, is at least `threshold` (0.5)."""
    return _scored_evaluation(question, max(_gleu(question.text, text) for text in _texts(question)), 0.5)


def _scored_evaluation(question: AssertionInput, score: float, default: float) -> Evaluation:
    limit = default if question.threshold is None else question.threshold
    passed = (score >= limit) != question.negated
    message = "" if passed else f"{question.kind} is {score:.4g}, the threshold is {limit:g}"
    return Evaluation(passed, 1 - score if question.negated else score, message)


def _text(question: AssertionInput) -> str:
    if not isinstance(question.value, str):
        raise EvaluatorError(f"{question.kind} needs a value: expected a text", "bad_value")
    return question.value


def _texts(question: AssertionInput) -> Sequence[str]:
    value = question.value
    if isinstance(value, list) and value and all(isinstance(reference, str) for reference in value):
        return value
    if not isinstance(value, str):
        raise EvaluatorError(f"{question.kind} needs a value: expected text or a list of texts", "bad_value")
    return [value]


def _distance(left: str, right: str) -> int:
    """The edit distance, computed one column of the table at a time, as bits of integers (Myers 1999, Hyyrö 2001)."""
    if len(left) * len(right) > _LARGEST:
        raise EvaluatorError("the texts are too long for an edit distance", "too_long")
    if not left:
        return len(right)
    places: dict[str, int] = {}
    for i, sign in enumerate(left):
        places[sign] = places.get(sign, 0) | 1 << i
    every, last, distance = (1 << len(left)) - 1, 1 << (len(left) - 1), len(left)
    more, less = every, 0  # the rows whose cell is one more, or one less, than the cell above
    for sign in right:
        equal = places.get(sign, 0)
        along = ((((equal & more) + more) ^ more) | equal) & every
        up, down = less | (every & ~(along | more)), more & along
        distance += bool(up & last) - bool(down & last)
        up, down = (up << 1 | 1) & every, down << 1 & every
        more, less = down | (every & ~(equal | less | up)), up & (equal | less)
    return distance


def _split(text: str) -> list[str]:
    """The words of a text, as in promptfoo: an empty text has one, which is empty."""
    parts = _SPACES.split(text.lower())
    return (parts[1:] if not parts[0] else parts)[: -1 if len(parts) > 1 and not parts[-1] else None] or [""]


def _grams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def _bleu(text: str, references: Sequence[str]) -> float:
    words, others = _split(text), [_split(reference) for reference in references]
    if words == [""]:
        return 0.0
    logarithms = []
    for n in range(1, _ORDERS + 1):
        grams = _grams(words, n)
        if grams:
            common = max((grams & _grams(reference, n)).total() for reference in others)
            logarithms.append(math.log(common / grams.total() or _LEAST))
    nearest = min((len(reference) for reference in others), key=lambda length: (abs(length - len(words)), length))
    brevity = 1.0 if len(words) > nearest else math.exp(1 - nearest / len(words))
    return brevity * math.exp(sum(logarithms) / len(logarithms))


def _gleu(text: str, other: str) -> float:
    words, others = ([word.rstrip(".") for word in _split(text)] for text in (text, other))
    if not (any(words) and any(others)):
        return 0.0
    if words == others:
        return 1.0
    common = total = wanted = 0
    for n in range(1, _ORDERS + 1):
        grams, expected = _grams(words, n), _grams(others, n)
        common, total, wanted = common + (grams & expected).total(), total + grams.total(), wanted + expected.total()
    return min(common / total, common / wanted)
