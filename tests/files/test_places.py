from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.files.key_paths import bracketed, dotted, steps_of

NAMES = st.text("abcxyz_", min_size=1)
PLACES = st.tuples(NAMES).flatmap(lambda first: st.lists(NAMES | st.integers(0, 99)).map(lambda rest: (*first, *rest)))


@pytest.mark.parametrize("path", ["evaluators[0].config.x", "evaluators.0.config.x"])
def test_both_spellings_name_the_same_place(path: str) -> None:
    assert steps_of(path) == ("evaluators", 0, "config", "x")


def test_the_file_as_a_whole_is_the_empty_path() -> None:
    assert (dotted(()), bracketed(()), steps_of("")) == ("", "", ())


@given(PLACES)
def test_a_place_survives_both_spellings(place: tuple[str | int, ...]) -> None:
    assert steps_of(dotted(place)) == place
    assert steps_of(bracketed(place)) == place
