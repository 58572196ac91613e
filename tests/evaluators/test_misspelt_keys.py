"""A letter less in any key of any evaluator, or a value of another type, is refused, and the key is named."""

from __future__ import annotations

from collections.abc import Iterator

from evalwright.errors import InputError
from evalwright.evaluators.build import build_evaluator
from evalwright.evaluators.catalogue import catalogue, describe

VALUES = (None, "x", -5, True, [], [None], {}, {"a": {"b": 1}})


def keys() -> Iterator[tuple[str, str]]:
    return ((evaluator.name, key.name) for evaluator in catalogue() for key in describe(evaluator.name).keys)


def refused(name: str, key: str, value: object) -> list[str]:
    """The keys named in the refusal of an evaluator's example with one key more or changed; none if it is accepted."""
    try:
        build_evaluator(name, {**(describe(name).example or {}), key: value})
    except InputError as refusal:
        return [problem.key for problem in refusal.problems]
    return []


def test_a_misspelt_key_of_an_evaluator_is_refused() -> None:
    known = {name: {key.name for key in describe(name).keys} for name, _ in keys()}
    misspelt = [(name, key[:i] + key[i + 1 :]) for name, key in keys() for i in range(len(key))]
    tried = [(name, key) for name, key in misspelt if key and key not in known[name]]
    assert len(tried) > 1000
    assert [(name, key) for name, key in tried if key not in refused(name, key, None)] == []


def test_a_value_of_another_type_is_no_internal_error() -> None:
    internal = []
    for name, key in keys():
        for value in VALUES:
            try:
                refused(name, key, value)
            except Exception as error:
                internal.append((name, key, value, error))
    assert internal == []
