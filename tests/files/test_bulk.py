"""The collector of garbage while many records are read, or many calls are in flight."""

import gc
from contextlib import suppress

import pytest

from evalwright.files.bulk import collector_eased, collector_paused


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


@pytest.mark.parametrize("young", [0, 700, 50_000])
def test_an_eased_collector_is_as_it_was_afterwards_and_comes_no_more_often_than_it_did(young):
    was = gc.get_threshold()
    try:
        gc.set_threshold(young, 10, 10)
        frozen = gc.get_freeze_count()
        with suppress(ValueError), collector_eased():
            now, *_ = gc.get_threshold()
            assert (now == 0) if young == 0 else now >= young
            assert gc.get_freeze_count() > frozen
            raise ValueError
        assert (gc.get_threshold(), gc.get_freeze_count()) == ((young, 10, 10), 0)
    finally:
        gc.set_threshold(*was)
