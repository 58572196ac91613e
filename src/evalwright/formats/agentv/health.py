"""Checks a system before its first call (`healthcheck`)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from evalwright.errors import InputError, Problem, TargetError
from evalwright.files.key_paths import as_written
from evalwright.processes import FinishedCommand, run_command
from evalwright.session import environment

__all__ = ["HEALTH_KEYS", "HealthCheck", "ending", "refused"]

_PATIENCE = 30.0
"""Seconds that a healthcheck may take."""
_LAST = 2000
"""Characters of a command's output that are quoted."""
_NEEDED = {"http": "url", "command": "command_template"}
HEALTH_KEYS = ("type", "url", "command", "command_template", "timeout_seconds", "cwd")
_SNAKE = {"commandTemplate": "command_template", "timeoutSeconds": "timeout_seconds"}


def ending(finished: FinishedCommand) -> str:
    """How a command ended, after the end of its stderr, or of its stdout if stderr is empty."""
    wrote = (stream.last.decode(errors="replace")[-_LAST:].strip() for stream in (finished.stderr, finished.stdout))
    output = next(filter(None, wrote), "")
    return f"{output} ({finished.how()})" if output else f"ended with {finished.how()}"


def refused(key: str, message: str) -> InputError:
    """What is wrong with a key of a target."""
    return InputError(Problem("", message, key=key))


class HealthCheck:
    """`{type: http, url}` or `{type: command, command_template, cwd}`, with `timeout_seconds`.

    Newer files leave out the type and write `command`.
    """

    def __init__(self, kind: str, what: str, limit: float, cwd: str) -> None:
        self._kind, self._what, self._limit, self._cwd = kind, what, limit, cwd
        self._looking: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, target: Mapping[str, Any], folder: str) -> HealthCheck | None:
        """The healthcheck of a target; None if it has none. Its `cwd` is relative to `folder`. Raises InputError."""
        raw = target.get("healthcheck")
        if raw is None:
            return None
        settings = {_SNAKE.get(key, key): value for key, value in raw.items()} if isinstance(raw, dict) else {}
        if "command" in settings:
            settings.setdefault("command_template", settings["command"])
        settings.setdefault("type", next((kind for kind, key in _NEEDED.items() if key in settings), None))
        what = settings.get(_NEEDED.get(str(settings["type"]), ""))
        limit = settings.get("timeout_seconds", _PATIENCE)
        if not isinstance(what, str) or not what or not isinstance(limit, (int, float)) or limit <= 0:
            expected = "{url: ...} or {command: ...}, with timeout_seconds above 0"
            raise refused(
                "healthcheck", f"healthcheck of {target.get('name')!r}: expected {expected}, found {as_written(raw)}"
            )
        if settings["type"] == "http" and not what.startswith(("http://", "https://")):
            raise refused("healthcheck", f"healthcheck of {target.get('name')!r}: {what!r} is not an HTTP address")
        cwd = settings.get("cwd", target.get("cwd")) or "."
        return cls(settings["type"], what, float(limit), str(Path(folder) / str(cwd)))

    async def looked_at(self) -> None:
        """Check once, for the first caller. Raises TargetError for every caller if the system is not healthy."""
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        await asyncio.shield(self._looking)

    async def _look(self) -> None:
        try:
            async with asyncio.timeout(self._limit):
                if self._kind == "http":
                    await asyncio.to_thread(_check_reachable, self._what, self._limit)
                    return
                finished = await run_command(["sh", "-c", self._what], env=environment(), cwd=self._cwd, stdin=b"")
        except TimeoutError:
            raise TargetError(f"the healthcheck took longer than {self._limit:g}s", "unhealthy") from None
        except OSError as error:  # includes urllib's errors
            raise TargetError(f"the healthcheck failed: {error}", "unhealthy") from None
        if finished.exit_code != 0:
            raise TargetError(f"the healthcheck failed: {ending(finished)}", "unhealthy")


def _check_reachable(url: str, limit: float) -> None:
    """Raises OSError unless there is an answer with a success status."""
    with urlopen(Request(url), timeout=limit):
        return
