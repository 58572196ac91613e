"""A Python callable as the system under test: the arguments that it gets, and its answer."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import partial
from inspect import Parameter
from types import CoroutineType
from typing import Any

import msgspec

from evalwright.errors import InputError, Problem, TargetError
from evalwright.files.key_paths import kind_in_words
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer, Output
from evalwright.session.named_objects import named_object
from evalwright.session.workspace import workspace_path
from evalwright.targets.answers import answer_of, traced
from evalwright.targets.build import optional_parts
from evalwright.targets.failures import target_failure
from evalwright.targets.streams import collected, collected_async
from evalwright.targets.threads import Threads

__all__ = ["Fields", "PythonFunction", "arguments_for"]


class PythonFunction:
    """A Python function, called once per cell with plain data.

    `target` is `module.path:callable`; for the arguments see `arguments_for`. Asynchronous callables run in the event
    loop, all others in a thread. With `init_kwargs` the named object is called once with them and returns the callable.
    The items of a generator are joined.
    """

    def __init__(self, variant: Variant) -> None:
        self._found = named_object(variant.config.get("target"))
        self._init_kwargs = variant.config.get("init_kwargs")
        if self._init_kwargs is not None and not isinstance(self._init_kwargs, dict):
            raise _config_error("init_kwargs", f"expected a mapping, found {kind_in_words(self._init_kwargs)}")
        if self._init_kwargs is None and not callable(self._found):
            hint = "; name a function that calls its `invoke`" if hasattr(self._found, "invoke") else ""
            raise _config_error("target", f"{variant.config['target']!r} is not callable{hint}")
        self._variant: dict[str, Any] = {"schema_version": "1.0", **_public(variant)}
        self._threads: Threads | None = None
        self._asynchronous = False
        self._evalh_rules = variant.evalh_rules
        self._reading: dict[str, Any] = {"any_mapping": variant.any_mapping, "optional": optional_parts(variant.config)}
        self._arguments: _Arguments | None = None if self._init_kwargs is not None else arguments_for(self._found)

    async def open(self) -> None:
        if self._init_kwargs is not None:
            # In a thread: a constructor that loads a model would hold up the event loop and its limits.
            self._found = await self._in_thread(partial(self._found, **self._init_kwargs))
        if self._arguments is None:
            self._arguments = arguments_for(self._found)
        self._asynchronous = _runs_in_loop(self._found)
        self._reading["evalh_rules"] = self._evalh_rules and _takes_case_and_variant(_parameters(self._found) or [])

    @traced
    async def run(self, case: Case, trial: int) -> Answer:
        assert self._arguments is not None  # open() must come first
        try:
            # A copy for each call: user code may change what it gets, and other cells would see it.
            variant = msgspec.to_builtins(self._variant)
            if (path := workspace_path()) is not None:
                variant["_workspace_path"] = str(path)
            positional, keywords = self._arguments(case, variant, trial)
            if self._asynchronous:
                returned = self._found(*positional, **keywords)
            else:
                returned = await self._in_thread(_call_and_read, self._found, positional, keywords)
            if returned.__class__ is CoroutineType:
                returned = await returned
            if returned.__class__ is not dict and returned.__class__ is not str:  # most are: asking for more costs more
                returned = await _settled_value(returned)
            return answer_of(returned, self._found, **self._reading)
        except TargetError:
            raise
        except Exception as error:
            left = getattr(error, "final_answer", None)
            return Answer(Output(left if isinstance(left, str) else None), error=target_failure(error))

    def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> Awaitable[Any]:
        if self._threads is None:
            self._threads = Threads()
        return self._threads.call(function, *arguments)

    async def close(self) -> None:
        if self._threads is not None:
            self._threads.close()


async def _settled_value(returned: Any) -> Any:
    """The final value, once everything awaitable or iterable has been resolved."""
    # Not `if`: a function may return a coroutine that returns another one, as with decorators.
    while isinstance(returned, Awaitable):
        returned = await returned
    return await collected_async(returned) if isinstance(returned, AsyncIterator) else returned


def _call_and_read(function: Any, positional: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Runs in the thread of the call: a generator does its work while it is read, so it is read here, too."""
    returned = function(*positional, **keywords)
    return collected(returned) if isinstance(returned, Iterator) else returned


