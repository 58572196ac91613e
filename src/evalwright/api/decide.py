"""Whether a change may ship."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from evalwright.api.arguments import kind_problems
from evalwright.api.decisions import Decision, VariantDecision
from evalwright.api.pairs import paired_variants, warnings_of_same_run
from evalwright.api.problems import named_as_arguments, points_of, refused
from evalwright.api.runs import Run, run_of
from evalwright.errors import InputError, Problem, counted
from evalwright.model.cell_index import rereading
from evalwright.statistics.corrections import adjust_p_values
from evalwright.statistics.levels import LEAST_ALPHA

if TYPE_CHECKING:
    from evalwright.decisions.runs import TwoRuns
    from evalwright.decisions.terms import Guard, Terms
    from evalwright.model.decision import Decision as Record

__all__ = ["decide"]

_Verdict = Literal["accepted", "rejected", "undecided"]
_VERDICTS: Mapping[str, _Verdict] = {"ship": "accepted", "dont": "rejected", "undecided": "undecided"}
_ADJUSTED = {"holm": "holm_adjusted", "bh": "benjamini_hochberg_adjusted"}
_CHOICES = {
    "correction": ("holm", "bh", "none"),
    "errors": ("exclude", "fail", "strict"),
    "population": ("cases", "suite"),
}


def decide(
    before: Run | str | os.PathLike[str],
    after: Run | str | os.PathLike[str],
    *,
    metric: str = "pass_rate",
    margin: float | str | None = None,
    alpha: float = 0.05,
    correction: Literal["holm", "bh", "none"] = "holm",
    variant: str | Mapping[str, str] | None = None,
    better: bool = False,
    guards: Mapping[str, str] | None = None,
    slices: Sequence[str] = (),
    errors: Literal["exclude", "fail", "strict"] = "exclude",
    population: Literal["cases", "suite"] = "cases",
    group: str | None = None,
    labels: str | os.PathLike[str] | None = None,
    allow_changed: bool = False,
) -> Decision:
    """Whether the later run is no worse than the earlier one by more than a margin.

    Cases are paired; trials of a case are averaged, and cases of a group count as one unit. The tests are those of
    `evalwright.statistics.differences`: McNemar 1947 (exact), Student's t with jackknifed errors, exact sign flips, or
    an interval guarded by two pseudo-units where hardly anything differs.

    Args:
        before: The earlier run, or its folder.
        after: The later run, or its folder.
        metric: "pass_rate", or the name of an evaluator whose score is compared.
        margin: The loss that would not matter (≥ 0): for rates a fraction below 1 (0.02 is 2 points) or a text
            ("2pp"), else in the score's units. 0: accepted means better. None: 2 points, or 2 % of its range.
        alpha: The error rate (0 to 1) of the two-sided test.
        correction: How p-values of several variants are adjusted: "holm" (Holm 1979), "bh" (Benjamini and Hochberg
            1995); verdicts and intervals use alpha divided by their number. "none": each is decided by itself.
        variant: The one to decide, or a mapping from its name before to its name after. None: all, or the only one.
        better: Accept only a variant that is better, not one that is merely no worse.
        guards: What must hold as well, as on the command line: `{"cost": "+10%", "latency_p95": "+30%",
            "evaluator:polite": "-1pp"}`.
        slices: Keys by which cases are shown apart: "tag", "metadata.lang".
        errors: "exclude"; "fail": errors of the system count as failures; "strict": the verdict must hold whatever the
            errors would have been.
        population: "suite": its cases are all there are, and only their trials are a sample (at least 2 per run).
        group: A metadata key whose values are groups of cases; "none": no groups. None: the cases' own groups.
        labels: A file of human labels of answers of both runs. None: those that `evalwright calibrate` stored.
        allow_changed: Leave out cases that changed between the runs, and keep evaluators that did.

    Returns:
        The decision; `accepted` is a bool for a release script. Trials that ended in an error are left out; if
        counting all of them as failures or all as passes would change the verdict, it is undecided.

    Raises:
        InputError: arguments or runs that cannot be used, or cases or evaluators that changed between the runs.
    """
    loss = None if margin is None else points_of(margin, "margin")
    kinds = kind_problems(before=before, after=after, variant=variant, slices=slices, group=group, labels=labels)
    flags = kind_problems(better=better, allow_changed=allow_changed)
    _check(loss, metric, alpha, correction, errors, population, guards, [*kinds, *flags])
    terms = _terms(metric, loss, alpha, better, slices, errors, population, group)
    one, other = run_of(before), run_of(after)
    pairs = _decisions(one, other, terms, guards or {}, variant, labels, allow_changed, together=correction != "none")
    return _decision(*pairs, terms, correction)


def _decision(
    comparisons: Sequence[tuple[tuple[str, str], Record]],
    dominated: Mapping[str, Sequence[str]],
    terms: Terms,
    correction: str,
) -> Decision:
    """The variants together: accepted if all are, rejected if one is."""
    ps = _adjusted_p_values([part.p_better if terms.better else part.p_margin for _, part in comparisons], correction)
    variants = [_variant(pair, part, p) for (pair, part), p in zip(comparisons, ps, strict=True)]
    verdicts = {variant.verdict for variant in variants}
    verdict: _Verdict = "undecided"
    if "rejected" in verdicts:
        verdict = "rejected"
    elif verdicts == {"accepted"}:
        verdict = "accepted"
    records = tuple(part for _, part in comparisons)
    margin = records[0].margin if records else terms.margin or 0.0
    accepted, terms_of = verdict == "accepted", (terms.metric, margin, terms.alpha, correction)
    return Decision(accepted, verdict, *terms_of, terms.better, tuple(variants), dominated, records)


def _terms(
    metric: str,
    margin: float | None,
    alpha: float,
    better: bool,
    slices: Sequence[str],
    errors: Any,
    population: Any,
    group: str | None,
) -> Terms:
    from evalwright.decisions.terms import Terms

    keys = (slices,) if isinstance(slices, str) else tuple(slices)
    return Terms(
        metric=metric,
        margin=margin,
        alpha=alpha,
        better=better,
        slices=keys,
        errors=errors,
        population=population,
        group=group,
    )


@rereading
def _decisions(
    one: Run,
    other: Run,
    terms: Terms,
    guards: Mapping[str, str],
    variant: str | Mapping[str, str] | None,
    labels: str | os.PathLike[str] | None,
    allow_changed: bool,
    *,
    together: bool,
) -> tuple[list[tuple[tuple[str, str], Record]], dict[str, list[str]]]:
    """The decision about each pair of variants, with their names; and which variants are dominated, and by which."""
    from msgspec.structs import replace

    from evalwright.decisions.clusters import explain
    from evalwright.decisions.runs import two_runs
    from evalwright.run.judged_pairs import judges_of_runs

    reader_a, plan_a = one._open_records()
    reader_b, plan_b = other._open_records()
    with closing(reader_a), closing(reader_b), named_as_arguments():
        runs = two_runs(reader_a, plan_a, reader_b, plan_b, terms)
        with runs.mistakes:
            runs.know(*judges_of_runs(reader_a, plan_a, reader_b, plan_b, None if labels is None else Path(labels)))
        with runs.mistakes:
            if not allow_changed:
                _must_be_alike(runs, terms.metric)
        pairs: list[tuple[str, str]] = []
        with runs.mistakes:
            pairs = paired_variants(one.variants, other.variants, variant)
        with runs.mistakes:
            runs.terms = replace(terms, guards=_guards(guards, runs), family=len(pairs) if together else 1)
        runs.mistakes.refuse()
        decisions = [runs.decision(*pair) for pair in pairs]
        explain(runs.before, reader_b, decisions)
        if same := warnings_of_same_run(one, other, pairs):
            for one_of_them in decisions:
                one_of_them.warnings = [*same, *one_of_them.warnings]
        return list(zip(pairs, decisions, strict=True)), runs.dominated(pairs)


def _guards(guards: Mapping[str, str], runs: TwoRuns) -> tuple[Guard, ...]:
    from evalwright.decisions.terms import Guard, guard_of

    evaluators = sorted({name for side in runs.b.values() for name in side.scores})
    chosen = {name: guard_of(name, str(limit), evaluators) for name, limit in guards.items()}
    if problems := [refused(f"guards[{name!r}]", guard) for name, guard in chosen.items() if isinstance(guard, str)]:
        raise InputError(problems)
    return tuple(guard for guard in chosen.values() if isinstance(guard, Guard))


def _adjusted_p_values(ps: Sequence[float | None], correction: str) -> list[float | None]:
    """p-values adjusted for the number of variants; those that are None stay None."""
    p_values = [p for p in ps if p is not None]
    if correction != "none":
        p_values = [float(p) for p in adjust_p_values(p_values)[_ADJUSTED[correction]]]
    in_order = iter(p_values)
    return [None if p is None else next(in_order) for p in ps]


def _variant(names: tuple[str, str], part: Record, p: float | None) -> VariantDecision:
    from msgspec import to_builtins

    errors, by = part.errors, part.reasons[0] if part.reasons else ""
    return VariantDecision(
        names[1] if names[0] == names[1] else f"{names[0]} → {names[1]}",
        _VERDICTS[part.verdict],
        part.difference,
        part.ci,
        p,
        part.n,
        (errors.a.target + errors.a.evaluator, errors.b.target + errors.b.evaluator),
        part.method or "",
        by,
        tuple(part.guards),
        tuple(part.slices),
        tuple(part.evaluators),
        part.judge,
        part.changed,
        part.next,
        tuple(part.warnings),
        to_builtins(part),
    )


def _check(
    margin: float | None,
    metric: Any,
    alpha: Any,
    correction: str,
    errors: str,
    population: str,
    guards: Any,
    kinds: Iterable[Problem],
) -> None:
    problems = list(kinds)
    if not isinstance(metric, str):
        problems.append(refused("metric", f"expected 'pass_rate' or the name of an evaluator, found {metric!r}"))
    if margin is None:
        pass
    elif not margin >= 0:
        problems.append(refused("margin", f"expected a number of at least 0, found {margin!r}"))
    elif metric == "pass_rate" and margin >= 1:  # 2 may be meant as points; 1 would allow any loss
        problems.append(refused("margin", f"expected a fraction below 1, like 0.02 or '2pp', found {margin!r}"))
    if not isinstance(alpha, int | float) or not LEAST_ALPHA <= alpha < 1:
        problems.append(refused("alpha", f"expected a number from {LEAST_ALPHA:g} to below 1, found {alpha!r}"))
    if guards is not None and not isinstance(guards, Mapping):
        problems.append(refused("guards", f"expected a mapping like {{'cost': '+10%'}}, found {guards!r}"))
    choices = {"correction": correction, "errors": errors, "population": population}
    for name, known in _CHOICES.items():
        if choices[name] not in known:
            *rest, last = map(repr, known)
            problems.append(refused(name, f"expected {', '.join(rest)} or {last}, found {choices[name]!r}"))
    if problems:
        raise InputError(problems)


def _must_be_alike(runs: TwoRuns, metric: str) -> None:
    """Raise InputError if a case of both runs asks or expects something else in each, or if an evaluator differs."""
    from evalwright.decisions.identity import some_names

    changed, problems = runs.identity.cases, []
    if changed:
        changes = f"{counted(len(changed), 'case')} changed between the runs: {some_names(changed)}"
        problems.append(refused("after", changes))
    problems += [
        refused("after", f"the evaluator {name!r} changed between the runs")
        for name in [*runs.identity.evaluators, *runs.identity.alone]
        if metric in ("pass_rate", name)
    ]
    if problems:
        raise InputError(problems)
