"""The workers of one system: which one gets a call, and when a lost one is replaced."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from evalwright.errors import InputError, TargetError, in_seconds
from evalwright.model.plan import Placement
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer
from evalwright.run.call import Call
from evalwright.run.executors.member import CrewMember, Errand
from evalwright.targets.failures import target_error

if TYPE_CHECKING:
    from evalwright.run.executors.cluster import RayCluster

__all__ = ["Crew"]

_log = logging.getLogger(__name__)

_SAID_AFTER = 60.0
"""Seconds without a worker after which this is reported."""
_FOR_OTHERS = 2.0
"""Seconds to wait for other workers; as long as the first one took, if that is more."""
_LOOK = 0.25
"""Seconds between checks of whether the run stops, while a cell waits for a worker."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.25, 30.0
"""Seconds between starts of a worker that is lost repeatedly."""
_MOST_STARTS = 3
"""Workers that may be lost before the first one is ready: after that, it is no accident."""


class Crew:
    """All workers of one system. As a target, it only says what the system itself would say."""

    def __init__(
        self, name: str, target: object, cluster: RayCluster, placement: Placement, hello: bytes, wait_seconds: float
    ) -> None:
        self.name: str = name
        self.cluster: RayCluster = cluster
        self.placement: Placement = placement
        self.hello: bytes = hello
        self.may_be_silent: bool = bool(getattr(target, "may_be_silent", False))
        self.address: str | None = getattr(target, "address", None)
        self.account: str = getattr(target, "account", "")
        self._wait = wait_seconds
        self._workers: list[CrewMember] = []
        self._keeping: list[asyncio.Task[None]] = []
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._there: asyncio.Future[None]
        self._alone_since: float
        self._suspecting = asyncio.Lock()
        self._kept_free: CrewMember | None = None
        """A worker that gets no more calls until it has none left, and then takes one alone."""
        self._has_any = False
        self._is_reported = False
        self._given_up = ""

    async def run(self, case: Case, trial: int) -> Answer:
        raise TargetError("a system on other machines is called by one of its workers")

    async def begin(self, number: int) -> None:
        """Start this many workers, and wait for the first one, and a little for the others.

        Raises InputError if the setup of the first one fails.
        """
        self._there = asyncio.get_running_loop().create_future()
        self._alone_since = time.monotonic()
        self._workers = [
            CrewMember(self, f"{self.name} {n}" if number > 1 else self.name) for n in range(1, number + 1)
        ]
        self._keeping = [asyncio.create_task(self._keep(worker)) for worker in self._workers]
        self._keeping.append(asyncio.create_task(self._look()))
        while not self._there.done():
            await asyncio.wait([self._there], timeout=_LOOK)
            if self._has_waited():
                raise InputError(f"no worker of {self.name!r} could be started within {in_seconds(self._wait)}")
        self._there.result()
        # A short run would be over before the other workers, which start at the same time, are ready.
        now = time.monotonic()
        until = now + max(_FOR_OTHERS, now - self._alone_since)
        while time.monotonic() < until and not all(worker.places for worker in self._workers):
            await asyncio.sleep(_LOOK)

    async def errand(self, call: Call, stops: Callable[[], bool], alone: bool) -> Errand | None:
        """A call at the worker that has the fewest calls and room for one more, once there is one.

        None if the run stops, or if there was no worker for too long. With `alone`, the worker gets no other call
        meanwhile: one of several calls that were lost together may end any worker that gets it.
        """
        if not alone:
            return await self._errand(call, stops)
        async with self._suspecting:
            try:
                return await self._errand(call, stops, alone=True)
            finally:
                self._kept_free = None

    async def _errand(self, call: Call, stops: Callable[[], bool], *, alone: bool = False) -> Errand | None:
        while not stops():
            if (member := self._chosen_member(alone)) is not None:
                return member.errand(call, alone)
            if self._has_waited():
                return None
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            await asyncio.wait([waiting], timeout=_LOOK)
            waiting.cancel()
        return None

    def arrived(self) -> None:
        """A worker is ready."""
        self._has_any = True
        if self._is_reported:
            _log.warning("%r has a worker again", self.name)
            self._is_reported = False
        if not self._there.done():
            self._there.set_result(None)
        while self._waiting:
            self.freed()

    def lost(self) -> None:
        """A worker is gone."""
        if self._has_any and not any(worker.places for worker in self._workers):
            self._alone_since, self._has_any = time.monotonic(), False

    def freed(self) -> None:
        """A worker has room."""
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return

    async def close(self) -> None:
        """End all workers, which close their systems first. Raises TargetError for what that raises there."""
        for task in self._keeping:
            task.cancel()
        raised = await asyncio.gather(*(worker.close() for worker in self._workers))
        if failed := next(filter(None, raised), None):
            raise target_error(failed)

    def give_up(self, why: str) -> None:
        """Start and call nothing any more; calls in flight are lost."""
        self._given_up = why
        for task in self._keeping:
            task.cancel()
        for worker in self._workers:
            worker.leave(why)

    def gone(self) -> str:
        """Why no cell of the system is called any more."""
        why = f"stopped {self.name!r}: {self.why_gone()}"
        return f"{why}. `evalwright resume RUN` runs the rest once there are machines again"

    def why_gone(self) -> str:
        """Why it has no workers."""
        return self._given_up or f"it had no workers for {in_seconds(self._wait)}"

    def _chosen_member(self, alone: bool) -> CrewMember | None:
        there = [worker for worker in self._workers if worker.places]
        if alone:
            if self._kept_free not in there:
                self._kept_free = min(there, key=lambda worker: worker.busy, default=None)
            return self._kept_free if self._kept_free is not None and not self._kept_free.busy else None
        room = [worker for worker in there if worker.busy < worker.places and worker is not self._kept_free]
        return min(room, key=lambda worker: worker.busy, default=None)

    def _has_waited(self) -> bool:
        """Whether there has been no worker for too long."""
        if self._given_up:
            return True
        if self._has_any:
            return False
        alone = time.monotonic() - self._alone_since
        if alone > min(_SAID_AFTER, self._wait / 2) and not self._is_reported:
            self._is_reported = True
            _log.warning(
                "%r has no worker left; the cluster began with %s. Waiting for one for at most %g seconds",
                self.name,
                self.cluster.room,
                self._wait,
            )
        return alone > self._wait

    async def _keep(self, worker: CrewMember) -> None:
        """Replace a worker whenever it is lost."""
        pause, failed = _SHORTEST_PAUSE, 0
        while True:
            begun = time.monotonic()
            try:
                why = await worker.work()
            except InputError as error:
                why, failed = str(error), _MOST_STARTS
            else:
                failed, why = failed + 1, f"no worker of {self.name!r} can be started: {why}"
            if failed >= _MOST_STARTS and not self._there.done():
                self._there.set_exception(InputError(why))
                return
            if time.monotonic() - begun > _LONGEST_PAUSE:
                pause = _SHORTEST_PAUSE
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LOOK)
            now = time.monotonic()
            for worker in self._workers:
                worker.look(now)