def _public(variant: Variant) -> dict[str, Any]:
    return {
        "name": variant.name,
        "adapter": variant.adapter,
        "config": variant.config,
        "metadata": variant.metadata,
    }


def _config_error(key: str, message: str) -> InputError:
    return InputError(Problem(file="", key=key, message=message))


def _runs_in_loop(function: Any) -> bool:
    """Whether calling it only creates something to be awaited or iterated in the event loop."""
    called = (
        function
        if inspect.isroutine(function) or isinstance(function, partial)
        else type(function).__dict__.get("__call__")
    )
    return inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)


_Arguments = Callable[[Case, dict[str, Any], int], tuple[tuple[Any, ...], dict[str, Any]]]
"""From a case, a variant as plain data and a trial to the arguments of a call."""

_NAMED = ("case", "variant", "trial")


class Fields(dict[str, Any]):
    """A mapping whose keys can be read as attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no {name!r} (there are: {', '.join(self)})") from None


def arguments_for(function: Any) -> _Arguments:
    """Fill parameters: a single one gets the input, two get the case and the variant, and `case`, `variant` and `trial`
    get what their names say.

    Parameters with a default are left alone unless they have one of these names. Raises InputError for a function with
    other parameters.
    """
    parameters = _parameters(function)
    if parameters is None:
        return _input_to(None, [])
    if _takes_case_and_variant(parameters):
        return lambda case, variant, _trial: ((_case(case), Fields(variant)), {})
    named = [p.name for p in parameters if p.name in _NAMED and p.kind is not Parameter.POSITIONAL_ONLY]
    others = [p for p in _required_parameters(parameters) if p.name not in named]
    if not others and not named:  # def answer(text="..."): it gets the input all the same
        others = [p for p in parameters if p.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)][:1]
    if len(others) > 1 or not (others or named):
        listed = ", ".join(str(p) for p in parameters)
        expected = "expected a function of one parameter (the input), or of two (case, variant)"
        raise InputError(Problem("", f"{expected}, found ({listed})", key="target"))
    keyword = others[0].name if others and others[0].kind is Parameter.KEYWORD_ONLY else None
    return _input_to(keyword, named, alone=not others)


def _parameters(function: Any) -> list[Parameter] | None:
    """None for a function without a signature, as some builtins are."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def _required_parameters(parameters: Sequence[Parameter]) -> list[Parameter]:
    variadic = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    return [p for p in parameters if p.default is Parameter.empty and p.kind not in variadic]


def _takes_case_and_variant(parameters: Sequence[Parameter]) -> bool:
    """`(case, variant)`, whatever the two are called, and `*args`: how evalh calls targets."""
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in parameters if p.kind in kinds and (p.default is Parameter.empty or p.name in _NAMED)]
    if not names:
        return any(p.kind is Parameter.VAR_POSITIONAL for p in parameters)
    if len(names) != 2 or len(_required_parameters(parameters)) > 2:
        return False
    return names[0] not in ("variant", "trial") and names[1] not in ("case", "trial")


def _input_to(keyword: str | None, named: Sequence[str], *, alone: bool = False) -> _Arguments:
    def arguments(case: Case, variant: dict[str, Any], trial: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        keywords: dict[str, Any] = {}
        for name in named:
            keywords[name] = _case(case) if name == "case" else Fields(variant) if name == "variant" else trial
        if alone:
            return (), keywords
        case_input = msgspec.to_builtins(case.input)
        if keyword is None:
            return (case_input,), keywords
        return (), {**keywords, keyword: case_input}

    return arguments


def _case(case: Case) -> Fields:
    data = Fields(case.argument())
    data["expected"] = Fields(data["expected"])
    return data
