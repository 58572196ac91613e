"""The collector of garbage while many records are read."""

import gc
from contextlib import suppress

import pytest

from evalwright.files.bulk import collector_paused


@pytest.mark.parametrize("enabled", [True, False])
def test_a_pause_of_the_collector_ends_as_it_began(enabled):
    was = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with suppress(ValueError), collector_paused():
            assert not gc.isenabled()
            raise ValueError
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was else gc.disable)()
