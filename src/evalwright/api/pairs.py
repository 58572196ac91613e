"""Two runs side by side."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec

from evalwright.api.arguments import kind_problems
from evalwright.api.comparisons import Comparison, adjusted
from evalwright.api.problems import refused
from evalwright.api.runs import Run, run_of
from evalwright.errors import InputError, did_you_mean
from evalwright.model.cell_index import rereading

if TYPE_CHECKING:
    from evalwright.model.decision import Decision
    from evalwright.model.plan import Plan
    from evalwright.model.protocols import RunReader
    from evalwright.model.summary import VariantDelta

__all__ = ["compare", "paired_variants", "warnings_of_same_run"]


@rereading
def compare(
    before: Run | str | os.PathLike[str],
    after: Run | str | os.PathLike[str],
    *,
    variant: str | Mapping[str, str] | None = None,
    by: str | None = None,
) -> Comparison:
    """Compare two runs case by case: what changed in the pass rate, and how sure that is.

    Args:
        before: The earlier run, or its folder.
        after: The later run, or its folder.
        variant: The variant to compare, or a mapping from its name before to its name after. None: all variants that
            both runs have, or the only one of each.
        by: A metadata key; the cases of each of its values are compared separately. None: all cases together.

    Returns:
        One difference for each variant (and value of `by`), with its interval and p-value.

    Raises:
        InputError: a run that cannot be read, variants that cannot be paired, or a key that no case has.
    """
    if problems := list(kind_problems(before=before, after=after, variant=variant, by=by)):
        raise InputError(problems)
    one, other = run_of(before), run_of(after)
    reader_a, plan_a = one._open_records()
    reader_b, plan_b = other._open_records()
    with closing(reader_a), closing(reader_b):
        deltas = list(_deltas(reader_a, plan_a, reader_b, plan_b, variant, by))
    same = warnings_of_same_run(one, other, paired_variants(one.variants, other.variants, variant))
    warnings = (*same, *(line for _, decision in deltas for line in decision.warnings))
    return Comparison(one._label, other._label, adjusted([delta for delta, _ in deltas]), warnings)


def _deltas(
    reader_a: RunReader,
    plan_a: Plan,
    reader_b: RunReader,
    plan_b: Plan,
    variant: str | Mapping[str, str] | None,
    by: str | None,
) -> Iterator[tuple[VariantDelta, Decision]]:
    from evalwright.decisions.comparison import delta_of
    from evalwright.decisions.runs import two_runs
    from evalwright.decisions.terms import Terms

    runs = two_runs(reader_a, plan_a, reader_b, plan_b, Terms(keep_changed=True))
    pairs = paired_variants(list(runs.a), list(runs.b), variant)
    values = {} if by is None else _metadata(reader_b, by)
    for name, other in pairs:
        label = other if name == other else f"{name} → {other}"
        if by is None:
            decision = runs.decision(name, other)
            yield delta_of(label, decision, runs.latency_change(name, other)), decision
            continue
        for value in sorted(set(values.values())):
            cases = {case for case, of in values.items() if of == value}
            decision = runs.decision(name, other, only=cases)
            yield delta_of(f"{label}, {by}={value}", decision, None), decision


def _metadata(reader: RunReader, by: str) -> dict[str, str]:
    """The text of a metadata value by case, for the cases that have one. Raises InputError if none does."""
    names: dict[str, str] = {}
    seen: set[str] = set()
    for case in reader.cases():
        seen.update(case.metadata)
        if (value := case.metadata.get(by)) is not None:
            names[case.key] = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if not names:
        there = ", ".join(sorted(seen)) or "no metadata"
        raise InputError(
            refused("by", f"no case has {by!r} in its metadata{did_you_mean(by, seen)} (there is: {there})")
        )
    return names


def warnings_of_same_run(before: Run, after: Run, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """What to say where a variant of a run is compared with itself, which shows nothing."""
    same = before is after or (before.path is not None and before.path == after.path)
    if not same or all(one != other for one, other in pairs):
        return []
    return ["before and after are the same run; its variants are compared by variant={'A': 'B'}"]


def paired_variants(
    before: Sequence[str], after: Sequence[str], chosen: str | Mapping[str, str] | None
) -> list[tuple[str, str]]:
    """Names before and after of the variants to compare. Raises InputError."""
    if isinstance(chosen, str):
        pairs = [(chosen, chosen)]
    elif chosen is not None:
        pairs = list(chosen.items())
    elif len(before) == len(after) == 1:
        pairs = [(before[0], after[0])]
    else:
        pairs = [(name, name) for name in before if name in after]
    problems = [
        refused(
            "variant",
            f"no variant {name!r} {when}{did_you_mean(name, variants)}"
            f" (there are: {', '.join(variants)}; a mapping {{'A': 'B'}} pairs two names)",
        )
        for pair in pairs
        for name, variants, when in zip(pair, (before, after), ("before", "after"), strict=True)
        if name not in variants
    ]
    if not pairs:
        message = f"no variant is in both runs (before: {', '.join(before)}; after: {', '.join(after)})"
        problems.append(refused("variant", message))
    if problems:
        raise InputError(problems)
    return pairs
