"""Two stored runs, variant by variant: what both have, what changed between them, and the decision about each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from evalwright.decisions.engine import decision_of
from evalwright.decisions.identity import Identity, identity_of, some_names
from evalwright.decisions.pairing import Labelled
from evalwright.decisions.sides import PASS_RATE, SideCounts, sides_of
from evalwright.decisions.terms import Terms
from evalwright.errors import InputError, Problem, counted, did_you_mean
from evalwright.model.decision import Decision
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader

__all__ = ["TwoRuns", "two_runs"]

_METADATA = "metadata."


class TwoRuns(msgspec.Struct):
    """Both runs, folded once."""

    a: dict[str, SideCounts]
    b: dict[str, SideCounts]
    identity: Identity
    terms: Terms
    known: Labelled

    def decision(self, before: str, after: str, only: Collection[str] | None = None) -> Decision:
        """The decision about one variant of each, over all cases or `only` some."""
        a, b = self.a[before], self.b[after]
        if only is not None:
            a, b = a.of(only), b.of(only)
        known = self.known
        if self.terms.group is None:
            known = known._replace(groups={**a.groups, **b.groups})
        return decision_of(a, b, self.terms, self.identity, known)

    def latency_change(self, before: str, after: str) -> float | None:
        """The difference of the mean latencies of all judged trials, in milliseconds."""
        one, other = self.a[before].mean("latency")[0], self.b[after].mean("latency")[0]
        return None if one is None or other is None else other - one

    def refuse_changed(self, *, cases: bool = False) -> None:
        """Raise InputError where an evaluator judges otherwise; with `cases` also where a case is another one."""
        problems = []
        if cases and self.identity.cases:
            found = f"{len(self.identity.cases):,} of {counted(self.identity.shared, 'case')} changed between the runs"
            problems.append(
                Problem("", f"{found}: {some_names(self.identity.cases)} (--allow-changed leaves them out)")
            )
        if self.identity.evaluators:
            names = some_names(self.identity.evaluators)
            problems.append(Problem("", f"evaluator {names} changed between the runs (--allow-changed goes on)"))
        if problems:
            raise InputError(problems)

    def refuse_strangers(self, before: str, after: str) -> None:
        """Raise InputError where no case of the one is a case of the other, or all of these changed."""
        shared = self.a[before].passes.keys() & self.b[after].passes.keys()
        if not shared:
            raise InputError(f"{before} in A and {after} in B have no case in common: nothing can be paired")
        if not self.terms.keep_changed and shared <= set(self.identity.cases):
            changed = (
                f"all {counted(len(shared), 'case')} that both runs have changed: {some_names(self.identity.cases)}"
            )
            raise InputError(f"{changed}; nothing can be paired (--allow-changed of compare pairs them all the same)")


def two_runs(reader_a: RunReader, plan_a: Plan, reader_b: RunReader, plan_b: Plan, terms: Terms) -> TwoRuns:
    """Fold both runs. Raises InputError for a metric, guard, slice or group that they do not have."""
    a, b = sides_of(reader_a, plan_a), sides_of(reader_b, plan_b)
    found = TwoRuns(a, b, identity_of(reader_a, plan_a, reader_b, plan_b), terms, Labelled())
    _check_metric(terms.metric, a, b)
    if terms.slices or terms.group not in (None, "none"):
        found.known = _labelled(reader_b, terms)
    return found


def _check_metric(metric: str, a: Mapping[str, SideCounts], b: Mapping[str, SideCounts]) -> None:
    mine, theirs = ({name for side in sides.values() for name in side.scores} for sides in (a, b))
    if metric != PASS_RATE and metric not in mine & theirs:
        known = [PASS_RATE, *sorted(mine & theirs)]
        raise InputError(f"no metric {metric!r}{did_you_mean(metric, known)} (there are: {', '.join(known)})")


def _labelled(reader: RunReader, terms: Terms) -> Labelled:
    """Groups and slices by the metadata and tags of the cases."""
    groups: dict[str, str] = {}
    slices: dict[tuple[str, str], set[str]] = {}
    seen: set[str] = set()
    for case in reader.cases():
        seen.update((f"{_METADATA}{name}" for name in case.metadata), ["tag"] if case.tags else [])
        if terms.group is not None and terms.group in case.metadata:
            groups[case.key] = _text(case.metadata[terms.group])
        for key in terms.slices:
            for value in _values(key, case.tags, case.metadata):
                slices.setdefault((key.removeprefix(_METADATA), value), set()).add(case.key)
    there = ", ".join(sorted(seen)) or "neither tags nor metadata"
    unknown = [
        Problem("--slices", f"no slices by {key!r}{did_you_mean(key, seen)} (there are: {there})")
        for key in terms.slices
        if key not in seen
    ]
    if terms.group not in (None, "none") and not groups:
        unknown.append(Problem("--group", f"no case has {terms.group!r} in its metadata, by which to group"))
    if unknown:
        raise InputError(unknown)
    return Labelled(groups, slices)


def _values(key: str, tags: Sequence[str], metadata: Mapping[str, Any]) -> list[str]:
    if key == "tag":
        return list(tags)
    name = key.removeprefix(_METADATA)
    return [_text(metadata[name])] if name in metadata else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
