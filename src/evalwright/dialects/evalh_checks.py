"""What one section of `eval.yaml` says about another, and what it asks for that is not there yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evalwright.dialects.evalh_file import EvalFile
from evalwright.errors import did_you_mean
from evalwright.files.places import Place

__all__ = ["ill_named", "not_built"]

Told = Iterator[tuple[Place, str]]


def ill_named(raw: dict[str, Any]) -> Told:
    """Names that come twice, and names that nothing has; also in sections with other mistakes."""
    evaluators, systems = _names(raw, "evaluators"), _names(raw, "systems")
    yield from _repeated("evaluators", evaluators)
    yield from _repeated("systems", systems)
    for label in ("all_required", "any_required"):
        wanted = _found(raw, "pass_criteria", label)
        for i, name in enumerate(wanted if isinstance(wanted, list) else ()):
            if isinstance(name, str) and name not in evaluators.values():
                yield ("pass_criteria", label, i), f"unknown evaluator {name!r}{_known(name, evaluators)}"
    baseline = _found(raw, "run", "baseline_variant")
    if isinstance(baseline, str) and baseline not in systems.values():
        yield ("run", "baseline_variant"), f"unknown system {baseline!r}{_known(baseline, systems)}"
    executor = _found(raw, "run", "executor", "type")
    if isinstance(executor, str) and executor != "local":
        yield ("run", "executor", "type"), f"run.executor.type: unknown executor {executor!r} (registered: local)"


def _found(raw: Any, *steps: str) -> Any:
    for step in steps:
        raw = raw.get(step) if isinstance(raw, dict) else None
    return raw


def _names(raw: dict[str, Any], section: str) -> dict[int, str]:
    """The names in a section by position, those of items with other mistakes included."""
    items = raw.get(section)
    return {
        i: item["name"]
        for i, item in enumerate(items if isinstance(items, list) else ())
        if isinstance(item, dict) and isinstance(item.get("name"), str)
    }


def _repeated(section: str, names: dict[int, str]) -> Told:
    first: dict[str, int] = {}
    for i, name in names.items():
        if name in first:
            yield (section, i, "name"), f"duplicate name {name!r}, as {section}.{first[name]}"
        first.setdefault(name, i)


def _known(name: str, names: dict[int, str]) -> str:
    return f"{did_you_mean(name, names.values())} (there are: {', '.join(names.values())})"


def not_built(file: EvalFile) -> Told:
    """Features of the format that would change the run if they were there: better refused than passed over."""
    for system in file.systems:
        if system.enrich_trace_from:
            yield system.at("enrich_trace_from"), "enriching traces is not supported yet"
        if system.pool is not None:
            yield system.at("pool"), "pools are not supported yet"
    if file.workspace is not None:
        yield ("workspace",), f"workspaces are not supported yet (found the type {file.workspace.type!r})"
    if file.run.cost_limit_usd is not None:
        yield ("run", "cost_limit_usd"), "a limit of cost is not supported yet"
    if file.run.executor.pools:
        yield ("run", "executor", "pools"), "pools are not supported yet"
    if file.metrics.price_table_path is not None:
        yield ("metrics", "price_table_path"), "price tables are not supported yet"
    for store in file.output:
        if store.at() != ("output", 0):
            yield store.at(), "more than one store is not supported yet: only the first one is written to"
