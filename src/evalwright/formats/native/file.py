"""The shape of `eval.yaml`: which keys there are, their types and defaults; and reading a file of that shape.

A file in which nothing is doubtful is read here, by msgspec. All others go to `file_mistakes`, where pydantic says what
is wrong with them, or accepts what was only written in another way (`"4"` for a number): importing it and building its
models takes as long as all else that a small run does.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta, field

from evalwright.files.key_paths import Place

__all__ = [
    "ITEMS",
    "CriteriaSection",
    "DatasetSection",
    "EvalFile",
    "EvalSection",
    "EvaluatorSection",
    "ExecutorSection",
    "ExtractorSection",
    "JudgesSection",
    "MetricsSection",
    "RaySection",
    "RetrySection",
    "RunSection",
    "Section",
    "SystemSection",
    "TraceSection",
    "Version",
    "WorkspaceSection",
    "as_in_json",
    "config_of",
    "whole_file",
]

Text = Annotated[str, Meta(min_length=1)]
Version = Annotated[str, Meta(pattern=r"^1\.")]
Count = Annotated[int, Meta(ge=1)]
Whole = Annotated[int, Meta(ge=0)]
Amount = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(gt=0, le=1)]
Seconds = Annotated[float, Meta(gt=0)]


class Section(msgspec.Struct, dict=True):
    """A mapping in the file, with defaults for the keys that it does not have."""

    @property
    def written(self) -> dict[str, Any]:
        """The mapping as written in the file. Not a field, since fields are its keys."""
        written: dict[str, Any] = self.__dict__.get("written", {})
        return written

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        return cls.__struct_fields__

    @property
    def extra(self) -> dict[str, Any]:
        """The keys that belong to the type that the section names."""
        return {name: value for name, value in self.written.items() if name not in self.__struct_fields__}

    def plain(self) -> dict[str, Any]:
        """All keys with their values, those of its type last."""
        return {name: _plain_data(getattr(self, name)) for name in self.__struct_fields__} | self.extra

    def given(self) -> dict[str, Any]:
        """Only the keys that are written."""
        return {name: value for name, value in self.plain().items() if name in self.written}

    def note(self, written: dict[str, Any]) -> None:
        """Remember what was written, here and in the sections inside."""
        self.__dict__["written"] = written
        for name in self.__struct_fields__:
            if name in written:
                value, there = getattr(self, name), written[name]
                for item, inner in zip(value, there, strict=True) if isinstance(value, list) else [(value, there)]:
                    if isinstance(item, Section):
                        item.note(inner)


def _plain_data(value: Any) -> Any:
    if isinstance(value, Section):
        return value.plain()
    return [*map(_plain_data, value)] if isinstance(value, list) else value


class _Strict(Section, forbid_unknown_fields=True):
    """No other keys are allowed. In sections without this, they belong to the type that the section names."""


class _Item(Section):
    """An item of a list: it remembers its position, as its neighbours may be left out."""

    section: ClassVar[str]

    @property
    def sound(self) -> bool:
        """Whether all its keys were right; without the wrong ones it may lack keys that its type needs."""
        return bool(self.__dict__["sound"])

    def at(self, *steps: str | int) -> Place:
        return (self.section, self.__dict__["position"], *steps)

    def placed(self, position: int, *, sound: bool = True) -> None:
        self.__dict__.update(position=position, sound=sound)


class EvalSection(_Strict):
    name: Text
    description: str | None = None
    owner: str | None = None
    tags: list[str] = []
    warnings: list[str] = []


class DatasetSection(Section):
    type: Text | None = None
    path: str | list[str] | None = None
    filter: dict[str, Any] = {}
    sample: Whole | None = None
    seed: int | None = None
    embed_full_trace: bool = False
    own_evaluators: bool = False


class EnricherSection(Section):
    type: Text


class RaySection(_Strict):
    num_cpus: Amount | None = None
    num_gpus: Amount | None = None
    memory: Amount | None = None
    resources: dict[str, Amount] = {}
    actors: Count | None = None


class SystemSection(_Item, kw_only=True):
    section = "systems"

    schema_version: Version = "1.0"
    name: Text
    adapter: Text
    metadata: dict[str, Any] = {}
    timeout_seconds: Count = 120
    concurrency: Count | None = None
    enrich_trace_from: list[EnricherSection] = []
    pool: str | None = None
    isolation: Literal["none", "process"] = "none"
    trials: Count | None = None
    ray: RaySection | None = None


class WorkspaceSection(Section):
    type: Text


class ExtractorSection(_Strict):
    type: Text
    config: dict[str, Any] = {}


class EvaluatorSection(_Item, forbid_unknown_fields=True):
    section = "evaluators"

    name: Text
    type: Text
    config: dict[str, Any] = {}
    extractor: ExtractorSection | None = None
    threshold: float | None = None
    threshold_op: Literal["gt", "gte", "lt", "lte", "eq"] = "gte"
    weight: Amount = 1.0
    required: Share | None = None
    called: Text | None = None


class CriteriaSection(_Strict):
    all_required: list[str] = []
    any_required: list[str] = []
    errored_cases: Literal["error", "evaluate", "count"] = "error"
    errored_evaluators: Literal["error", "fail"] = "error"
    spoiling_errors: list[str] = []
    rule: Literal["evaluators", "bands"] = "evaluators"
    threshold: Annotated[float, Meta(ge=0, le=1)] | None = None


ErrorType = Literal[
    "timeout",
    "http_5xx",
    "adapter_error",
    "worker_lost",
    "workspace_error",
    "connection",
    "rate_limited",
    "bad_reply",
    "refused",
    "provider_error",
    "script_error",
    "unhealthy",
    "*",
]
"""Errors of systems that may go away on another attempt."""


class RetrySection(_Strict):
    max_attempts: Count = 1
    on: list[ErrorType] = []
    backoff_seconds: Amount = 0.0


class ExecutorSection(Section):
    type: Text = "local"
    pools: dict[str, Count] = {}
    address: str | None = None
    working_dir: Text | None = None
    runtime_env: dict[str, Any] = {}
    actors: Count | None = None
    per_actor: Count = 64
    wait_seconds: Seconds = 600.0
    judges: RaySection | None = None


class RunSection(_Strict):
    max_concurrency: Count = 4
    per_variant_concurrency: Count | None = None
    retry: RetrySection = field(default_factory=RetrySection)
    baseline_variant: str | None = None
    cost_limit_usd: Amount | None = None
    executor: ExecutorSection = field(default_factory=ExecutorSection)
    trials: Count = 1
    alternate: bool = False
    evaluator_timeout_seconds: Seconds = 60.0
    stop_after_errors: Whole = 20


class JudgesSection(_Strict):
    keep_calls: bool = True
    """Results keep what judges were asked and what they replied."""


class TraceSection(_Strict):
    capture: list[str] = []


class MetricsSection(_Strict):
    price_table_path: str | None = None


class OutputSection(_Item):
    section = "output"

    type: Text
    path: str | None = None


class EvalFile(_Strict, kw_only=True):
    """The whole file; the parts that are wrong are not among those `written`."""

    schema_version: Version = "1.0"
    eval: EvalSection
    metadata: dict[str, Any] = {}
    dataset: DatasetSection
    systems: list[SystemSection]
    workspace: WorkspaceSection | None = None
    evaluators: list[EvaluatorSection]
    pass_criteria: CriteriaSection = field(default_factory=CriteriaSection)
    trace: TraceSection = field(default_factory=TraceSection)
    gate: Any = None
    totals: str | None = None
    """The format whose numbers and rule for the gate the summary has."""
    run: RunSection = field(default_factory=RunSection)
    judges: JudgesSection = field(default_factory=JudgesSection)
    metrics: MetricsSection = field(default_factory=MetricsSection)
    output: list[OutputSection]


ITEMS: dict[str, type[_Item]] = {kind.section: kind for kind in (SystemSection, EvaluatorSection, OutputSection)}


def whole_file(raw: dict[Any, Any], needless: Collection[str]) -> EvalFile | None:
    """The file; None if anything in it is doubtful. `needless` are keys that it may lack as well."""
    sections = {name: value for name, value in raw.items() if value is not None or name not in EvalFile.keys()}  # noqa: SIM118
    if not all(sections.get(name) or name in needless for name in ITEMS):
        return None
    sections = {name: [] for name in needless} | sections
    try:
        file = msgspec.convert(sections, EvalFile)
    except msgspec.ValidationError:
        return None
    file.note(sections)
    for name in ITEMS:
        for position, item in enumerate(getattr(file, name)):
            item.placed(position)
    return None if _is_endless(file) else file


def _is_endless(value: Any) -> bool:
    """Whether the keys hold a number that JSON does not have: bounds do not keep it out."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, Section):
        return any(_is_endless(getattr(value, name)) for name in value.keys())  # noqa: SIM118 - not a mapping
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(map(_is_endless, parts))


def as_in_json(value: Any) -> Any:
    """The value as JSON holds it, so that a run resumed from its stored plan gets the same."""
    kind = type(value)
    if kind is dict and all(type(key) is str for key in value):
        return {key: as_in_json(item) for key, item in value.items()}
    if kind is list:
        return [*map(as_in_json, value)]
    if value is None or kind in (str, int, float, bool):
        return value
    from pydantic_core import to_jsonable_python  # dates and the like: hardly any file has them

    return to_jsonable_python(value, bytes_mode="base64")


def config_of(section: Section) -> dict[str, Any]:
    """The keys that belong to the type that an open section names."""
    config: dict[str, Any] = as_in_json({key: value for key, value in section.given().items() if key != "type"})
    return config
