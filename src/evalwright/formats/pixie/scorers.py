"""Scores of values without models, by the rules of pixie-qa's pre-made evaluators."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from evalwright.evaluators.values.schema_patterns import with_bounded_patterns
from evalwright.formats.pixie.assignment import best_pairs

__all__ = [
    "ExactMatch",
    "JSONDiff",
    "Levenshtein",
    "ListContains",
    "NumericDiff",
    "Score",
    "Scorer",
    "ValidJSON",
    "scored",
]


@dataclass
class Score:
    """A scorer's result; None if it does not apply."""

    score: float | None
    metadata: dict[str, Any] = field(default_factory=dict)
    name: str = ""


class Scorer(Protocol):
    """Scores an output against what was expected."""

    name: str

    def eval_async(self, output: Any, expected: Any = None, **keywords: Any) -> Any: ...


async def scored(scorer: Any, output: Any, expected: Any, **keywords: Any) -> Any:
    """The result of any object with `eval_async` or `eval`; the latter is called in a thread."""
    if hasattr(scorer, "eval_async"):
        pending = scorer.eval_async(output, expected, **keywords)
    else:
        pending = await asyncio.to_thread(scorer.eval, output, expected, **keywords)
    return await pending if inspect.isawaitable(pending) else pending


class ExactMatch:
    """Equality of texts; containers are compared as JSON."""

    name = "ExactMatch"

    async def eval_async(self, output: Any, expected: Any = None, **_: Any) -> Score:
        if isinstance(output, (list, dict)) or isinstance(expected, (list, dict)):
            same = _normal(output) == _normal(expected)
        else:
            same = str(output) == str(expected)
        return Score(1 if same else 0)


def _normal(value: Any) -> str:
    if isinstance(value, (list, dict)):
        return json.dumps(value)
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"an object or a list cannot be compared with {value!r}, expected text or another of them")
    try:
        return json.dumps(json.loads(value))
    except ValueError:
        return str(value)


def _similarity(one: str, other: str) -> float:
    longest = max(len(one), len(other))
    return 1 - _distance(one, other) / longest if longest else 1.0


def _distance(one: str, other: str) -> int:
    """Insertions, deletions and replacements between two texts."""
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, right in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (left != right))
    return row[-1]


class Levenshtein:
    """1 minus the share of characters that must be edited."""

    name = "Levenshtein"

    async def eval_async(self, output: Any, expected: Any = None, **_: Any) -> Score:
        if expected is None:
            raise ValueError("LevenshteinMatch requires an expected value")
        return Score(_similarity(str(output), str(expected)))


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


def _nearness(one: Any, other: Any) -> float:
    return 1.0 if one == 0 and other == 0 else 1 - abs(other - one) / (abs(other) + abs(one))


class NumericDiff:
    """How close two numbers are, relative to their size."""

    name = "NumericDiff"

    async def eval_async(self, output: Any, expected: Any = None, **_: Any) -> Score:
        for role, value in (("expected value", expected), ("output", output)):
            if not _is_number(value):
                raise ValueError(f"NumericDiff requires a number as {role}, found {type(value).__name__}")
        return Score(_nearness(output, expected))


class JSONDiff:
    """How similar two JSON documents are, part by part."""

    name = "JSONDiff"

    def __init__(self, string_scorer: Any = None) -> None:
        self._strings = string_scorer() if inspect.isclass(string_scorer) else string_scorer

    async def eval_async(self, output: Any, expected: Any = None, **_: Any) -> Score:
        return Score(await self._similarity_of(output, expected))

    async def _similarity_of(self, one: Any, other: Any) -> float:
        one, other = _parsed_text(one), _parsed_text(other)
        if isinstance(one, dict) and isinstance(other, dict):
            keys = sorted(one.keys() | other.keys(), key=str)
            return _mean([await self._similarity_of(one.get(key), other.get(key)) for key in keys], len(keys))
        if isinstance(one, list) and isinstance(other, list):
            pairs = zip(one, other, strict=False)
            return _mean([await self._similarity_of(a, b) for a, b in pairs], max(len(one), len(other)))
        if isinstance(one, str) and isinstance(other, str):
            return await self._text(one, other)
        if _is_number(one) and _is_number(other):
            return _nearness(one, other)
        if one is None or other is None:
            return float(one is None and other is None)
        return await self._text(_compact(one), _compact(other))

    async def _text(self, one: str, other: str) -> float:
        if self._strings is None:
            return _similarity(one, other)
        return float((await scored(self._strings, one, other)).score or 0.0)


def _parsed_text(value: Any) -> Any:
    """Text that is a JSON object or list, parsed."""
    if isinstance(value, str):
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return parsed if isinstance(parsed, (dict, list)) else value
    return value


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def _mean(scores: Sequence[float], count: int) -> float:
    return sum(scores) / count if count else 1.0


class ValidJSON:
    """Whether the output is a JSON object or list, or fits a JSON Schema."""

    name = "ValidJSON"

    def __init__(self, schema: Any = None) -> None:
        self._schema = schema

    async def eval_async(self, output: Any, expected: Any = None, **_: Any) -> Score:
        schema = self._schema if self._schema is not None else expected
        if isinstance(output, str):
            try:
                output = json.loads(output)
            except ValueError:
                return Score(0)
        if schema is None:
            return Score(1 if isinstance(output, (dict, list)) else 0)
        if not isinstance(schema, (dict, bool)):
            raise ValueError(f"ValidJSON requires a JSON Schema as expectation, found {type(schema).__name__}")
        import jsonschema

        kind: Any = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        kind.check_schema(schema)
        return Score(1 if with_bounded_patterns(kind, schema)(schema).is_valid(output) else 0)


class ListContains:
    """How much of an expected list is in the output, every item paired at most once."""

    name = "ListContains"

    def __init__(self, pairwise_scorer: Any = None, allow_extra_entities: bool = False) -> None:
        scorer = Levenshtein() if pairwise_scorer is None else pairwise_scorer
        self._scorer = scorer() if inspect.isclass(scorer) else scorer
        self._allow_extra = allow_extra_entities

    async def eval_async(self, output: Any, expected: Any = None, **_: Any) -> Score:
        for role, value in (("expected value", expected), ("output", output)):
            if not isinstance(value, (list, tuple, str)):
                raise ValueError(f"ListContains requires a list as {role}, found {type(value).__name__}")
        if not output or not expected:
            return Score(1.0 if not output and not expected else 0.0)
        pairs = [[await self._similarity(one, other) for other in expected] for one in output]
        matched = best_pairs(pairs)
        size = len(expected) if self._allow_extra else max(len(output), len(expected))
        total = sum(pairs[i][j] for i, j in matched)
        return Score(min(1.0, max(0.0, total / size)), {"pairs": [[output[i], expected[j]] for i, j in matched]})

    async def _similarity(self, one: Any, other: Any) -> float:
        return float((await scored(self._scorer, one, other)).score or 0.0)
