"""A letter less in any key of any evaluator, or a value of another type, is refused, and the key is named."""

from __future__ import annotations

from contextlib import suppress

import pytest

from evalwright.errors import InputError
from evalwright.evaluators.build import build_evaluator
from evalwright.evaluators.catalogue import catalogue, describe

KEYS = [(one.name, key.name) for one in catalogue() for key in describe(one.name).keys]


@pytest.mark.parametrize(("name", "key"), KEYS)
def test_a_misspelt_key_of_an_evaluator_is_refused(name: str, key: str) -> None:
    one = describe(name)
    known = {other.name for other in one.keys}
    for i in range(len(key)):
        misspelt = key[:i] + key[i + 1 :]
        if misspelt and misspelt not in known:
            with pytest.raises(InputError) as refusal:
                build_evaluator(name, {**(one.example or {}), misspelt: None})
            assert misspelt in [problem.key for problem in refusal.value.problems]


@pytest.mark.parametrize(("name", "key"), KEYS)
def test_a_value_of_another_type_is_no_internal_error(name: str, key: str) -> None:
    for value in (None, "x", -5, True, [], [None], {}, {"a": {"b": 1}}):
        with suppress(InputError):
            build_evaluator(name, {**(describe(name).example or {}), key: value})
