"""The system under test: an application driven by the user's `Runnable`, once for each entry."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import logging
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from pydantic import ValidationError

from evalwright.capture.listeners import init
from evalwright.capture.wrap import WrapRegistryMissError, WrapTypeMismatchError, init_eval_output, set_eval_input
from evalwright.errors import InputError, TargetError
from evalwright.formats.pixie.surface.evaluable import NamedData
from evalwright.formats.pixie.surface.runnable import arguments_model, is_runnable
from evalwright.formats.pixie.user_code import runnable_at
from evalwright.formats.shared.findings import joined_mistakes
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer, Output, TraceError
from evalwright.targets.answers import traced
from evalwright.targets.threads import Threads

__all__ = ["Application", "PixieApp", "collapsed", "observed_answer"]

_log = logging.getLogger(__name__)

T = TypeVar("T")


class PixieApp:
    """Keys: `runnables` (dataset name to `file.py:Name`) and `folders`, in which the files are searched for.

    With `trust_pickled_types`, objects of the folders' classes are restored; otherwise they are plain mappings.
    """

    may_be_silent: bool = True
    """As in the original, None is an output like any other."""

    def __init__(self, variant: Variant) -> None:
        folders = [Path(folder) for folder in variant.config["folders"]]
        self._trusted = folders if variant.config.get("trust_pickled_types") else []
        self._threads = Threads()
        self._apps = {
            dataset: Application(runnable_at(place, folders), place, self._threads)
            for dataset, place in variant.config["runnables"].items()
        }

    async def run(self, case: Case, trial: int) -> Answer:
        await self._apps[case.extra["dataset"]].set_up()
        init()  # not earlier: the application may set a tracer provider of its own during setup
        return await self._drive(case, trial)

    @traced
    async def _drive(self, case: Case, trial: int) -> Answer:
        app, context = self._apps[case.extra["dataset"]], contextvars.copy_context()
        context.run(set_eval_input, self._registry(case.extra))
        outputs = context.run(init_eval_output)
        try:
            result = await asyncio.create_task(app.drive(case.input), context=context)
        except (WrapRegistryMissError, WrapTypeMismatchError) as error:
            return observed_answer(case.extra, outputs, TraceError("wrap_error", str(error)))
        captured = outputs or [{"name": "output", "value": _plain_result(result), "purpose": "output"}]
        return observed_answer(case.extra, captured)

    def _registry(self, extra: dict[str, Any]) -> dict[str, Any]:
        values = {item["name"]: item["value"] for item in extra["eval_input"]}
        if not self._trusted:
            return values
        from evalwright.formats.pixie.rebuilt_objects import rebuilt

        return {name: rebuilt(value, self._trusted) for name, value in values.items()}

    async def close(self) -> None:
        for app in self._apps.values():
            await app.tear_down()
        self._threads.close()


class Application:
    """One runnable: created for its first entry, torn down at the end."""

    def __init__(self, found: Any, place: str, threads: Threads) -> None:
        self._found, self._place, self._threads = found, place, threads
        self._instance: Any = None
        self._ready: asyncio.Task[None] | None = None
        self._model = None
        if is_runnable(found):
            try:
                self._model = arguments_model(found)
            except ValueError as error:
                raise InputError(f"Invalid runnable {place!r}: {error}") from error
        elif inspect.isclass(found) and callable(getattr(found, "run", None)):
            why = f"the class has 'run' and no 'create': class {found.__name__}(pixie.Runnable)"
            raise InputError(f"Invalid runnable {place!r}: {why}")

    async def set_up(self) -> None:
        if self._model is None:
            return
        if self._ready is None:
            self._ready = asyncio.create_task(self._set_up())
        await asyncio.shield(self._ready)

    async def _set_up(self) -> None:
        await _within(self._create())

    async def _create(self) -> None:
        made = self._found.create()
        self._instance = await made if inspect.isawaitable(made) else made
        await _call_if_present(getattr(self._instance, "setup", None))

    async def drive(self, arguments: Any) -> Any:
        """What the application returns. Raises what it raises, but RuntimeError for SystemExit."""
        return await _within(self._result(arguments))

    async def _result(self, arguments: Any) -> Any:
        call = self._found
        if self._model is not None:
            call, arguments = self._instance.run, self._checked(arguments)
        return await self._threads.result_of(call, arguments)

    def _checked(self, arguments: Any) -> Any:
        try:
            return self._model.model_validate(arguments)  # type: ignore[union-attr]
        except ValidationError as error:
            raise TargetError(f"the Runnable's model rejects the arguments: {joined_mistakes(error)}") from error

    async def tear_down(self) -> None:
        """Exceptions of the application are only logged here: its entries have already been judged."""
        if self._instance is None:
            return
        try:
            await _within(_call_if_present(getattr(self._instance, "teardown", None)))
        except Exception as error:
            _log.warning("the teardown of %s raised %s: %s", self._place, type(error).__name__, error)


async def _within(waiting: Awaitable[T]) -> T:
    """The awaited result; a SystemExit would end the event loop of the task that raises it."""
    try:
        return await waiting
    except SystemExit as error:
        raise RuntimeError(f"the application tried to end the process (exit code {error.code})") from error


async def _call_if_present(method: Any) -> None:
    returned = method() if method is not None else None
    if inspect.isawaitable(returned):
        await returned


def _plain_result(result: Any) -> Any:
    """A return value as JSON, or as text if it is not JSON, as a tuple or a key that is no text is not."""
    try:
        return NamedData(name="output", value=result).value
    except ValueError:
        return json.dumps(result, default=str)


def collapsed(items: list[dict[str, Any]]) -> Any:
    """Named values as one value: none as null, a single one as itself, several by name."""
    if not items:
        return None
    return items[0]["value"] if len(items) == 1 else {item["name"]: item["value"] for item in items}


def observed_answer(extra: dict[str, Any], captured: list[dict[str, Any]], error: TraceError | None = None) -> Answer:
    """The answer made from named values, for a case whose `extra` has the named values of its input.

    There is none after an error, though values were captured before it.
    """
    value = collapsed(captured) if error is None else None
    text = value if isinstance(value, str) or value is None else msgspec.json.encode(value).decode()
    output = Output(final_answer=text, structured=value if isinstance(value, dict) else None)
    observed = {"input": collapsed(extra["eval_input"]), "output": value}
    return Answer(output, error=error, extra={"outputs": captured, "observed": observed})
