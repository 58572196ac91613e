"""Checks of one section of `eval.yaml` against another."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from evalwright.errors import did_you_mean
from evalwright.files.key_paths import Place
from evalwright.formats.shared.findings import REACHED_BY_ALL

__all__ = ["idle", "ill_named", "one_place", "out_of_reach", "unused"]

EXECUTORS = ("local", "ray")

Mistakes = Iterator[tuple[Place, str]]


def ill_named(raw: dict[str, Any]) -> Mistakes:
    """Duplicate names, and names of things that do not exist; also in sections with other mistakes."""
    evaluators, systems = _names(raw, "evaluators"), _names(raw, "systems")
    yield from _repeated_names("evaluators", evaluators)
    yield from _repeated_names("systems", systems)
    for label in ("all_required", "any_required"):
        wanted = _value_at(raw, "pass_criteria", label)
        for i, name in enumerate(wanted if isinstance(wanted, list) else ()):
            if isinstance(name, str) and name not in evaluators.values():
                yield ("pass_criteria", label, i), f"unknown evaluator {name!r}{_known_names(name, evaluators)}"
    baseline = _value_at(raw, "run", "baseline_variant")
    if isinstance(baseline, str) and baseline not in systems.values():
        yield ("run", "baseline_variant"), f"unknown system {baseline!r}{_known_names(baseline, systems)}"
    yield from _pools(raw)
    executor = _value_at(raw, "run", "executor", "type")
    if isinstance(executor, str) and executor not in EXECUTORS:
        near = did_you_mean(executor, EXECUTORS)
        yield ("run", "executor", "type"), f"unknown executor {executor!r}{near} (there are: {', '.join(EXECUTORS)})"


def one_place(raw: dict[str, Any]) -> Mistakes:
    """Outputs that keep the run where an earlier one does, however its path is spelled."""
    outputs = raw.get("output")
    seen: dict[tuple[Any, ...], int] = {}
    for i, output in enumerate(outputs if isinstance(outputs, list) else ()):
        fields = output if isinstance(output, dict) else {}
        kind, path = fields.get("type"), fields.get("path")
        if kind in ("local_files", "sqlite") and isinstance(path, str) and "\0" not in path:
            first = seen.setdefault((kind, os.path.realpath(path)), i)
        elif kind == "postgres":
            first = seen.setdefault((kind, str(fields.get("dsn")), str(fields.get("schema"))), i)
        else:
            continue
        if first != i:
            yield ("output", i), f"the run is kept at the same place as by output[{first}]"


def idle(raw: dict[str, Any]) -> Mistakes:
    """Keys that take effect only together with others: alone they look like a limit but are none.

    At its default a key may appear anywhere: a run's `config.yaml` has them all.
    """
    bands = _value_at(raw, "pass_criteria", "rule") == "bands"
    evaluators = raw.get("evaluators")
    for i, evaluator in enumerate(evaluators if isinstance(evaluators, list) else ()):
        fields = evaluator if isinstance(evaluator, dict) else {}
        for key, default in () if bands else (("weight", 1), ("required", None)):
            if fields.get(key, default) not in (None, default):
                yield ("evaluators", i, key), "nothing reads this key: it needs pass_criteria: {rule: bands}"
        if fields.get("threshold_op", "gte") not in (None, "gte") and fields.get("threshold") is None:
            yield ("evaluators", i, "threshold_op"), "nothing reads this key: it needs a 'threshold' as well"
    if not bands and _value_at(raw, "pass_criteria", "threshold") is not None:
        yield ("pass_criteria", "threshold"), "nothing reads this key: it needs rule: bands"
    for key in ("all_required", "any_required") if bands else ():
        if _value_at(raw, "pass_criteria", key):
            yield ("pass_criteria", key), "nothing reads this key with rule: bands; 'required' of evaluators does that"


_AS_IT_STANDS = (
    "contains_text searches for this text literally and fills in no template; what a single case expects "
    "belongs in its expected.answer_should_include"
)


def out_of_reach(raw: dict[str, Any]) -> Mistakes:
    """Conditions that always or never hold: thresholds, gates, texts that no or every answer contains."""
    evaluators = raw.get("evaluators")
    for i, evaluator in enumerate(evaluators if isinstance(evaluators, list) else ()):
        if (threshold := _value_at(evaluator, "threshold")) is not None:
            for message in _threshold_mistakes(threshold, _value_at(evaluator, "threshold_op") or "gte"):
                yield ("evaluators", i, "threshold"), message
        for place, message in _texts(evaluator):
            yield ("evaluators", i, "config", *place), message
    if _value_at(raw, "pass_criteria", "rule") == "bands" and _value_at(raw, "pass_criteria", "threshold") == 0:
        yield ("pass_criteria", "threshold"), REACHED_BY_ALL
    if (gate := raw.get("gate")) is not None:
        from evalwright.formats.shared.gates import values_out_of_reach  # most suites have no gate, and no thresholds

        yield from values_out_of_reach(gate)


def _threshold_mistakes(threshold: Any, comparison: Any) -> Iterator[str]:
    from evalwright.formats.shared.gates import as_share, is_beyond

    if is_beyond(threshold):
        yield f"scores usually range from 0 to 1{as_share(threshold)}"
    elif (threshold, comparison) in _ALWAYS:
        yield REACHED_BY_ALL


def unused(raw: dict[str, Any]) -> Mistakes:
    """Keys that the other keys leave unread; unlike those in `idle`, they limit nothing."""
    if _value_at(raw, "dataset", "seed") is not None and _value_at(raw, "dataset", "sample") is None:
        yield ("dataset", "seed"), "without 'sample' nothing is drawn, and nothing reads this key"
    systems, pools = raw.get("systems"), _value_at(raw, "run", "executor", "pools")
    used = {str(_value_at(system, "pool")) for system in (systems if isinstance(systems, list) else ())}
    for name in pools if isinstance(pools, dict) else ():
        if str(name) not in used:
            yield ("run", "executor", "pools", name), "no system names this pool, and it limits nothing"
    retry = _value_at(raw, "run", "retry")
    if isinstance(retry, dict) and retry and retry.get("max_attempts", 1) == 1:
        for key in ("on", "backoff_seconds"):
            if retry.get(key):
                yield ("run", "retry", key), "with max_attempts: 1 nothing is tried again, and nothing reads this key"


_ALWAYS = ((0, "gte"), (1, "lte"))
"""Thresholds with a comparison that every score passes."""
_LOOKED_FOR = {
    "contains_text": ("all_of", "any_of", "none_of"),
    "contains": ("phrases",),
    "not_contains": ("phrases",),
    "regex": ("pattern",),
    "javascript_regex": ("value",),
    "field_check": ("matches",),
    "thinking_does_not_leak": ("forbidden_patterns",),
}
"""Keys of evaluators whose values are texts to search for."""
_NEVER_EMPTY = ("any_of", "phrases")
"""Lists of them that are never left empty on purpose; an empty `all_of` or `none_of` overrides the case's."""


