"""What judges: functions, registered evaluators with a configuration, and judges that call models."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, cast, overload

import msgspec

from evalwright import registry
from evalwright.api.places import Passed, name_of
from evalwright.api.problems import no_text, refused
from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.files.numbers import is_number
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.snapshot import Case
from evalwright.registry import names

__all__ = ["Evaluator", "EvaluatorLike", "Judge", "evaluator", "implied_evaluators", "specs_of"]

F = TypeVar("F", bound=Callable[..., Any])

_FUNCTION = "python_function"
_OPTIONS = "__evalwright_evaluator__"
_MODELS = ("model", "models")
"""Keys of evaluators that name models: a function there is one, under the name that the run finds it by."""


class _FunctionOptions(NamedTuple):
    name: str | None
    threshold: float | None
    uses_model: bool


ModelFunction: TypeAlias = Callable[[Any], Any]
"""A model of the user's own."""


class Evaluator:
    """A registered evaluator with its configuration; `evalwright list evaluators` shows them all.

    Example:
        `Evaluator("contains_text", all_of=["refund"], name="says_refund")`
    """

    __slots__ = ("config", "name", "threshold", "type")

    def __init__(self, type: str, /, *, name: str | None = None, threshold: float | None = None, **config: Any) -> None:
        """
        Args:
            type: The registered name, such as "contains_text".
            name: The name in results; None: the type.
            threshold: The score from which it passes; None: the evaluator's own rule.
            config: The keys that it has in `eval.yaml`.

        Raises:
            InputError: a key that this evaluator does not have. An unknown `type` is reported with the other
                mistakes of the arguments, when the evaluator is used.
        """
        from evalwright.evaluators.build import undeclared_keys

        if not isinstance(type, str):  # checked here: its keys are known by its name
            raise InputError(refused("Evaluator", f"expected the name of an evaluator, found {type!r}"))
        if registry.knows("evaluators", type) and (keys := undeclared_keys(type, config)):
            raise InputError([refused(f"Evaluator({type!r})", problem.message) for problem in keys])
        self.type: str = type
        self.name: str = name or type
        self.threshold: float | None = threshold
        self.config: dict[str, Any] = config

    def __repr__(self) -> str:
        settings = "".join(f", {key}={value!r}" for key, value in self.config.items())
        return f"Evaluator({self.type!r}, name={self.name!r}{settings})"


class Judge(Evaluator):
    """A model that judges whether assertions are true of an answer.

    Examples:
        `Judge("claude-sonnet-4-5", "The reply is polite and answers the question.", name="polite")`

        `Judge(ask_gateway, "The reply is polite.")`, where `ask_gateway` takes a `ChatRequest` and returns text
    """

    __slots__ = ()

    def __init__(
        self,
        model: str | ModelFunction | Sequence[str | ModelFunction],
        /,
        *assertions: str,
        name: str | None = None,
        **config: Any,
    ) -> None:
        """
        Args:
            model: The model to call, or several, whose majority decides. A function is a model of your own: it gets
                a `ChatRequest` of `evalwright.plugins` and returns the reply, text or a `ChatReply`; it may be `async`.
            assertions: Sentences, all of which must be true of an answer.
            name: The name in results; None: "llm_judge".
            config: Further keys of `llm_judge`, such as `rubric`, `samples`, `temperature`, `cost_limit_usd`.

        Raises:
            InputError: `model` is no text, function or list, or `llm_judge` does not have a key.
        """
        alone = isinstance(model, str) or callable(model)
        if not alone and not isinstance(model, Sequence):
            expected = "the name of a model, a function that takes a ChatRequest, or a list of these"
            raise InputError(refused("Judge", f"expected {expected}, found {model!r:.60}"))
        models: dict[str, Any] = {"model": model} if alone else {"models": list(cast(Sequence[Any], model))}
        if assertions:
            models["nl_assertions"] = list(assertions)
        super().__init__("llm_judge", name=name, **models, **config)


