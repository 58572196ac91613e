"""Which cases of a suite are run, whether there are any, and what looks wrong with them."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET

from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.model.plan import Plan
from evalwright.model.snapshot import Case, snapshot
from evalwright.run.options import RunOptions
from evalwright.run.used_files import beyond_reach, doubled_files, doubled_keys, doubled_modules, hashed

if TYPE_CHECKING:
    from evalwright.model.case import EvalCase
    from evalwright.model.suite import Suite

__all__ = [
    "all_warnings",
    "chosen_cases",
    "lines_of_warnings",
    "must_not_be_empty",
    "options_that_fit",
    "options_without_effect",
    "unread_cases",
    "with_warnings",
]

_MOST_COMPARED, _MOST_NAMED = 1000, 3
_MOST_WARNINGS = 100
"""A limit for datasets with a different mistake in each of a million cases."""


def chosen_cases(suite: Suite, options: RunOptions) -> Iterator[Case]:
    """The cases to run, in file order. Raises InputError for every mistake of the dataset, or if there are none.

    Some formats run although cases are unreadable, and record these as errors; at least one readable case is needed.
    """
    fits, taken, unread = _Filter(options), 0, list[Problem]()
    lost, readable, narrowed = unread_cases(suite), False, bool(options.cases or options.tags)
    for case in suite.cases:
        if (not narrowed or fits(case)) and (options.limit is None or taken < options.limit):
            taken += 1
            unread += lost.get(case.id, ())
            readable = readable or case.id not in lost
            yield case if case.__class__ is Case else snapshot(case)
    if taken and not readable:
        raise InputError(unread)
    if not taken and not options.allow_empty:
        if options.narrowed:
            near = _near_name(suite, options)
            how = "" if options.allow_empty is None else "; --allow-empty runs the suite without one"
            raise InputError(f"no case matches {options.narrowed}{near}{how}")
        must_not_be_empty(suite, may_be=options.allow_empty is not None)
    idle = options_without_effect(options, [fits.fitted])
    if (idle.cases or idle.tags) and not options.allow_empty:
        # With one of several names misspelt, the run would pass as if the cases meant by it had passed.
        raise InputError(f"no case matches {idle.narrowed}{_near_name(suite, idle)}")


def unread_cases(suite: Suite) -> Mapping[str, Sequence[Problem]]:
    """The mistakes of each unreadable case, by its id; complete once the cases have been iterated over."""
    lost: Mapping[str, Sequence[Problem]] = getattr(suite.cases, "lost", {})
    return lost


def _near_name(suite: Suite, options: RunOptions) -> str:
    """The case or the tag that may be meant, among the first ones of a suite."""
    ids: list[str] = []
    tags = set[str]()
    for case in islice(suite.cases, _MOST_COMPARED):
        ids.append(case.id)
        tags.update(case.tags)
    meant = [_near_of(pattern, suite, ids) for pattern in options.cases]
    meant += [did_you_mean(tag, sorted(tags)) for tag in options.tags]
    if near := next(filter(None, meant), ""):
        return near
    if options.tags and not options.cases:
        return f" (tags: {', '.join(sorted(tags)[:10])})" if tags else " (no case has tags)"
    more = ", ..." if len(ids) > _MOST_NAMED else ""
    return f" (cases: {', '.join(ids[:_MOST_NAMED])}{more})" if ids else ""


def _near_of(word: str, suite: Suite, ids: Sequence[str]) -> str:
    """The case, or the path into cases, that may be meant by a word that chooses none."""
    condition = _Condition.of(word)
    if condition is None:
        part = word.partition("=")[0].partition(".")[0] if "=" in word else ""
        return "" if word in ids else did_you_mean(word, ids) or did_you_mean(part, Case.__struct_fields__)
    from evalwright.formats.shared.filters import absent_path

    absent = absent_path([*islice(suite.cases, _MOST_COMPARED)], condition.path)
    return f": {absent}" if absent else ""


def must_not_be_empty(suite: Suite, *, to_run: bool = True, may_be: bool = True) -> None:
    """Raise InputError for a suite without cases, unless its original runs (or loads) that: it then gets a warning.

    `may_be` says that the user has an option by which it is accepted.
    """
    why_empty = getattr(suite.cases, "why_empty", None)
    problem = Problem(str(suite.source), "has no cases") if why_empty is None else why_empty()
    if suite.empty == "refused" or (to_run and suite.empty == "loaded"):
        why = suite.unexecuted or problem  # what code would have made, where none is executed
        raise InputError(why, "nothing to run; --allow-empty accepts that" if may_be else "nothing to run")
    if problem not in suite.warnings:
        suite.warnings.append(problem)


def options_that_fit(suite: Suite, options: RunOptions) -> RunOptions | None:
    """The options without globs and tags that fit no case of the suite; None if they choose no case of it.

    Raises InputError for mistakes on the way.
    """
    if not options.narrowed:  # its author may mean that it has no cases
        return options
    fits = _Filter(options)
    chosen = [case.id for case in suite.cases if fits(case)]
    return fits.fitted if chosen else None


def options_without_effect(options: RunOptions, fitted: Iterable[RunOptions]) -> RunOptions:
    """The options without the globs and tags in `fitted`: those that fit no case of any suite."""
    globs, tags = set[str](), set[str]()
    for its_own in fitted:
        globs.update(its_own.cases)
        tags.update(its_own.tags)
    return replace(
        options,
        cases=[glob for glob in options.cases if glob not in globs],
        tags=[tag for tag in options.tags if tag not in tags],
    )


class _Condition(NamedTuple):
    """What `KEY=VALUE` asks of a case."""

    path: str
    values: list[Any]
    """The text, and the JSON that it may stand for: `metadata.level=2` finds both "2" and 2."""

    @classmethod
    def of(cls, word: str) -> _Condition | None:
        """The condition in a word; None for a glob of case ids."""
        path, equals, text = word.partition("=")
        if not equals or path.partition(".")[0] not in Case.__struct_fields__:
            return None
        try:
            return cls(path, [text, json.loads(text)])
        except ValueError:
            return cls(path, [text])


class _Filter:
    """Whether a case is chosen, and which globs, conditions and tags have fitted one so far.

    A case is chosen if it fits one of the globs, one of the conditions on each path, and one of the tags.
    """

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._cases, self._tags = dict.fromkeys(options.cases, False), dict.fromkeys(options.tags, False)
        self._conditions = {word: condition for word in self._cases if (condition := _Condition.of(word)) is not None}
        self._alternatives: dict[str, list[str]] = {}
        for word in self._cases:
            path = self._conditions[word].path if word in self._conditions else ""
            self._alternatives.setdefault(path, []).append(word)

    def __call__(self, case: EvalCase | Case) -> bool:
        words = {word for word in self._cases if self._fits(case, word)}
        tags = [tag for tag in self._tags if tag in case.tags]
        self._cases |= dict.fromkeys(words, True)
        self._tags |= dict.fromkeys(tags, True)
        return all(not words.isdisjoint(ones) for ones in self._alternatives.values()) and bool(tags or not self._tags)

    def _fits(self, case: EvalCase | Case, word: str) -> bool:
        condition = self._conditions.get(word)
        if condition is None:
            return _is_named(case, word)
        from evalwright.formats.shared.filters import matches_filter

        return case.id == word or matches_filter(case, {condition.path: condition.values})

    @property
    def fitted(self) -> RunOptions:
        """The options with those globs, conditions and tags that have fitted a case."""
        cases, tags = ([name for name, did in names.items() if did] for names in (self._cases, self._tags))
        return replace(self._options, cases=cases, tags=tags)


def _is_named(case: EvalCase | Case, glob: str) -> bool:
    """Whether the id of a case matches, or the name that some formats have besides it."""
    name = getattr(case, "extra", {}).get("name")
    if not isinstance(name, str) or glob.startswith("!"):
        return _matches_glob(case.id, glob) and (not isinstance(name, str) or _matches_glob(name, glob))
    return _matches_glob(case.id, glob) or _matches_glob(name, glob)


def _matches_glob(case_id: str, glob: str) -> bool:
    """`*`, `?`, `[...]`, alternatives in braces (not nested), and a leading `!` for all others."""
    if glob.startswith("!"):
        return not _matches_glob(case_id, glob[1:])
    if glob == case_id:  # brackets in an id are then not a pattern
        return True
    before, opened, rest = glob.partition("{")
    inside, closed, after = rest.partition("}")
    if opened and closed:
        return any(_matches_glob(case_id, before + choice + after) for choice in inside.split(","))
    return fnmatch.fnmatchcase(case_id, glob)


def all_warnings(suite: Suite) -> Iterator[Problem]:
    """Probable mistakes in a suite and its cases."""
    yield from suite.warnings
    yield from doubled_modules(suite)
    yield from doubled_files(suite)
    yield from doubled_keys(suite)
    yield from beyond_reach(suite)
    yield from getattr(suite.cases, "unknown_keys", tuple)()


def lines_of_warnings(warnings: Iterable[Problem]) -> list[str]:
    """The lines of `Plan.warnings`, each once."""
    warnings = iter(warnings)
    if (first := next(warnings, None)) is None:
        return []
    from evalwright.files.problems import ProblemKinds

    lines: dict[str, None] = {}
    unlisted = 0
    for problem in ProblemKinds(chain([first], warnings)):
        if len(lines) < _MOST_WARNINGS:
            lines[str(problem)] = None
        else:
            unlisted += 1 + problem.more
    # Some formats stop counting their own.
    return [*lines, f"… and at least {unlisted:,} more"] if unlisted else [*lines]


def with_warnings(plan: Plan, suite: Suite, cases: Iterable[Case]) -> Iterator[Case]:
    """The cases; after the last one, the plan has the warnings about all of them, and those found while reading them.

    It then also has the hashes of the files that were read.
    """

    def after() -> Iterator[Case]:
        plan.files = hashed(suite)
        plan.warnings = [*lines_of_warnings(all_warnings(suite)), *_idle_placements(plan)]
        yield from ()

    return chain(cases, after())


def _idle_placements(plan: Plan) -> Iterator[str]:
    """A warning about systems that name a cluster's resources although no cluster calls them."""
    named = [variant.name for variant in plan.variants if variant.ray is not UNSET]
    if named and plan.run.executor is UNSET:
        yield f"{', '.join(named)}: nothing reads the key 'ray' of a system without the executor ray (--executor ray)"
