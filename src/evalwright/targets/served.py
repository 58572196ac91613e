"""A target behind a service that has to be started first and then runs for the whole run."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Protocol, TypeVar

import msgspec

from evalwright.errors import AllMistakes, InputError, Problem, in_seconds
from evalwright.files.key_paths import as_written
from evalwright.model.plan import Variant
from evalwright.model.protocols import Target
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer
from evalwright.targets.build import Unread, build_inner_target, inside, unread_of
from evalwright.targets.settings import settings

__all__ = ["Health", "ServedConfig", "ServedTarget", "Service", "free_port", "with_port"]

C = TypeVar("C", bound="ServedConfig")

_ANY_PORT = 80
"""Stands for the port while the configuration is checked, when the port is not known yet."""
_PAUSE = 0.1
_ONE_REQUEST = 2.0
"""Seconds for one health check: a service that is starting may accept a connection and not answer."""
_HEALTH = re.compile(r"\s*(?:([A-Za-z]+)\s+)?(/?\S*)\s*")
_METHODS = ("GET", "HEAD", "POST", "OPTIONS")


class ServedConfig(msgspec.Struct, kw_only=True):
    """The keys that all services share."""

    inner_adapter: Annotated[str, msgspec.Meta(min_length=1)]
    inner_config: dict[str, Any]
    healthcheck: str | None = None
    healthcheck_timeout_seconds: Annotated[float, msgspec.Meta(gt=0)] | None = None


class Service(Protocol):
    """Something that listens on a port of this machine once it is started."""

    async def start(self, port: int) -> None:
        """Start it on a free port. Raises InputError."""

    async def ended(self) -> str | None:
        """How it ended; None while it runs."""

    async def stop(self) -> None:
        """End it and remove everything that belongs to it, whether it was started or not."""


class ServedTarget:
    """Starts a service once for a run, waits until it is healthy, and calls it through `inner_adapter`."""

    @staticmethod
    def unread(config: Mapping[Any, Any]) -> Unread:
        adapter, inner = config.get("inner_adapter"), config.get("inner_config")
        if isinstance(adapter, str) and isinstance(inner, dict):
            yield from inside("inner_config", unread_of(adapter, inner, ()))

    def __init__(self, variant: Variant, kind: type[C], seconds: float, service_of: Callable[[C], Service]) -> None:
        """`kind` is the shape of the configuration; `seconds` to become healthy, unless the configuration sets another
        time."""
        mistakes = AllMistakes()
        with mistakes:
            if variant.isolation == "process":
                why = f"'isolation: process' has no meaning for {variant.adapter}: the service is a process of its own"
                raise InputError(Problem("", why, key="isolation"))
        with mistakes:
            config = settings(kind, variant.config)
            self._variant, self._config = variant, config
            patience = config.healthcheck_timeout_seconds
            with mistakes:
                self._health = Health(config.healthcheck, seconds if patience is None else patience)
            with mistakes:  # now rather than in `open`, so that nothing is started with a mistake in it
                self._inner: Target = self._built(_ANY_PORT)
            with mistakes:
                self._service: Service = service_of(config)
        mistakes.refuse()

    @property
    def address(self) -> str | None:
        """The service's address, if the inner target has one."""
        return getattr(self._inner, "address", None)

    def _built(self, port: int) -> Target:
        config = with_port(self._config.inner_config, port)
        inner = msgspec.structs.replace(self._variant, adapter=self._config.inner_adapter, config=config)
        return build_inner_target(inner, "inner_adapter", "inner_config")

    async def open(self) -> None:
        port = free_port()
        await self._service.start(port)
        await self._health.wait(port, self._service)
        self._inner = self._built(port)
        if opening := getattr(self._inner, "open", None):
            await opening()

    async def run(self, case: Case, trial: int) -> Answer:
        return await self._inner.run(case, trial)

    async def close(self) -> None:
        try:
            if closing := getattr(self._inner, "close", None):
                await closing()
        finally:
            # Whatever closing raises: a service that is not stopped would outlive the evaluation.
            await self._service.stop()


class Health:
    """Checks whether a service is up: `GET /health` until it returns 2xx; without a check, until the port is open."""

    def __init__(self, check: str | None, seconds: float) -> None:
        self._seconds = seconds
        match = _HEALTH.fullmatch(check or "")
        method, path = (match[1] or "GET", match[2]) if match else ("", "")
        self._method = method.upper()
        if self._method not in _METHODS or (check is not None and (not path or path.upper() in _METHODS)):
            expected = f"expected a method ({', '.join(_METHODS)}) and a path, such as 'GET /health'"
            raise InputError(Problem("", f"'healthcheck': {expected}, found {as_written(check)}", key="healthcheck"))
        self._path = None if check is None else "/" + path.removeprefix("/")

    async def wait(self, port: int, service: Service) -> None:
        """Wait until the service is up. Raises InputError if it ends, or is not up in time."""
        until = asyncio.get_running_loop().time() + self._seconds
        while True:
            # Checked first: another program may answer on the port of a service that has ended.
            if (how := await service.ended()) is not None:
                raise InputError(f"the service ended before it was up: {how}")
            answered = await self._state_of(port)
            if answered is None:
                return
            if asyncio.get_running_loop().time() > until:
                probe = "port" if self._path is None else f"{self._method} {self._path}"
                raise InputError(f"the service is not up after {in_seconds(self._seconds)}: {probe}: {answered}")
            await asyncio.sleep(_PAUSE)

    async def _state_of(self, port: int) -> str | None:
        """None if the service is up, else what is wrong."""
        if self._path is None:
            try:
                _, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), _ONE_REQUEST)
            except (OSError, TimeoutError) as error:
                return str(error) or type(error).__name__
            writer.close()
            return None
        import httpx

        try:
            async with (
                httpx.AsyncClient(timeout=_ONE_REQUEST, trust_env=False) as client,  # no proxy for this machine
                client.stream(self._method, f"http://127.0.0.1:{port}{self._path}") as response,
            ):
                return None if response.is_success else f"status {response.status_code}"
        except httpx.HTTPError as error:
            return f"{type(error).__name__}: {error}".rstrip(": ")


def free_port() -> int:
    """A port that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def with_port(value: Any, port: int) -> Any:
    """Plain data with `{port}` filled in, in every string."""
    if isinstance(value, str):
        return value.replace("{port}", str(port))
    if isinstance(value, dict):
        return {key: with_port(item, port) for key, item in value.items()}
    if isinstance(value, list):
        return [with_port(item, port) for item in value]
    return value
