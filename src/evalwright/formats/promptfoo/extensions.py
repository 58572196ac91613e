"""`extensions`: functions of the user's that are called before and after the suite and each test."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright.formats.promptfoo.faults import ScriptError
from evalwright.formats.promptfoo.scripts import call_hook, python_function
from evalwright.formats.promptfoo.sources import in_file, split_function
from evalwright.formats.promptfoo.values import as_javascript
from evalwright.model.snapshot import Case

__all__ = ["AFTER_ALL", "AFTER_EACH", "BEFORE_ALL", "BEFORE_EACH", "concerned", "hooked", "test_of", "vars_before"]

BEFORE_ALL, BEFORE_EACH, AFTER_EACH, AFTER_ALL = "beforeAll", "beforeEach", "afterEach", "afterAll"
_HOOKS = {
    **{name: name for name in (BEFORE_ALL, BEFORE_EACH, AFTER_EACH, AFTER_ALL)},
    "before_all": BEFORE_ALL, "before_each": BEFORE_EACH, "after_each": AFTER_EACH, "after_all": AFTER_ALL,
}  # fmt: skip
"""Functions with these names are for one hook; all others are called at every hook with its name."""
_SECONDS = {BEFORE_ALL: 600.0}
_LIMIT = 30.0
"""Seconds for one call of any other hook."""


def concerned(extensions: Sequence[str], hook: str) -> list[str]:
    """The extensions that are called at a hook; what names no file is reported as a mistake elsewhere."""
    files = [named for named in extensions if in_file(named)]
    return [named for named in files if _HOOKS.get(split_function(named)[1], hook) == hook]


async def hooked(
    extensions: Sequence[str],
    folder: str,
    hook: str,
    context: dict[str, Any],
    accept: Callable[[dict[str, Any], Any], dict[str, Any]] = lambda context, returned: context,
    variables: dict[str, str] | None = None,
) -> dict[str, Any]:
    """The context of a hook after all extensions: `accept` makes it of what one of them has returned, if that is
    anything. What those in JavaScript set in their environment is added to `variables`. Raises ScriptError, which names
    the hook and the file; `accept` may raise it, too."""
    for named in concerned(extensions, hook):
        try:
            if returned := await _hook_result(named, folder, hook, context, variables):
                context = accept(context, returned)
        except ScriptError as error:
            raise ScriptError(f"{hook} of {split_function(named)[0]}: {error}", error.type) from error
    return context


async def _hook_result(
    named: str, folder: str, hook: str, context: dict[str, Any], variables: dict[str, str] | None
) -> Any:
    path, name = split_function(named)
    hook_context = copy.deepcopy(context)  # only what a hook returns counts
    arguments: list[Any] = [hook_context, {"hookName": hook}] if name in _HOOKS else [hook, hook_context]
    if path.endswith(".py"):
        name = name or "extension_hook"
        arguments = arguments[: _arguments_taken(python_function(Path(folder, path), name), arguments)]
    seconds = _SECONDS.get(hook, _LIMIT)
    where = f"{path}:{name}" if name else path
    return await call_hook(folder, where, arguments, seconds, silent=hook == AFTER_ALL, variables=variables)


def _arguments_taken(function: Callable[..., Any], arguments: Sequence[Any]) -> int:
    """How many of the arguments a function of Python takes; JavaScript's ignore those that they do not name."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return 1
    except ValueError:  # it has no signature
        pass
    return len(arguments)


def test_of(case: Case) -> dict[str, Any]:
    """A test in the form in which promptfoo shows it to hooks and in its result file."""
    return {
        "vars": case.input,
        "description": case.description,
        "metadata": case.metadata,
        "assert": [spec.config["assertion"] for spec in case.evaluators or () if "assertion" in spec.config],
    }


async def vars_before(extensions: Sequence[str], folder: str, case: Case) -> dict[str, Any]:
    """The variables of a test after `beforeEach`. Raises ScriptError."""
    options = case.extra.get("promptfoo", {}).get("options", {})
    test = {**test_of(case), "vars": case.input or {}, "options": options}
    context = await hooked(extensions, folder, BEFORE_EACH, {"test": as_javascript(test)}, _with_vars)
    variables: dict[str, Any] = context["test"]["vars"]
    return variables


def _with_vars(context: dict[str, Any], returned: Any) -> dict[str, Any]:
    """The test with the variables that a hook returned. A test is judged as it is stored, so that nothing else of it
    can be changed."""
    test = returned.get("test") if isinstance(returned, Mapping) else None
    if not isinstance(test, Mapping) or not isinstance(test.get("vars", {}), Mapping):
        raise ScriptError(f"expected the context with its test and vars, or nothing; found {returned!r:.80}")
    before = context["test"]
    changed = [key for key in {**before, **test} if key != "vars" and test.get(key) != before.get(key)]
    if changed:
        raise ScriptError(f"it returned a test with another {', '.join(changed)}: only vars can be changed there")
    return {"test": {**before, "vars": dict(test.get("vars", {}))}}