class JudgingFunction(Protocol):
    """A function whose parameters are filled by name.

    Type checkers see `Callable[..., Any]` with a first parameter, which gives the parameter of a lambda a type.
    """

    def __call__(self, first: Any, /, *others: Any, **by_name: Any) -> Any: ...


EvaluatorLike: TypeAlias = str | Evaluator | Judge | JudgingFunction
"""A registered name, an Evaluator, a Judge, or a function."""


@overload
def evaluator(function: F, /) -> F: ...
@overload
def evaluator(
    *, name: str | None = None, threshold: float | None = None, uses_model: bool = False
) -> Callable[[F], F]: ...
def evaluator(
    function: F | None = None,
    /,
    *,
    name: str | None = None,
    threshold: float | None = None,
    uses_model: bool = False,
) -> F | Callable[[F], F]:
    """Give a function that judges answers a name and options. It can be called as before.

    Its parameters are filled by name: `input`, `output`, `expected`, `case`, `trace`, `artifact`, `results`. It returns
    a bool, a number from 0 to 1, `(bool or number, reason)`, a mapping with `passed`, `score` and `reason`, or an
    `Evaluation`; it raises if it cannot judge. It may be `async`.

    Args:
        function: The function, if the decorator is used without arguments.
        name: The name in results; None: the function's.
        threshold: The lowest number that passes (0 to 1); None: 0.5.
        uses_model: It waits for a model, so several cells are evaluated at a time, in threads if it is not `async`.

    Returns:
        The function itself, or a decorator. A function that has a name and options keeps them, and one that cannot
        have any, such as a method, stays as it is: then a function that calls it is returned.

    Raises:
        InputError: it cannot be called.

    Example:
        `short = evaluator(threshold=0.8)(lambda output: 40 / len(output.split()))`
    """

    def mark(marked: F) -> F:
        if not callable(marked):
            raise InputError(refused("evaluator", f"expected a function, found {type(marked).__name__}"))
        options = _FunctionOptions(name, threshold, uses_model)
        if not hasattr(marked, _OPTIONS):
            with suppress(AttributeError, TypeError):  # methods and built-in functions have no attributes of ours
                setattr(marked, _OPTIONS, options)
                return marked
        other = cast(F, partial(marked))
        setattr(other, _OPTIONS, options)
        return other

    return mark if function is None else mark(function)


def specs_of(
    evaluators: EvaluatorLike | Sequence[EvaluatorLike], places: Passed, problems: list[Problem]
) -> list[EvaluatorSpec]:
    """The evaluators of a plan. Functions are added to `places`, problems to `problems`."""
    single = isinstance(evaluators, str | Evaluator) or callable(evaluators)
    listed: Sequence[Any] = [evaluators] if single else evaluators  # type: ignore[assignment]
    if isinstance(listed, Mapping):
        problems.append(refused("evaluators", "expected a list, found a mapping: `evaluator(name=...)` gives names"))
        return []
    if not isinstance(listed, Iterable):
        problems.append(refused("evaluators", f"expected evaluators, found {type(evaluators).__name__}"))
        return []
    specs = []
    for position, one in enumerate(listed):
        spec = _spec("evaluators" if single else f"evaluators[{position}]", one, places, problems)
        if spec is not None:
            specs.append(spec)
    for name, number in Counter(spec.name for spec in specs).items():
        if number > 1:
            problems.append(refused("evaluators", f"two evaluators are named {name!r}: give one another `name=`"))
    return specs


