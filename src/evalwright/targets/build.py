"""Builds the target of a variant, and finds the keys of a variant that nothing reads.

Such a key is most likely mistyped and has no effect. A target lists the keys that it reads in its attribute
`config_keys`; a target without it, such as a Python function, may have any keys. With `unread(config)` a target yields
unread keys at deeper levels, as key and message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from evalwright.errors import InputError, Problem, TargetError, did_you_mean
from evalwright.files.key_paths import as_written
from evalwright.model.plan import Variant
from evalwright.model.protocols import Target
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer
from evalwright.model.traits import Traits
from evalwright.registry import is_built_in, knows, load
from evalwright.session import import_from
from evalwright.targets.answers import stored_form

__all__ = [
    "WITHOUT_EFFECT",
    "Unread",
    "build_inner_target",
    "build_target",
    "default_timeout",
    "inside",
    "keys_of",
    "optional_parts",
    "target_calls_models",
    "target_traits",
    "unknown",
    "unread_of",
]

_ALLOW_MISSING = "allow_missing"
"""The key of a system that lists what its answers need not have."""
WITHOUT_EFFECT = {"cost_limit_usd": "it has no effect on one system: run.cost_limit_usd limits the run"}
"""Keys that evalh's own examples have under `systems` although evalh does not read them: they only get a warning."""
_SECONDS = 120.0
_PARTS = ("final_answer", "structured")
_OF_THE_RUNNER = ("timeout_seconds", "concurrency", "enrich_trace_from", "model")
"""Keys of any system: limits, enrichers, and the model whose price applies to its tokens."""

Unread = Iterator[tuple[str, str]]

_OF_OURS: dict[str, type | tuple[type, ...]] = {
    "account": str,
    "address": str,
    "grace_seconds": (int, float),
    "may_be_silent": bool,
}
"""What a run reads of our targets. In a plug-in, something of another type only has the same name."""


def build_target(variant: Variant, import_paths: Sequence[str]) -> Target:
    """The target of `variant`, with its configuration checked and its code imported, but nothing called yet.

    Raises InputError whose keys are relative to the variant (`target`, `init_kwargs`).
    """
    import_from(import_paths)
    target: Target = load("targets", variant.adapter)(variant)
    if is_built_in(type(target)):
        return target

    return _PluginTarget(target)


def build_inner_target(inner: Variant, adapter_key: str, config_key: str) -> Target:
    """The target of a system inside another, whose keys `adapter_key` and `config_key` name and configure it.

    Raises InputError with keys of the outer system.
    """
    try:
        return build_target(inner, ())
    except InputError as error:
        if not error.problems:
            raise InputError(Problem("", error.headline, key=adapter_key)) from error
        placed = [replace(p, key=f"{config_key}.{p.key}".strip(".")) for p in error.problems]
        raise InputError(placed) from error


def default_timeout(adapter: str, config: Mapping[str, Any]) -> float:
    """The time limit of a call, in seconds, for systems that do not set one."""
    kind = load("targets", adapter) if knows("targets", adapter) else None
    kind_timeout: Callable[[Mapping[str, Any]], float] | None = getattr(kind, "default_timeout", None)
    return _SECONDS if kind_timeout is None else kind_timeout(config)


def target_traits(target: object) -> Traits:
    """What a target, or the function registered for one, declares about itself; targets have no trait but `asks`."""
    return Traits(asks=getattr(target, "asks", None))


def target_calls_models(adapter: str) -> bool:
    """Whether the targets registered under this name may call models. Raises InputError for an unknown one."""
    return target_traits(load("targets", adapter)).asks is not None


def unread_of(adapter: str, config: Mapping[Any, Any], also: Collection[str] = _OF_THE_RUNNER) -> Unread:
    """Each key of `config` that nothing reads, with the nearest known key; `also` are known besides its own."""
    kind = load("targets", adapter) if knows("targets", adapter) else None
    known: Iterable[str] | None = getattr(kind, "config_keys", None)
    if known is not None:
        yield from unknown(config, [*known, _ALLOW_MISSING, *also], f"the target {adapter}")
    optional = config.get(_ALLOW_MISSING) or []
    if not isinstance(optional, list) or not all(part in _PARTS for part in optional):
        yield _ALLOW_MISSING, f"expected a list of {', '.join(_PARTS)}, found {as_written(optional)}"
    nested: Callable[[Mapping[Any, Any]], Unread] | None = getattr(kind, "unread", None)
    if nested is not None:
        yield from nested(config)


def unknown(config: Any, known: Collection[str], reader: str, place: str = "") -> Unread:
    """The keys of a mapping that are not `known`, each by its path from `place`; none if it is not a mapping."""
    for key in config if isinstance(config, Mapping) else ():
        if key not in known:
            near = did_you_mean(str(key), known) or f" (it reads: {', '.join(dict.fromkeys(known)) or 'none'})"
            yield f"{place}.{key}".lstrip("."), f"unknown key {str(key)!r}: {reader} does not read it{near}"


def optional_parts(config: Mapping[str, Any]) -> Collection[str]:
    """The parts that a system's answers need not have."""
    parts: Collection[str] = config.get(_ALLOW_MISSING) or ()
    return parts


def inside(place: str, unread: Unread) -> Unread:
    """The same keys, below `place`."""
    for key, message in unread:
        yield f"{place}.{key}", message


def keys_of(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """The keys that a settings structure reads."""
    return tuple(field.encode_name for field in msgspec.structs.fields(kind))


class _PluginTarget:
    """A target of another package: Python checks no types, so its answers are checked here, wherever it is called.

    They are what a reader of the run will find, or an error of the cell.
    """

    def __init__(self, target: Target) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if name in _OF_OURS and not isinstance(value, _OF_OURS[name]):
            raise AttributeError(name)
        return value

    async def run(self, case: Case, trial: int) -> Answer:
        answer: object = await self._target.run(case, trial)
        if not isinstance(answer, Answer):
            raise TargetError(f"the target must return an Answer, found {type(answer).__name__}")
        return stored_form(answer, self._target.run)
