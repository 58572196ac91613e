"""Makes an evaluator from its type and configuration, reporting all mistakes of the configuration at once.

The fields of a `msgspec.Struct` class are its keys. Rules across keys are in `Traits.config_problems`, which gets the
converted value of every key that was given (`msgspec.UNSET` for one that is itself wrong) and returns problems.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, cast

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.evaluators.config_mistakes import endless_number, mismatches, undeclared_key
from evalwright.evaluators.onlooker import Onlooker
from evalwright.evaluators.wording import in_words
from evalwright.files.plain import not_finite
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.protocols import Evaluator, Extractor
from evalwright.model.result import Evaluation
from evalwright.model.trace_parts import TRACE_PARTS
from evalwright.model.traits import Traits
from evalwright.registry import is_built_in, load

if TYPE_CHECKING:
    from evalwright.model.chat import ChatRequest
    from evalwright.model.snapshot import Case

__all__ = [
    "BuiltEvaluator",
    "build",
    "build_evaluator",
    "build_extractor",
    "calls_models",
    "config_doubts",
    "declared",
    "fields_by_key",
    "is_judge",
    "keys_needed",
    "needed_keys",
    "parts_read",
    "read_as_values",
    "requests_of",
    "undeclared",
    "undeclared_keys",
    "uses_results",
]


class BuiltEvaluator(NamedTuple):
    """An evaluator with its configuration, and what it declares about itself."""

    evaluator: Evaluator
    traits: Traits

    @property
    def evaluate(self) -> Callable[..., Evaluation | Awaitable[Evaluation]]:
        """The evaluator's method. Whether it takes a third argument depends on `traits`."""
        return self.evaluator.evaluate


def declared(kind: str, name: str) -> Traits:
    """What an evaluator or extractor (`kind`) declares without a configuration. Raises InputError if it is unknown.

    What may depend on the configuration has its default here: `uses_*`, `scores` and `timeout_seconds`.
    """
    return _declared_traits(load(kind, name))


def calls_models(type_name: str, config: Mapping[str, Any]) -> bool:
    """Whether this evaluator waits for models. Raises InputError for an unknown type."""
    says = declared("evaluators", type_name).calls_models
    return bool(says(config) if callable(says) else says)


def is_judge(spec: EvaluatorSpec) -> bool:
    """Whether an evaluator calls models; False for one of a plug-in that is not installed."""
    try:
        return calls_models(spec.type, spec.config)
    except InputError:
        return False


def requests_of(spec: EvaluatorSpec) -> Callable[[Case], Iterable[ChatRequest]] | None:
    """`Traits.asks` of the evaluator of a plan; None for one without, which is not built to find that out."""
    if declared("evaluators", spec.type).asks is None:
        return None
    return build_evaluator(spec.type, spec.config).traits.asks


def uses_results(spec: EvaluatorSpec) -> bool:
    """Whether an evaluator uses the results of other evaluators; False for one that cannot be built here."""
    try:
        declared = getattr(load("evaluators", spec.type), "uses_results", False)
        # for some, this depends on the configuration and is known only once they are built
        return declared if isinstance(declared, bool) else build_evaluator(spec.type, spec.config).traits.uses_results
    except InputError:
        return False


def build_evaluator(type_name: str, config: Mapping[str, Any]) -> BuiltEvaluator:
    """The evaluator registered under `type_name` with its configuration.

    Raises InputError for an unknown type, for something of a plug-in that is not an evaluator, and for a bad
    configuration; the problems then have keys relative to it.
    """
    kind = load("evaluators", type_name)
    evaluator = _built(kind, config)
    traits = _traits(kind, evaluator)
    method = "compare(case, cells)" if traits.compares else "evaluate(case, trace)"
    if not callable(getattr(evaluator, method.partition("(")[0], None)):
        raise InputError(Problem("", f"{type_name!r} is not an evaluator: no method {method}"))
    if not is_built_in(type(evaluator)):
        from evalwright.evaluators.plugin import PluginEvaluator

        evaluator = PluginEvaluator(evaluator)
    return BuiltEvaluator(evaluator, traits)


def undeclared_keys(type_name: str, config: Mapping[str, Any]) -> list[Problem]:
    """Keys of a configuration that an evaluator does not have, if it declares its keys.

    Raises InputError for an unknown type.
    """
    kind = load("evaluators", type_name)
    return [] if _takes_any_key(kind) else undeclared(config, fields_by_key(kind))


