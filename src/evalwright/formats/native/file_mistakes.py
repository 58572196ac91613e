"""What is wrong with an `eval.yaml`: pydantic checks its shape, and the mistakes are worded to fit the file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StrictStr,
    Tag,
    ValidationError,
    create_model,
)

from evalwright.errors import did_you_mean
from evalwright.files.key_paths import Place, as_written
from evalwright.formats.native.file import (
    ITEMS,
    CriteriaSection,
    DatasetSection,
    EvalFile,
    EvalSection,
    EvaluatorSection,
    ExecutorSection,
    ExtractorSection,
    JudgesSection,
    MetricsSection,
    RaySection,
    RetrySection,
    RunSection,
    Section,
    TraceSection,
    Version,
    WorkspaceSection,
)
from evalwright.formats.shared.findings import expectation, remedy

__all__ = ["model_of", "sound_parts"]

ReportMistake = Callable[[Place, str], None]
Item = tuple[int, dict[str, Any], bool]
"""The position of an item, its correct keys, and whether all were correct."""


def _number(value: Any) -> Any:
    """Numbers as they are or as text (an expanded `${N}`), but no booleans."""
    if isinstance(value, bool):
        raise ValueError("expected a number")
    return value


def _major_one(value: str) -> str:
    if not value.startswith("1."):
        raise ValueError("expected a version 1.x")
    return value


def _named_type(value: Any) -> Any:
    """A bare name stands for a type without configuration."""
    return {"type": value} if isinstance(value, str) else value


def _plain_workers(value: Any) -> Any:
    """`true` stands for workers without any wishes."""
    return ({} if value else None) if isinstance(value, bool) else value


_TAGS = {str: "|text", list: "|list", type(None): "|none"}
"""Of the types that a key may have; pydantic puts them into the places of mistakes."""
_ONE_OR_SEVERAL = Annotated[
    Annotated[StrictStr, Tag(_TAGS[str])]
    | Annotated[list[StrictStr], Tag(_TAGS[list])]
    | Annotated[None, Tag(_TAGS[type(None)])],
    Discriminator(
        lambda value: _TAGS.get(type(value)),
        custom_error_type="one_or_several",
        custom_error_message="expected a string or a list of strings",
    ),
]
"""One message, where a mere union of types has one for each of them."""


@cache
def model_of(kind: type[Section]) -> type[BaseModel]:
    """The pydantic model of a section."""
    config = ConfigDict(extra="forbid" if kind.__struct_config__.forbid_unknown_fields else "allow")
    fields: dict[str, Any] = {
        field.name: (_checked_type(field.type), _default(field)) for field in msgspec.structs.fields(kind)
    }
    if kind is EvaluatorSection:
        fields["extractor"] = (Annotated[_checked_type(ExtractorSection | None), BeforeValidator(_named_type)], None)
    if kind is ExecutorSection:
        fields["judges"] = (Annotated[_checked_type(RaySection | None), BeforeValidator(_plain_workers)], None)
    return create_model(kind.__name__, __config__=config, **fields)


def _checked_type(annotation: Any) -> Any:
    """A type as pydantic checks it: text must be text, but numbers may be text, too."""
    if annotation is Version:
        return Annotated[StrictStr, AfterValidator(_major_one)]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        kind, bounds = arguments
        limits = {name: getattr(bounds, name) for name in ("min_length", "ge", "gt", "le")}
        return Annotated[
            _checked_type(kind), Field(**{name: limit for name, limit in limits.items() if limit is not None})
        ]
    if origin in (list, dict):
        return origin[tuple(map(_checked_type, arguments))]
    if annotation == str | list[str] | None:
        return _ONE_OR_SEVERAL
    if origin in (Union, UnionType):
        return Union[tuple(map(_checked_type, arguments))]  # noqa: UP007 - as many as there are
    if annotation is str:
        return StrictStr
    if annotation is int:
        return Annotated[int, BeforeValidator(_number)]
    if annotation is float:
        return Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)]
    return model_of(annotation) if isinstance(annotation, type) and issubclass(annotation, Section) else annotation


def _default(key: msgspec.structs.FieldInfo) -> Any:
    if key.default_factory is not msgspec.NODEFAULT:
        made = key.default_factory()
        return model_of(type(made))() if isinstance(made, Section) else made
    return ... if key.default is msgspec.NODEFAULT else key.default


_STRICT: dict[str, type[Section]] = {
    "eval": EvalSection,
    "evaluators": EvaluatorSection,
    "evaluators.extractor": ExtractorSection,
    "judges": JudgesSection,
    "metrics": MetricsSection,
    "pass_criteria": CriteriaSection,
    "run": RunSection,
    "run.retry": RetrySection,
    "run.executor.judges": RaySection,
    "systems.ray": RaySection,
    "trace": TraceSection,
}
_BLANK: dict[str, Any] = {"eval": {"name": "-"}, "dataset": {}} | {name: [] for name in ITEMS}
_MOST_SECTIONS = 2
_SECTIONS: dict[str, type[Section]] = {**_STRICT, **ITEMS, "dataset": DatasetSection, "workspace": WorkspaceSection}


def sound_parts(raw: dict[Any, Any], report: ReportMistake, needless: Collection[str] = ()) -> EvalFile:
    """The valid parts of a file, so that one mistake does not hide those in other parts.

    `needless` are keys that have no effect.
    """
    values: dict[str, Any] = {}
    items: dict[str, list[Item]] = {}
    model = model_of(EvalFile)
    file = model.model_construct()
    for name in raw:
        if name not in model.model_fields:
            report((name,), f"unknown key{_elsewhere(name) or did_you_mean(str(name), model.model_fields)}")
    for name, field in model.model_fields.items():
        if name in needless:
            continue
        if name not in raw or (raw[name] is None and not field.is_required()):
            if field.is_required():
                report((name,), _missing(name, raw, model.model_fields))
        elif name in ITEMS:
            items[name] = [*_sound_items(name, raw[name], report)]
        else:
            try:
                model.__pydantic_validator__.validate_assignment(file, name, raw[name])
            except ValidationError as error:
                _report(error, (), report)
                # Each key of a strict section means the same without the others; those of an open one need its type.
                if name in _STRICT and (rest := _rest_of(model_of(_STRICT[name]), raw[name], error, (name,))):
                    values[name] = rest.model_dump(exclude_unset=True)
            else:
                values |= file.model_dump(include={name}, exclude_unset=True)
    return _file_of(values, items)


def _file_of(values: dict[str, Any], items: dict[str, list[Item]]) -> EvalFile:
    """A file made of the correct parts."""
    file = msgspec.convert(_BLANK | values, EvalFile)
    for name, mistakes in items.items():
        setattr(file, name, [msgspec.convert(value, ITEMS[name]) for _, value, _ in mistakes])
    file.note(values | {name: [value for _, value, _ in found] for name, found in items.items()})
    for name, mistakes in items.items():
        for item, (position, _, sound) in zip(getattr(file, name), mistakes, strict=True):
            item.placed(position, sound=sound)
    return file


def _sound_items(name: str, raw: Any, report: ReportMistake) -> Iterator[Item]:
    if not isinstance(raw, list):
        needed = " and ".join(_needed_keys(ITEMS[name]))
        report((name,), f"expected a list, each item with '- ' before it and with {needed}, found {as_written(raw)}")
        return
    if not raw:
        report((name,), "expected at least one, found an empty list")
    model = model_of(ITEMS[name])
    for position, item in enumerate(raw):
        try:
            yield position, model.model_validate(item).model_dump(exclude_unset=True), True
        except ValidationError as error:
            _report(error, (name, position), report)
            if (rest := _rest_of(model, item, error)) is not None:
                yield position, rest.model_dump(exclude_unset=True), False


def _rest_of(model: type[BaseModel], value: Any, error: ValidationError, above: Place = ()) -> BaseModel | None:
    """A mapping without its wrong keys, to check the others; `above` is its place in the errors."""
    rest = value
    for mistake in error.errors(include_url=False):
        rest = _without(rest, mistake["loc"][len(above) :])
    try:
        return model.model_validate(rest)
    except ValidationError:
        return None


def _without(value: Any, place: Place) -> Any:
    """The value without the innermost key on the way to the place; a copy, except if there is none."""
    if not place or not isinstance(value, dict) or place[0] not in value:
        return value
    key, inner = place[0], value[place[0]]
    rest = {name: other for name, other in value.items() if name != key}
    return rest | {key: less} if (less := _without(inner, place[1:])) is not inner else rest


def _elsewhere(key: Any) -> str:
    """Where a key belongs that is not known where it is; empty if that is nowhere, or could be anywhere."""
    sections = [f"'{name}'" for name, section in _SECTIONS.items() if key in section.keys()]  # noqa: SIM118
    return f"; it belongs under {' or '.join(sections)}" if 1 <= len(sections) <= _MOST_SECTIONS else ""


def _report(error: ValidationError, prefix: Place, report: ReportMistake) -> None:
    """Each mistake that pydantic found."""
    for item in error.errors(include_url=False):
        place = (*prefix, *(step for step in item["loc"] if step not in ("[key]", *_TAGS.values())))
        if item["type"] == "extra_forbidden":
            section = ".".join(step for step in place[:-1] if isinstance(step, str))
            near = _elsewhere(place[-1]) or did_you_mean(str(place[-1]), _STRICT[section].keys())
            own = "; what an evaluator of this type reads belongs under 'config'" if section == "evaluators" else ""
            report(place, f"unknown key{near or own}")
        elif item["type"] == "missing":
            report(place, _missing(str(place[-1]), item["input"], _section_at(place[:-1]).keys()))
        else:
            wanted = expectation(item["msg"])
            if item["type"] in ("model_type", "model_attributes_type"):
                kind = _section_at(place)
                needed, known = _needed_keys(kind), ", ".join(kind.keys())
                wanted += f" with {' and '.join(needed)}" if needed else f" (it may have {known})" if known else ""
            report(place, f"{wanted}, found {as_written(item['input'])}{remedy(item['type'], item['input'])}")


def _section_at(place: Place) -> type[Section]:
    return _SECTIONS.get(".".join(step for step in place if isinstance(step, str)), Section)


def _needed_keys(kind: type[Section]) -> list[str]:
    return [key.name for key in msgspec.structs.fields(kind) if key.required]


def _missing(name: str, value: Any, known: Collection[str]) -> str:
    """The message for a missing key, and the key in the mapping that may be a misspelling of it."""
    others = [key for key in value if isinstance(key, str) and key not in known] if isinstance(value, dict) else []
    meant = next((key for key in others if did_you_mean(key, [name])), None)
    return f"the key {name!r} is missing" + (f"; should {meant!r} be {name!r}?" if meant else "")
