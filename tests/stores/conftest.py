"""The stores that outlive their process."""

from __future__ import annotations

from pathlib import Path

import pytest

from stores.stores import KINDS, Kept


@pytest.fixture(params=KINDS)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    return Kept(request.param, tmp_path)