def read_as_values(type_name: str, texts: Mapping[str, str]) -> dict[str, Any]:
    """The numbers and truth values that some texts, by key, are to an evaluator which takes no text there.

    Raises InputError for an unknown type.
    """
    fields = fields_by_key(load("evaluators", type_name))
    values = {}
    for key in texts.keys() & fields.keys():
        try:
            msgspec.convert(texts[key], fields[key].type)
        except msgspec.ValidationError:
            with suppress(msgspec.MsgspecError):  # what it is instead is said of the text
                value = msgspec.json.decode(texts[key], type=float | bool | int)
                values[key] = msgspec.convert(value, fields[key].type)
    return values


def config_doubts(type_name: str, config: Mapping[str, Any]) -> list[Problem]:
    """Keys of an allowed configuration by which every answer passes, or none. Raises InputError for an unknown type."""
    doubts = declared("evaluators", type_name).config_doubts
    return [] if doubts is None else doubts(config)


def undeclared(keys: Iterable[str], known: Iterable[str]) -> list[Problem]:
    """A problem for each key that is not among the known ones."""
    names = list(known)
    return [undeclared_key(key, names) for key in keys if key not in names]


def build(spec: EvaluatorSpec) -> BuiltEvaluator:
    """The evaluator of a plan, with its extractor and threshold applied. Raises InputError like `build_evaluator`."""
    evaluator, traits = build_evaluator(spec.type, spec.config)
    if spec.extractor is not None:
        from evalwright.evaluators.conversation.extraction import ExtractingEvaluator

        extractor = build_extractor(spec.extractor.type, spec.extractor.config)
        # An extracted text is always judged with the case, which decides whether there is one ground truth or several.
        evaluator = ExtractingEvaluator(evaluator, extractor)
        blocks = traits.blocks or _blocks(load("extractors", spec.extractor.type), extractor)
        traits = msgspec.structs.replace(traits, uses_case=True, expected_keys=None, blocks=blocks)
    if spec.threshold is not None:
        from evalwright.evaluators.combined.thresholds import Threshold

        evaluator = Threshold(evaluator, spec.threshold, spec.threshold_op)
    return BuiltEvaluator(evaluator, traits)


def needed_keys(specs: Iterable[EvaluatorSpec]) -> dict[str, frozenset[str]]:
    """By evaluator, the keys of `expected` of which it needs at least one to check anything; only those with any."""
    needed = {}
    for spec in specs:
        with suppress(InputError):
            needed[spec.name] = keys_needed(build_evaluator(spec.type, spec.config))
    return {name: keys for name, keys in needed.items() if keys}


def keys_needed(built: BuiltEvaluator) -> frozenset[str]:
    """The keys of `expected` of which an evaluator needs at least one to check anything; empty if it needs none."""
    keys: frozenset[str] = getattr(built.evaluator, "needed_keys", frozenset[str]())
    return keys


def parts_read(spec: EvaluatorSpec) -> frozenset[str]:
    """Those of the `TRACE_PARTS` of a trace that the evaluator of a plan looks at."""
    evaluator = build_evaluator(spec.type, spec.config).evaluator
    return evaluator.reads if spec.extractor is None and isinstance(evaluator, Onlooker) else TRACE_PARTS


def build_extractor(type_name: str, config: Mapping[str, Any]) -> Extractor:
    """The extractor registered under `type_name` with its configuration. Raises InputError like `build_evaluator`."""
    return cast(Extractor, _built(load("extractors", type_name), config))


def _declared_traits(kind: Any) -> Traits:
    # A class of another package may inherit from one of ours and judge in a way of its own.
    return Traits(
        looks=isinstance(kind, type) and is_built_in(kind) and issubclass(kind, Onlooker),
        compares=getattr(kind, "compares", False),
        calls_models=getattr(kind, "calls_models", False),
        imports_code=getattr(kind, "imports_code", False),
        asks=getattr(kind, "asks", None),
        skips=getattr(kind, "skips", None),
        paths=getattr(kind, "paths", {}),
        passes_from=getattr(kind, "passes_from", None),
        config_problems=getattr(kind, "config_problems", None),
        config_doubts=getattr(kind, "config_doubts", None),
    )


