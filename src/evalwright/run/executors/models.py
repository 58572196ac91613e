"""Models of judges that are Python functions, called by workers: local models get the machines that they need.

Only single attempts are made there. Retries, prices, budget, cache and recordings stay with the run's models.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from evalwright.errors import InputError, TargetError, UnsentCall
from evalwright.llm.failures import CallFailed
from evalwright.llm.fitting import Fit
from evalwright.llm.patience import standing_still
from evalwright.llm.routes import Route
from evalwright.model.chat import ChatReply, ChatRequest
from evalwright.run.call import MOST_LOST, WORKER_LOST, Call
from evalwright.run.executors.crew import Crew
from evalwright.run.executors.frames import encode
from evalwright.run.executors.model_function import call_of, reply_from

__all__ = ["PlacedModels"]


class PlacedModels:
    """The workers of all such models; those of a model are started when it is called first."""

    def __init__(self, crew: Callable[[str, str], Crew], number: Callable[[Crew], int], ends: Callable[[], bool]):
        """`crew` makes the workers of a model at a place, and `number` says how many they are; `ends` says whether
        the run is about to end."""
        self._crew, self._number, self._ends = crew, number, ends
        self._begun: dict[str, tuple[Crew, asyncio.Task[None]]] = {}

    async def client(self, route: Route) -> PlacedModel | None:
        """The client of a model, once a worker is ready; None if it is no Python function of the suite.

        Raises CallFailed if no worker can be started.
        """
        if not route.is_function:
            return None
        if route.model not in self._begun:
            client = self._crew(route.model, str(route.base_url))
            self._begun[route.model] = client, asyncio.create_task(client.begin(self._number(client)))
        crew, beginning = self._begun[route.model]
        try:
            with standing_still():  # loading a model is no evaluator's fault
                await asyncio.shield(beginning)
        except InputError as error:
            raise CallFailed("bad_request", str(error)) from error
        return PlacedModel(crew, self._ends)

    def give_up(self, why: str) -> None:
        """End all workers; calls in flight are lost."""
        for crew, _ in self._begun.values():
            crew.give_up(why)


class PlacedModel:
    """A model that workers call."""

    def __init__(self, crew: Crew, ends: Callable[[], bool]) -> None:
        self._crew, self._ends = crew, ends
        self._lost: Counter[bytes] = Counter()
        """How many workers were lost with a request, which may be what ends them."""

    async def chat(self, model: str, request: ChatRequest, fit: Fit) -> ChatReply:
        key = encode(request)
        with standing_still():
            errand = await self._crew.errand(Call(iter(())), self._ends, alone=self._lost[key] == MOST_LOST - 1)
        if errand is None:
            if self._ends():
                raise UnsentCall
            raise CallFailed("connection", self._crew.why_gone())
        try:
            answer = await errand.run(call_of(request), 0)
        except TargetError as error:
            if error.type != WORKER_LOST:
                raise CallFailed("bad_reply", str(error), retryable=True) from error
            self._lost[key] += 1
            raise CallFailed("connection", str(error), retryable=self._lost[key] < MOST_LOST) from error
        finally:
            errand.over()
        return reply_from(answer)

    async def close(self) -> None:
        """Nothing to do: its workers are ended with all others."""
