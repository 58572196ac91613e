from __future__ import annotations

import importlib

import pytest

import evalwright.statistics as statistics


def test_every_public_name_can_be_had() -> None:
    assert sorted(statistics.__all__) == list(statistics.__all__)
    assert all(callable(getattr(statistics, name)) for name in statistics.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'average'"):
        importlib.import_module("evalwright.statistics").average  # noqa: B018