def _texts(evaluator: Any) -> Mistakes:
    """Search texts that cannot work, by their place in the configuration of an evaluator."""
    kind = _value_at(evaluator, "type")
    for key in _LOOKED_FOR.get(kind, ()) if isinstance(kind, str) else ():
        texts = _value_at(evaluator, "config", key)
        if key in _NEVER_EMPTY and texts == []:
            yield (key,), "an empty list checks nothing: say what to look for"
        for number, text in enumerate(texts if isinstance(texts, list) else [texts]):
            place = (key, number) if isinstance(texts, list) else (key,)
            if text == "":
                yield place, "every text contains the empty text: say what to look for"
            elif kind == "contains_text" and isinstance(text, str) and "{{" in text and "}}" in text:
                yield place, _AS_IT_STANDS
    members = _value_at(evaluator, "config", "evaluators") if kind == "composite" else None
    for number, member in enumerate(members if isinstance(members, list) else ()):
        for inner, message in _texts(member):
            yield ("evaluators", number, "config", *inner), message


def _pools(raw: dict[str, Any]) -> Mistakes:
    """Systems that name a pool missing from `run.executor.pools`."""
    pools = _value_at(raw, "run", "executor", "pools")
    known = [name for name in pools if isinstance(name, str)] if isinstance(pools, dict) else []
    systems = raw.get("systems")
    for i, system in enumerate(systems if isinstance(systems, list) else ()):
        pool = _value_at(system, "pool")
        if isinstance(pool, str) and pool not in known:
            there = f"there are: {', '.join(known)}" if known else "run.executor.pools has none"
            yield ("systems", i, "pool"), f"unknown pool {pool!r}{did_you_mean(pool, known)} ({there})"


def _value_at(raw: Any, *steps: str) -> Any:
    for step in steps:
        raw = raw.get(step) if isinstance(raw, dict) else None
    return raw


def _names(raw: dict[str, Any], section: str) -> dict[int, str]:
    """The names in a section by position, including those of items with other mistakes."""
    items = raw.get(section)
    return {
        i: item["name"]
        for i, item in enumerate(items if isinstance(items, list) else ())
        if isinstance(item, dict) and isinstance(item.get("name"), str)
    }


def _repeated_names(section: str, names: dict[int, str]) -> Mistakes:
    first: dict[str, int] = {}
    for i, name in names.items():
        if name in first:
            yield (section, i, "name"), f"duplicate name {name!r}, as {section}[{first[name]}]"
        first.setdefault(name, i)


def _known_names(name: str, names: dict[int, str]) -> str:
    return f"{did_you_mean(name, names.values())} (there are: {', '.join(names.values())})"
