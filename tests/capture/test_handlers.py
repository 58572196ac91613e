"""Handlers of an application: which spans they get, and that they hold up nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from evalwright.capture.handlers import InstrumentationHandler
from evalwright.capture.listeners import add_handler, flush, init, remove_handler
from evalwright.capture.observations import start_observation
from evalwright.capture.spans import ObserveSpan


class Seen(InstrumentationHandler):
    def __init__(self) -> None:
        self.names: list[str] = []

    async def on_observe(self, span: ObserveSpan) -> None:
        self.names.append(span.name)
        if span.name == "refused":
            raise ValueError("no")
        if span.name == "cancelled":
            raise asyncio.CancelledError


@pytest.fixture
def handler() -> Iterator[Seen]:
    init()
    seen = Seen()
    add_handler(seen)
    yield seen
    remove_handler(seen)


def step(name: str) -> None:
    with start_observation(input={}, name=name):
        pass


def test_a_handler_has_every_span_once_they_are_flushed(handler: Seen) -> None:
    step("first")
    step("second")
    assert flush()
    assert handler.names == ["first", "second"]


@pytest.mark.parametrize("how", ["refused", "cancelled"])
def test_a_handler_that_raises_gets_the_next_span_all_the_same(handler: Seen, how: str) -> None:
    step(how)
    step("next")
    assert flush()
    assert handler.names == [how, "next"]


def test_a_handler_that_was_removed_gets_no_more(handler: Seen) -> None:
    step("first")
    remove_handler(handler)
    step("later")
    assert flush()
    add_handler(handler)
    assert handler.names == ["first"]
