"""A letter less in any key of any evaluator is refused, and the key is named."""

from __future__ import annotations

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
            assert misspelt in str(refusal.value)
