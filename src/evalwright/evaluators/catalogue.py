"""The available evaluators, for people who choose one: by family, format and package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from evalwright import registry
from evalwright.evaluators.build import fields_by_key
from evalwright.evaluators.wording import in_words
from evalwright.model.format import EvaluatorEntry, entry

__all__ = ["Description", "Key", "ListedEvaluator", "catalogue", "describe"]


class Key(msgspec.Struct, frozen=True):
    """One key of a configuration."""

    name: str
    type: str
    """In words: `a list of strings`."""
    required: bool
    default: Any = None
    """As in JSON; also None if the key has no default."""


class ListedEvaluator(msgspec.Struct, frozen=True, kw_only=True):
    """One evaluator in a list."""

    name: str
    group: str
    """Its family, the format that has it, or the package that it comes from."""
    sentence: str
    format: str
    """The title of the format to whose vocabulary it belongs; "" for `eval.yaml`."""
    see: Mapping[str, str]
    """Similar evaluators and how they differ."""


class Description(ListedEvaluator, frozen=True, kw_only=True):
    """One evaluator with its configuration."""

    keys: list[Key]
    example: Mapping[str, Any] | None
    """A valid configuration; None if none is registered."""


def catalogue() -> Iterator[ListedEvaluator]:
    """Every evaluator that a file can use: family by family, then those of formats and other packages."""
    for name, (group, row) in _rows().items():
        yield ListedEvaluator(name=name, group=group, sentence=row.sentence, format=row.format, see=row.see)


def describe(name: str) -> Description:
    """One evaluator with its keys. Raises InputError if it is unknown or cannot be loaded."""
    kind = registry.load("evaluators", name)
    group, row = _rows().get(name) or ("", _undescribed(name))
    return Description(
        name=name,
        group=group,
        sentence=row.sentence,
        format=row.format,
        see=row.see,
        keys=_keys_of(kind),
        example=row.example if row.example or not registry.package_of("evaluators", name) else None,
    )


def _rows() -> dict[str, tuple[str, EvaluatorEntry]]:
    rows = {name: (family, row) for family, register in registry.families().items() for name, row in register.items()}
    for format in registry.formats():
        for name, row in format.evaluators.items():
            if name not in rows and name not in registry.INTERNAL:
                rows[name] = (format.title, row if isinstance(row, EvaluatorEntry) else _undescribed(name))
    for name in registry.names("evaluators"):
        if name not in rows and name not in registry.INTERNAL:
            rows[name] = (registry.package_of("evaluators", name) or "", _undescribed(name))
    return rows


def _undescribed(name: str) -> EvaluatorEntry:
    """An entry for an evaluator without one."""
    return entry("", registry.summary("evaluators", name))


def _keys_of(kind: Any) -> list[Key]:
    """The keys that a registered evaluator takes, required ones first."""
    keys = map(_key_of_field, fields_by_key(kind).values())
    return sorted(keys, key=lambda key: not key.required)


def _key_of_field(field: msgspec.structs.FieldInfo) -> Key:
    default = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        default = field.default_factory()
    absent = default is msgspec.NODEFAULT or default is msgspec.UNSET
    return Key(
        field.encode_name, in_words(field.type), field.required, None if absent else msgspec.to_builtins(default)
    )