def _spec(place: str, evaluator: Any, places: Passed, problems: list[Problem]) -> EvaluatorSpec | None:
    from evalwright.evaluators.build import build
    from evalwright.session.named_objects import with_objects

    bare = isinstance(evaluator, str)
    if isinstance(evaluator, str):
        evaluator = Evaluator(evaluator)
    if not isinstance(evaluator, Evaluator) and not callable(evaluator):
        expected = "a name, an Evaluator, a Judge or a function"
        problems.append(refused(place, f"expected {expected}, found {type(evaluator).__name__}"))
        return None
    if isinstance(evaluator, Evaluator) and evaluator.type not in names("evaluators"):
        problems.append(
            refused(place, f"unknown evaluator {evaluator.type!r}{did_you_mean(evaluator.type, names('evaluators'))}")
        )
        return None
    name = evaluator.name if isinstance(evaluator, Evaluator) else _options_of(evaluator).name
    if wrong := list(no_text(f"{place}.name", name)):
        problems += wrong
        return None
    try:
        spec = (
            _spec_of_type(evaluator, places)
            if isinstance(evaluator, Evaluator)
            else _spec_of_function(evaluator, places)
        )
        with with_objects(places.objects):
            build(spec)
    except InputError as error:
        # the keys of a function's spec are our own: a problem that names them would mean nothing to the caller
        if not isinstance(evaluator, Evaluator):
            problems += [refused(place, p.message) for p in error.listed]
            return None
        if bare:
            problems.append(
                refused(place, f"{evaluator.type!r} alone lacks its keys: pass Evaluator({evaluator.type!r}, KEY=...)")
            )
        for p in error.listed:
            problems.append(refused(f"{place}.{p.key}" if p.key else place, f"{evaluator.type}: {p.message}"))
        return None
    return spec


def _spec_of_type(evaluator: Evaluator, places: Passed) -> EvaluatorSpec:
    def named(value: Any) -> Any:
        if isinstance(value, list):
            return [named(item) for item in value]
        return f"python:{places.add(value)}" if callable(value) else value

    settings = {key: named(value) if key in _MODELS else value for key, value in evaluator.config.items()}
    try:
        config = msgspec.to_builtins(settings)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(Problem("", f"expected plain data: {error}")) from error
    threshold = evaluator.threshold
    if threshold is not None and not (is_number(threshold) and math.isfinite(threshold)):
        raise InputError(Problem("", f"expected a number, found {threshold!r}", key="threshold"))
    return EvaluatorSpec(evaluator.name, evaluator.type, config, threshold=evaluator.threshold)


def _options_of(function: Callable[..., Any]) -> _FunctionOptions:
    options: _FunctionOptions = getattr(function, _OPTIONS, _FunctionOptions(None, None, False))
    return options


def _spec_of_function(function: Callable[..., Any], places: Passed) -> EvaluatorSpec:
    options = _options_of(function)
    config: dict[str, Any] = {"function": places.add(function)}
    if options.threshold is not None:
        config["threshold"] = options.threshold
    if options.uses_model:
        config["uses_model"] = True
    return EvaluatorSpec(options.name or name_of(function), _FUNCTION, config)


_BY_EXPECTATION: Mapping[str, tuple[str, ...]] = {
    "contains_text": ("answer_should_include", "answer_should_not_include"),
    "tool_called": ("must_call_tools",),
}
"""Which evaluators check what a case expects."""


def implied_evaluators(cases: Sequence[Case]) -> list[EvaluatorSpec]:
    """The evaluators that the cases' `expected` implies. Raises InputError for cases that imply none."""
    names: set[str] = set()
    idle = []
    for case in cases:
        wanted = {name for name, keys in _BY_EXPECTATION.items() if any(getattr(case.expected, key) for key in keys)}
        names |= wanted
        if not wanted:
            idle.append(case.key)
    if idle:
        keys = ", ".join(key for keys in _BY_EXPECTATION.values() for key in keys)
        which = "no case expects anything" if len(idle) == len(cases) else f"nothing is expected of {_listed_ids(idle)}"
        raise InputError(refused("evaluators", f"nothing would be judged: {which}; pass evaluators, or expect {keys}"))
    return [EvaluatorSpec(name, name) for name in _BY_EXPECTATION if name in names]


def _listed_ids(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - 3} more" if len(ids) > 3 else ""
    return ", ".join(map(repr, ids[:3])) + more