def _traits(kind: Any, evaluator: Any) -> Traits:
    return msgspec.structs.replace(
        _declared_traits(kind),
        uses_case=getattr(evaluator, "uses_case", True),
        expected_keys=getattr(evaluator, "expected_keys", None),
        uses_artifact=getattr(evaluator, "uses_artifact", False),
        uses_results=getattr(evaluator, "uses_results", False),
        blocks=_blocks(kind, evaluator),
        bind_members=getattr(evaluator, "bind_members", None),
        asks=getattr(evaluator, "asks", None),
        skips=getattr(evaluator, "skips", None),
        scores=getattr(evaluator, "scores", (0.0, 1.0)),
        timeout_seconds=getattr(evaluator, "timeout_seconds", 0.0),
    )


def _blocks(kind: Any, evaluator: Any) -> bool | None:
    """Whether code of users, or of another package, is called; for ours, see `Traits`."""
    if is_built_in(type(evaluator)) and not getattr(kind, "imports_code", False):
        return False if getattr(evaluator, "is_brief", False) else None
    blocks: bool = getattr(evaluator, "blocks", not inspect.iscoroutinefunction(getattr(evaluator, "evaluate", None)))
    return blocks


def _built(kind: Any, config: Mapping[str, Any]) -> Any:
    try:
        values, problems = _checked_config(kind, config)
        check = _declared_traits(kind).config_problems
        if check is not None:
            problems.extend(check(values))
        if not problems:
            if not _is_struct(kind):
                return kind(**config)
            fields = fields_by_key(kind)
            return kind(**{fields[key].name: value for key, value in values.items()})
    except (TypeError, ValueError, RecursionError, msgspec.ValidationError) as error:
        raise InputError(Problem("", str(error))) from error
    raise InputError(problems)


@cache
def fields_by_key(kind: Any) -> dict[str, msgspec.structs.FieldInfo]:
    """The keys of a class or function: the fields of a Struct, or the arguments of any other callable.

    Cached: msgspec reads the annotations again each time, which takes most of the time of building evaluators.
    """
    if _is_struct(kind):
        return {field.encode_name: field for field in msgspec.structs.fields(kind)}
    return {
        name: _as_field(argument) for name, argument in _arguments(kind).items() if argument.kind not in _ANY_NUMBER
    }


_ANY_NUMBER = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
"""Arguments without names of their own: only the plug-in knows what it takes as them."""


def _is_struct(kind: Any) -> TypeGuard[type[msgspec.Struct]]:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _takes_any_key(kind: Any) -> bool:
    return not _is_struct(kind) and any(argument.kind is argument.VAR_KEYWORD for argument in _arguments(kind).values())


def _arguments(kind: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(kind, eval_str=True).parameters
    except NameError:  # an annotation that only type checkers can resolve leaves all of them as strings
        return {
            name: parameter.replace(annotation=Any) for name, parameter in inspect.signature(kind).parameters.items()
        }
    except ValueError:  # a class written in C that does not declare its arguments
        return inspect.signature(lambda **config: None).parameters


def _as_field(argument: inspect.Parameter) -> msgspec.structs.FieldInfo:
    """An argument; of any type if JSON has no equivalent of its own, which leaves the value to the plug-in."""
    missing, expected = argument.default is argument.empty, argument.annotation
    try:
        msgspec.json.schema(expected)
    except TypeError:
        expected = Any
    return msgspec.structs.FieldInfo(
        name=argument.name,
        encode_name=argument.name,
        type=expected | None if argument.default is None and expected is not Any else expected,
        default=msgspec.NODEFAULT if missing else argument.default,
    )


def _checked_config(kind: Any, config: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """The value of every known key that was given, and the problems of single keys."""
    fields = fields_by_key(kind)
    values: dict[str, Any] = {}
    problems = []
    for key, value in config.items():
        if key not in fields:
            if not _takes_any_key(kind):
                problems.append(undeclared_key(key, fields))
            continue
        values[key] = msgspec.UNSET
        try:
            # A plan is stored as JSON, so what JSON cannot hold (dates of a YAML file) becomes text before it is used.
            value = msgspec.to_builtins(value)
            endless = [*not_finite(value)]
            problems += [endless_number(key, place, number) for place, number in endless]
            if not endless:
                values[key] = msgspec.convert(value, fields[key].type)
        except (msgspec.ValidationError, TypeError, RecursionError) as error:
            problems += mismatches(key, fields[key].type, value, str(error))
    problems += [
        Problem("", f"the required key {key!r} is missing, expected {in_words(field.type)}", key=key)
        for key, field in fields.items()
        if field.required and key not in values
    ]
    return values, problems
