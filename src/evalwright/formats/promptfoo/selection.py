"""Which tests and columns are run: promptfoo's `--filter-*` options, in its order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from evalwright.errors import EvaluatorError, InputError, counted
from evalwright.files.key_paths import as_written
from evalwright.formats.promptfoo.numbering import AuthoredCase
from evalwright.formats.promptfoo.recorded_results import recorded_tests, test_key
from evalwright.model.snapshot import Case

__all__ = ["chosen_columns", "chosen_tests", "mistaken_range"]

_RANGE = re.compile(r"(\d*)\s*:\s*(\d*)")
_ERROR = 2
"""`failureReason` of a result without an output."""
_MOST_NAMED = 10
_One = TypeVar("_One", bound=Mapping[str, Any])
_Narrow = Callable[[list[AuthoredCase]], list[AuthoredCase]]


def chosen_columns(columns: Sequence[_One], flag: str, pattern: str | None) -> list[_One]:
    """The prompts or providers whose id or label matches. Raises InputError if none does."""
    if pattern is None:
        return [*columns]
    fits = _pattern(flag, pattern)
    chosen = [
        provider
        for provider in columns
        if any(fits(str(provider[key])) for key in ("id", "label") if provider.get(key))
    ]
    if not chosen:
        names = ", ".join(str(provider.get("label") or provider.get("id"))[:60] for provider in columns[:_MOST_NAMED])
        raise InputError(f"{flag}: none of {names} matches {pattern!r}")
    return chosen


def chosen_tests(cases: Sequence[AuthoredCase], options: Mapping[str, Any]) -> list[AuthoredCase]:
    """The tests that all filters leave, in their order, each with all combinations of its variables; only filters by
    result file select single combinations. Raises InputError, also if a filter leaves none."""
    left = [*cases]
    for flag, narrow in _filters(options):
        before, left = left, narrow(left)
        if before and not left:
            raise InputError(f"{flag}: leaves none of {counted(len(before), 'test')}")
    return left


def _filters(options: Mapping[str, Any]) -> Iterator[tuple[str, _Narrow]]:
    for text in options.get("filter_metadata") or ():
        yield f"--filter-metadata {text}", _with_metadata(text)
    results = [
        (flag, path, wanted)
        for flag, wanted in _OUTCOMES.items()
        if (path := options.get(flag.lstrip("-").replace("-", "_"))) is not None
    ]
    if results:
        yield " ".join(f"{flag} {path}" for flag, path, _ in results), _with_outcome(results)
    if (pattern := options.get("filter_pattern")) is not None:
        fits = _pattern("--filter-pattern", pattern)
        yield f"--filter-pattern {pattern}", _each(lambda case: case.description and fits(case.description))
    if (text := options.get("filter_range")) is not None:
        part = _range(text)
        yield f"--filter-range {text}", _in_range(part)
    if (first := options.get("filter_first_n")) is not None:
        yield f"--filter-first-n {first}", _narrowed_lists(lambda tests, listed: tests[:first])
    if (number := options.get("filter_sample")) is not None:
        seed = options.get("filter_sample_seed") or 0
        yield (
            f"--filter-sample {number}",
            _narrowed_lists(lambda tests, listed: _sampled_tests(tests, number, _seed_of_list(seed, listed))),
        )


def _each(fits: Callable[[Case], object]) -> _Narrow:
    return lambda cases: [case for case in cases if fits(case.case)]


def _in_range(part: slice) -> _Narrow:
    """A range counts the tests of scenarios after the others, each once for every config."""

    def narrowed(cases: list[AuthoredCase]) -> list[AuthoredCase]:
        groups = {*[*dict.fromkeys(case.group for case in cases)][part]}
        return [case for case in cases if case.group in groups]

    return narrowed


def _narrowed_lists(narrow: Callable[[list[int], int], list[int]]) -> _Narrow:
    """A filter by the numbers of tests in their list, which is `tests` or one scenario."""

    def narrowed(cases: list[AuthoredCase]) -> list[AuthoredCase]:
        listed: dict[int, dict[int, None]] = {}
        for case in cases:
            listed.setdefault(case.listed, {})[case.test] = None
        places = {(place, test) for place, tests in listed.items() for test in narrow([*tests], place)}
        return [case for case in cases if (case.listed, case.test) in places]

    return narrowed


def _pattern(flag: str, text: str) -> Callable[[str], object]:
    from evalwright.formats.shared.javascript.characters import InvalidPattern
    from evalwright.formats.shared.javascript.patterns import pattern_of

    try:
        found_in = pattern_of(text).found_in
        found_in("")  # what only Node can find invalid is reported now
        return found_in
    except (InvalidPattern, EvaluatorError) as error:
        raise InputError(f"{flag}: {text!r} is not a regular expression: {error}") from None


def _with_metadata(text: str) -> _Narrow:
    key, separator, value = text.partition("=")
    if not (separator and key and value):
        raise InputError(f"--filter-metadata: expected KEY=VALUE, found {as_written(text)}")

    def fits(case: Case) -> bool:
        value_given = case.metadata.get(key)
        return any(
            value in str(item)
            for item in (value_given if isinstance(value_given, list) else [value_given])
            if item is not None
        )

    return _each(fits)


def mistaken_range(text: str) -> str:
    """What is wrong with a range of tests; empty if nothing is."""
    match = _RANGE.fullmatch(text.strip())
    if match is None or not (match[1] or match[2]):
        return f"expected START:END, counted from 0, END excluded, found {as_written(text)}"
    behind = match[1] and match[2] and int(match[1]) > int(match[2])
    return f"the start is after the end: {text!r}" if behind else ""


def _range(text: str) -> slice:
    if mistake := mistaken_range(text):
        raise InputError(f"--filter-range: {mistake}")
    start, _, end = text.partition(":")
    return slice(int(start.strip() or 0), int(end) if end.strip() else None)


def _is_failed(row: Mapping[str, Any]) -> bool:
    return not row.get("success")


def _is_errored(row: Mapping[str, Any]) -> bool:
    return row.get("failureReason") == _ERROR


_OUTCOMES: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "--filter-failing": _is_failed,
    "--filter-failing-only": lambda row: _is_failed(row) and not _is_errored(row),
    "--filter-errors-only": _is_errored,
}


def _with_outcome(
    results: Iterable[tuple[str, Path, Callable[[Mapping[str, Any]], bool]]],
) -> _Narrow:
    """Tests with such an outcome in any column; they are matched by their variables and description."""
    wanted = {key for _, path, fits in results for key, row in recorded_tests(path) if fits(row)}
    fits = _each(lambda case: test_key(case.input, case.description) in wanted)

    def narrowed(cases: list[AuthoredCase]) -> list[AuthoredCase]:
        return [case._replace(group=i) for i, case in enumerate(fits(cases))]  # from here on, each is a test of its own

    return narrowed


def _sampled_tests(tests: list[int], number: int, seed: int) -> list[int]:
    """This many tests, in their order; the same that promptfoo takes with this seed."""
    random, places = _random(seed), list(range(len(tests)))
    for i in range(len(places) - 1, 0, -1):
        j = int(next(random) * (i + 1))
        places[i], places[j] = places[j], places[i]
    return [tests[place] for place in sorted(places[:number])]


def _seed_of_list(seed: int, listed: int) -> int:
    """Each scenario has a seed of its own."""
    return seed if not listed else _hash(f"{seed}:{listed - 1}")


def _hash(text: str) -> int:
    """FNV-1a, 32 bits."""
    state = 2166136261
    for sign in text.encode():
        state = ((state ^ sign) * 16777619) & 0xFFFFFFFF
    return state


def _random(seed: int) -> Iterator[float]:
    """Random numbers from 0 to 1 as promptfoo makes them: an FNV-1a hash of the seed, then mulberry32."""
    state, mask = _hash(str(seed)), 0xFFFFFFFF
    while True:
        state = (state + 1831565813) & mask
        value = ((state ^ state >> 15) * (state | 1)) & mask
        value ^= (value + (((value ^ value >> 7) * (value | 61)) & mask)) & mask
        yield (value ^ value >> 14) / 2**32
