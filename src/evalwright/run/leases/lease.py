"""The limits of one shard that it shares with the others: what it takes of a ledger, uses, and returns at its end.

A shard whose ledger cannot be reached continues with what it holds. After a minute it starts nothing more: its cells
in flight finish, and a later session runs the rest.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from typing import Any

from evalwright.errors import StorageError, UnsentCall, money
from evalwright.llm.funds import Funds
from evalwright.llm.patience import standing_still
from evalwright.llm.retries import Pace
from evalwright.run.leases.ledger import Ledger, LedgerUnreachable
from evalwright.targets.threads import Threads

__all__ = ["BUDGET", "COST_LIMIT", "PATIENCE", "RATE", "Lease", "LeasedFunds"]

COST_LIMIT, BUDGET, RATE = "run.cost_limit_usd", "--budget", "--requests-per-minute"
"""The names of the limits."""

PATIENCE = 60.0
"""Seconds for which a ledger may be unreachable before the shard starts nothing more."""
_LOOK = 1.0
"""Seconds between looks at what the other shards have noted, and before a limit that is used up is asked for again."""
_PAUSE = 0.25
"""Seconds before a ledger that was unreachable is tried again."""
_LAST = 5.0
"""Seconds for the last transaction, which returns what was not used."""
_LONGEST_PAUSE = 60.0
"""Seconds, as for a pause that this shard was asked for itself: clocks of other machines may be wrong."""
_LATE = 1.0
"""Seconds after which a moment for a call has passed: used later, it would come on top of others."""
_NANO = 1_000_000_000
_CHUNKS = 20
"""A shard takes at least its share of a limit divided by this: the ledger is not asked for each call."""


class Lease:
    """One shard's use of a ledger, for one session."""

    def __init__(
        self,
        ledger: Ledger,
        run: str,
        shards: int,
        limits: Mapping[str, float | None],
        ends: Callable[[], bool],
        halt: Callable[[str], None],
    ) -> None:
        """`limits` are those of the whole run: US dollars, and model calls per minute; None where it has none.

        Once the session `ends`, nothing is waited for; `halt` ends it for a reason. Raises InputError if other shards
        have other limits, and StorageError if the ledger cannot be reached.
        """
        self.ledger: Ledger = ledger
        self.run: str = run
        self.shards: int = shards
        self._limits = limits
        self._ends, self._halt = ends, halt
        self.funds: dict[str, LeasedFunds] = {}
        """By the name of the limit."""
        rate = limits[RATE]
        self.pace: SharedPace | None = None if rate is None else SharedPace(self, rate)
        self.trouble: str = ""
        """What could not be returned at the end, for the user."""
        self._listeners: dict[str, list[Callable[[float], None]]] = {}
        self._until: dict[str, float] = {}
        """When the pauses end of which other shards have told; monotonic."""
        self._threads = Threads()
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()
        with self._while_reachable():
            ledger.prepare()
            ledger.agree(run, {name: None if most is None else _nanos(most) for name, most in limits.items()})

    @property
    def budget(self) -> LeasedFunds | None:
        return self.funds.get(BUDGET)

    def hold(self, holder: str, spent: float = 0.0, spent_on_models: float = 0.0) -> None:
        """Begin a session: what this shard holds of the limits is what it has spent of each, US dollars.

        Raises StorageError.
        """
        with self._while_reachable():
            for name, dollars in ((COST_LIMIT, spent), (BUDGET, spent_on_models)):
                if (whole := self._limits[name]) is not None:
                    left = self.ledger.hold(self.run, name, holder, _nanos(dollars)) / _NANO
                    self.funds[name] = LeasedFunds(self, name, holder, whole, dollars, left)
            self._apply_pauses(self.ledger.pauses())

    @contextmanager
    def _while_reachable(self) -> Iterator[None]:
        try:
            yield
        except LedgerUnreachable as error:
            raise StorageError(f"the ledger {self.ledger} of --lease cannot be reached: {error}") from error
        finally:
            self.ledger.close()

    def __str__(self) -> str:
        """The limits, and what is left of them."""
        parts = [f"{name} ${fund.whole:.9g} (${fund.left:.9g} left)" for name, fund in self.funds.items()]
        parts += [] if self.pace is None else [f"{RATE} {self.pace.per_minute:.9g}"]
        return f"{', '.join(parts) or 'only pauses'}, leased from {self.ledger}"

    def shared(self, place: str, pause: Callable[[float], None]) -> Callable[[float], None]:
        """Make `pause` be called when other shards are asked not to call a place; returns the function that tells them
        if this one is."""
        key = blake2b(place.encode(errors="replace"), digest_size=16).hexdigest()  # an address may contain a secret
        self._listeners.setdefault(key, []).append(pause)
        if (left := self._until.get(key, 0.0) - time.monotonic()) > 0:
            pause(left)

        def share_pause(seconds: float) -> None:
            self.begun(self.do(self.ledger.pause, key, seconds))

        return share_pause

    async def watch(self) -> None:
        """Hear what other shards note, and notice that the ledger is gone; never ends."""
        while True:
            with suppress(UnsentCall):
                self._apply_pauses(await self.do(self.ledger.pauses))
            await asyncio.sleep(_LOOK)

    def _apply_pauses(self, pauses: Mapping[str, float]) -> None:
        for place, seconds in pauses.items():
            left = min(seconds, _LONGEST_PAUSE)
            self._until[place] = time.monotonic() + left
            for pause in self._listeners.get(place, ()):
                pause(left)

    async def settle(self) -> None:
        """Return what was not used. What could not be returned counts as used until the shard is resumed."""
        if self._tasks:
            _, late = await asyncio.wait([*self._tasks], timeout=_LAST)
            for task in late:
                task.cancel()
        try:
            async with asyncio.timeout(_LAST):
                for funds in self.funds.values():
                    await self._threads.call(self.ledger.hold, self.run, funds.name, funds.holder, _nanos(funds.spent))
        except (LedgerUnreachable, TimeoutError) as error:
            why = str(error) or f"no answer within {_LAST:g} seconds"
            self.trouble = (
                f"the ledger {self.ledger} cannot be reached ({why}): what this shard holds counts as spent until it "
                "is resumed with --lease"
            )
        self._threads.close()
        self.ledger.close()

    def begun(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """A task that does not end the session if it fails."""
        task = asyncio.create_task(_quietly(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def do(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """What `work` returns, which uses the ledger, in a thread; repeated while the ledger is unreachable.

        Raises UnsentCall once nothing more is to be started, be it because of that.
        """
        why = "it does not answer"
        try:
            async with asyncio.timeout(PATIENCE), self._turn:
                while True:
                    try:
                        return await self._threads.call(work, *arguments)
                    except LedgerUnreachable as error:
                        why = str(error)
                    if self._ends():
                        raise UnsentCall
                    await asyncio.sleep(_PAUSE)
        except TimeoutError:
            self._halt(
                f"stopped: the ledger {self.ledger} of --lease could not be reached for {PATIENCE:g} seconds ({why}); "
                "`evalwright resume RUN --lease LEDGER` then runs the rest"
            )
            raise UnsentCall from None


class LeasedFunds(Funds):
    """Money that a ledger grants in parts: of `whole` US dollars for all shards, this one begins with what it spent."""

    def __init__(self, lease: Lease, name: str, holder: str, whole: float, spent: float, left: float) -> None:
        super().__init__(spent, spent)
        self.name: str = name
        self.holder: str = holder
        self.whole: float = whole
        self.left: float = left
        """What no shard held when this session began."""
        self._lease = lease
        self._asking: asyncio.Task[None] | None = None
        self._empty_until = self._content_until = 0.0

    def __str__(self) -> str:
        return f"{money(self.granted)} that this shard could get of {money(self.whole)} for all"

    def more(self, least: float, wanted: float) -> asyncio.Task[None] | None:
        if self._asking is None and time.monotonic() >= (self._empty_until if least > 0 else self._content_until):
            self._asking = self._lease.begun(self._ask(_nanos(least), _nanos(wanted)))
        return self._asking

    async def _ask(self, least: int, wanted: int) -> None:
        lease = self._lease
        try:
            chunk = _nanos(self.whole) // (_CHUNKS * lease.shards)
            held, empty = await lease.do(
                lease.ledger.take,
                *(lease.run, self.name, self.holder, least, max(wanted, chunk), _nanos(self.spent), lease.shards),
            )
            again = time.monotonic() + _LOOK
            self._empty_until = again if empty else 0.0
            self._content_until = again if empty or held < _nanos(self.granted) + wanted else 0.0
            self.granted: float = held / _NANO
        finally:
            self._asking = None


class SharedPace(Pace):
    """Spreads the calls of all shards evenly over time. A shard takes moments only for calls that wait for one."""

    def __init__(self, lease: Lease, per_minute: float) -> None:
        super().__init__(None)
        self._lease = lease
        self.per_minute: float = per_minute
        self._most = max(1, int(per_minute / (_CHUNKS * lease.shards)))
        self._waiting = 0
        self._moments: deque[float] = deque()
        self._turn = asyncio.Lock()

    async def turn(self) -> None:
        now = asyncio.get_running_loop().time
        self._waiting += 1
        try:
            with standing_still():
                async with self._turn:  # in the order in which the calls came
                    while self._moments and self._moments[0] < now() - _LATE:
                        self._moments.popleft()
                    if not self._moments:
                        await self._take()
                    await asyncio.sleep(self._moments.popleft() - now())
        finally:
            self._waiting -= 1

    async def _take(self) -> None:
        lease, count = self._lease, min(self._waiting, self._most)
        gap = max(1, round(60 * _NANO / self.per_minute))
        moments = await lease.do(lease.ledger.moments, lease.run, count, gap)
        answered = asyncio.get_running_loop().time()  # not earlier: the moments count from when the ledger was asked
        self._moments.extend(answered + seconds for seconds in moments)


async def _quietly(work: Coroutine[Any, Any, Any]) -> None:
    with suppress(UnsentCall):
        await work


def _nanos(amount: float) -> int:
    """Whole billionths; never less than the amount."""
    return math.ceil(round(amount * _NANO, 3))
