"""Services that several cells call: an answer such as "too many calls" to one cell applies to all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from evalwright.model.plan import Plan
from evalwright.model.protocols import Target
from evalwright.model.trace import TraceError
from evalwright.run.cells import groups_of

if TYPE_CHECKING:
    from evalwright.run.leases.lease import Lease

__all__ = ["BUSY", "LONGEST_PAUSE", "Address", "addresses_of", "requested_pause"]

LONGEST_PAUSE = 60.0
"""Seconds. Without this bound, doubled pauses would soon outlast the run, and a service may ask for a year."""
BUSY = (429, 503)
"""HTTP statuses of an overloaded service: Too Many Requests, Service Unavailable."""


class Address:
    """One service. While it asks for time, no cell calls it; after a 429, half as many cells call it at once."""

    def __init__(self, width: int) -> None:
        from evalwright.llm.retries import Gate

        self.gate: Gate = Gate(width)
        self._until = 0.0
        self.on_pause: Callable[[float], None] = lambda _: None
        """Called with the seconds of each pause, for other processes that call the same service."""

    def pause(self, seconds: float) -> None:
        """Do not call it again before this many seconds have passed."""
        self._until = max(self._until, time.monotonic() + seconds)

    def left(self) -> float:
        """Seconds until it may be called; 0 or less if it may be called now."""
        return self._until - time.monotonic()

    def record(self, error: TraceError | None, wave: int) -> None:
        """Record the outcome of a call that was let through in this wave."""
        if error is None:
            self.gate.widen()
        elif error.status == 429:
            self.gate.narrow(wave)
        if error is not None and (seconds := requested_pause(error)) is not None:
            self.pause(seconds)
            self.on_pause(seconds)


def requested_pause(error: TraceError) -> float | None:
    """Seconds that an overloaded service asks to wait, at most a minute; None if it does not say."""
    seconds = error.retry_after_seconds
    return min(seconds, LONGEST_PAUSE) if isinstance(seconds, float) and error.status in BUSY else None


def addresses_of(plan: Plan, targets: Mapping[str, Target], lease: Lease | None) -> dict[str, Address]:
    """The address of each variant whose target calls one, by the variant's name. Targets are already open.

    With a lease, other shards pause together with this one.
    """
    named = {name: address for name, target in targets.items() if (address := getattr(target, "address", None))}
    widths = dict.fromkeys(named.values(), 0)
    for variants, width in groups_of(plan):
        for address in {named[variant.name] for variant in variants if variant.name in named}:
            widths[address] += width
    shared = {address: Address(width) for address, width in widths.items()}
    if lease is not None:
        for name, address in shared.items():
            address.on_pause = lease.shared(name, address.pause)
    return {name: shared[address] for name, address in named.items()}
