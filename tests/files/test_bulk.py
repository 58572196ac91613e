"""What occurs twice among many records, and the collector of garbage while they are read or calls are in flight."""

import gc
from contextlib import suppress

import pytest

from evalwright.files.bulk import Repeats, collector_eased, collector_paused

COUNTED = pytest.mark.slow("each question how many objects are frozen counts all that the worker has")


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


@pytest.mark.parametrize(
    ("young", "frozen"), [(0, False), (700, False), pytest.param(700, True, marks=COUNTED), (50_000, False)]
)
def test_an_eased_collector_is_as_it_was_afterwards_and_comes_no_more_often_than_it_did(young, frozen):
    was, kept = gc.get_threshold(), gc.get_freeze_count()
    try:
        gc.set_threshold(young, 10, 10)
        gc.unfreeze()
        if frozen:
            gc.freeze()
        before = gc.get_freeze_count()
        slack = 500 if frozen else 0  # frozen objects that nothing refers to any more are freed all the same
        new = [[] for _ in range(1000)]
        with suppress(ValueError), collector_eased():
            now, *_ = gc.get_threshold()
            assert (now == 0) if young == 0 else now >= young
            assert gc.get_freeze_count() > max(before - slack, 0)
            raise ValueError
        assert gc.get_threshold() == (young, 10, 10)
        assert abs(gc.get_freeze_count() - before) <= slack < len(new)
    finally:
        gc.set_threshold(*was)
        gc.unfreeze()
        if kept:
            gc.freeze()


def test_an_eased_collector_comes_the_less_often_the_more_calls_are_in_flight():
    thresholds = []
    for calls in (0, 10, 1_000, 10_000):
        with collector_eased(calls):
            thresholds.append(gc.get_threshold()[0])
    assert thresholds[0] == thresholds[1] < thresholds[2] < thresholds[3]


def test_only_what_occurs_more_than_once_is_remembered_as_such():
    seen = Repeats()
    for number in [*range(1000), 70, 134, 70, 70]:  # 70 and 134 are kept together, with a dozen others
        seen.add(number)
    assert (len(seen), seen.hashes()) == (1004, {70, 134})
