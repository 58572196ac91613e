"""Property tests try the same examples in every run; `HYPOTHESIS_PROFILE=explore` looks for new ones."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

import warm

settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.register_profile("explore", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture(autouse=True)
def _cold(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test marked `cold` runs starts an interpreter."""
    if request.node.get_closest_marker("cold") is None:
        yield
    else:
        with warm.starting_cold():
            yield


@pytest.fixture
def untouched_environment():
    """The variables of the process are afterwards what they were."""
    before = _variables()
    yield
    assert _variables() == before


def _variables():
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
