"""The shape of `eval.yaml` (pydantic): which keys there are, their types and defaults."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    StrictStr,
    ValidationError,
)

from evalwright.errors import did_you_mean
from evalwright.files.key_paths import Place
from evalwright.formats.shared.findings import expectation, remedy

__all__ = ["EvalFile", "EvaluatorSection", "OutputSection", "SystemSection", "sound_parts"]

Complain = Callable[[Place, str], None]


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


Text = Annotated[StrictStr, Field(min_length=1)]
Count = Annotated[int, BeforeValidator(_number), Field(ge=1)]
Seed = Annotated[int, BeforeValidator(_number)]
Amount = Annotated[float, BeforeValidator(_number), Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, BeforeValidator(_number), Field(gt=0, le=1)]
Seconds = Annotated[float, BeforeValidator(_number), Field(gt=0, allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


class _Open(BaseModel):
    """Other keys belong to the type that the section names."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")


class _Item(BaseModel):
    """One of a list: it remembers where, as its neighbours may be left out."""

    section: ClassVar[str]
    _position: int = PrivateAttr(0)
    _sound: bool = PrivateAttr(True)

    @property
    def sound(self) -> bool:
        """Whether none of its keys was wrong; without those it may lack keys that its type needs."""
        return self._sound

    def at(self, *steps: str | int) -> Place:
        return (self.section, self._position, *steps)

    def placed(self, position: int, *, sound: bool = True) -> _Item:
        self._position, self._sound = position, sound
        return self


class EvalSection(_Strict):
    name: Text
    description: StrictStr | None = None
    owner: StrictStr | None = None
    tags: list[StrictStr] = []
    warnings: list[StrictStr] = []


class DatasetSection(_Open):
    type: Text | None = None
    path: StrictStr | list[StrictStr] | None = None
    filter: dict[StrictStr, Any] = {}
    sample: Annotated[int, BeforeValidator(_number), Field(ge=0)] | None = None
    seed: Seed | None = None
    embed_full_trace: bool = False
    own_evaluators: bool = False


class EnricherSection(_Open):
    type: Text


class RaySection(_Strict):
    num_cpus: Amount | None = None
    num_gpus: Amount | None = None
    memory: Amount | None = None
    resources: dict[StrictStr, Amount] = {}
    actors: Count | None = None


class SystemSection(_Item, _Open):
    section = "systems"

    schema_version: Annotated[StrictStr, AfterValidator(_major_one)] = "1.0"
    name: Text
    adapter: Text
    metadata: dict[StrictStr, Any] = {}
    timeout_seconds: Count = 120
    concurrency: Count | None = None
    enrich_trace_from: list[EnricherSection] = []
    pool: StrictStr | None = None
    isolation: Literal["none", "process"] = "none"
    trials: Count | None = None
    ray: RaySection | None = None


class WorkspaceSection(_Open):
    type: Text


class ExtractorSection(_Strict):
    type: Text
    config: dict[StrictStr, Any] = {}


class EvaluatorSection(_Item, _Strict):
    section = "evaluators"

    name: Text
    type: Text
    config: dict[StrictStr, Any] = {}
    extractor: Annotated[ExtractorSection | None, BeforeValidator(_named_type)] = None
    threshold: Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)] | None = None
    threshold_op: Literal["gt", "gte", "lt", "lte", "eq"] = "gte"
    weight: Amount = 1.0
    required: Share | None = None
    called: Text | None = None


class CriteriaSection(_Strict):
    all_required: list[StrictStr] = []
    any_required: list[StrictStr] = []
    errored_cases: Literal["error", "evaluate", "count"] = "error"
    errored_evaluators: Literal["error", "fail"] = "error"
    spoiling_errors: list[StrictStr] = []
    rule: Literal["evaluators", "bands"] = "evaluators"


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


class ExecutorSection(_Open):
    type: Text = "local"
    pools: dict[StrictStr, Count] = {}
    address: StrictStr | None = None
    working_dir: Text | None = None
    runtime_env: dict[StrictStr, Any] = {}
    actors: Count | None = None
    per_actor: Count = 64
    wait_seconds: Seconds = 600.0


class RunSection(_Strict):
    max_concurrency: Count = 4
    per_variant_concurrency: Count | None = None
    retry: RetrySection = RetrySection()
    baseline_variant: StrictStr | None = None
    cost_limit_usd: Amount | None = None
    executor: ExecutorSection = ExecutorSection()
    trials: Count = 1
    alternate: bool = False
    evaluator_timeout_seconds: Seconds = 60.0
    stop_after_errors: Annotated[int, BeforeValidator(_number), Field(ge=0)] = 20


class JudgesSection(_Strict):
    keep_calls: bool = True
    """Results keep what judges were asked and what they replied."""


class TraceSection(_Strict):
    capture: list[StrictStr] = []


class MetricsSection(_Strict):
    price_table_path: StrictStr | None = None


class OutputSection(_Item, _Open):
    section = "output"

    type: Text
    path: StrictStr | None = None


class EvalFile(_Strict):
    """The whole file; the parts that are wrong are not among `model_fields_set`."""

    schema_version: Annotated[StrictStr, AfterValidator(_major_one)] = "1.0"
    eval: EvalSection
    metadata: dict[StrictStr, Any] = {}
    dataset: DatasetSection
    systems: list[SystemSection]
    workspace: WorkspaceSection | None = None
    evaluators: list[EvaluatorSection]
    pass_criteria: CriteriaSection = CriteriaSection()
    trace: TraceSection = TraceSection()
    gate: Any = None
    totals: StrictStr | None = None
    """The format whose numbers and rule for the gate the summary has."""
    run: RunSection = RunSection()
    judges: JudgesSection = JudgesSection()
    metrics: MetricsSection = MetricsSection()
    output: list[OutputSection]


_ITEMS: dict[str, type[_Item]] = {kind.section: kind for kind in (SystemSection, EvaluatorSection, OutputSection)}
_STRICT: dict[str, type[BaseModel]] = {
    "eval": EvalSection,
    "evaluators": EvaluatorSection,
    "evaluators.extractor": ExtractorSection,
    "judges": JudgesSection,
    "metrics": MetricsSection,
    "pass_criteria": CriteriaSection,
    "run": RunSection,
    "run.retry": RetrySection,
    "systems.ray": RaySection,
    "trace": TraceSection,
}


def sound_parts(raw: dict[Any, Any], complain: Complain, brought: Collection[str] = ()) -> EvalFile:
    """The valid parts of a file, so that one mistake does not hide those in other parts.

    `brought` is what the type of its dataset brings: evaluators of the cases leave those of the suite without effect.
    """
    needless: set[str] = set()
    nothing: dict[str, Any] = {name: [] for name in _ITEMS}
    file = EvalFile.model_construct(**nothing)
    for name in raw:
        if name not in EvalFile.model_fields:
            complain((name,), f"unknown key{did_you_mean(str(name), EvalFile.model_fields)}")
    if not raw.get("evaluators") and "evaluators_by_case" in brought:
        raw = {name: value for name, value in raw.items() if name != "evaluators"}
        needless = {"evaluators"}
    for name, field in EvalFile.model_fields.items():
        if name in needless:
            continue
        if name not in raw or (raw[name] is None and not field.is_required()):
            if field.is_required():
                complain((name,), _missing(name, raw, EvalFile.model_fields))
        elif name in _ITEMS:
            setattr(file, name, list(_sound_items(name, raw[name], complain)))
        else:
            try:
                EvalFile.__pydantic_validator__.validate_assignment(file, name, raw[name])
            except ValidationError as error:
                _tell(error, (), complain)
    return file


def _sound_items(name: str, raw: Any, complain: Complain) -> Iterator[_Item]:
    if not isinstance(raw, list):
        needed = " and ".join(_needed(_ITEMS[name]))
        complain((name,), f"expected a list, each item with '- ' before it and with {needed}, found {_shown(raw)}")
        return
    if not raw:
        complain((name,), "expected at least one, found an empty list")
    for position, item in enumerate(raw):
        try:
            yield _ITEMS[name].model_validate(item).placed(position)
        except ValidationError as error:
            _tell(error, (name, position), complain)
            if (rest := _rest_of(name, item, error)) is not None:
                yield rest.placed(position, sound=False)


def _rest_of(name: str, item: Any, error: ValidationError) -> _Item | None:
    """An item without its wrong keys, to check the others."""
    wrong = {one["loc"][0] for one in error.errors(include_url=False) if one["loc"]}
    try:
        return _ITEMS[name].model_validate({key: value for key, value in item.items() if key not in wrong})
    except (AttributeError, ValidationError):
        return None


def _tell(error: ValidationError, prefix: Place, complain: Complain) -> None:
    """Each mistake that pydantic found."""
    for item in error.errors(include_url=False):
        place = (*prefix, *(step for step in item["loc"] if step != "[key]"))
        if item["type"] == "extra_forbidden":
            section = ".".join(step for step in place[:-1] if isinstance(step, str))
            near = did_you_mean(str(place[-1]), _STRICT[section].model_fields)
            own = "; what an evaluator of this type reads belongs under 'config'" if section == "evaluators" else ""
            complain(place, f"unknown key{near or own}")
        elif item["type"] == "missing":
            complain(place, _missing(str(place[-1]), item["input"], _model_at(place[:-1]).model_fields))
        else:
            wanted = expectation(item["msg"])
            if item["type"] in ("model_type", "model_attributes_type"):
                kind = _model_at(place)
                needed, known = _needed(kind), ", ".join(kind.model_fields)
                wanted += f" with {' and '.join(needed)}" if needed else f" (it may have {known})" if known else ""
            complain(place, f"{wanted}, found {_shown(item['input'])}{remedy(item['type'], item['input'])}")


def _model_at(place: Place) -> type[BaseModel]:
    sections: dict[str, type[BaseModel]] = {
        **_STRICT,
        **_ITEMS,
        "dataset": DatasetSection,
        "workspace": WorkspaceSection,
    }
    return sections.get(".".join(step for step in place if isinstance(step, str)), BaseModel)


def _needed(kind: type[BaseModel]) -> list[str]:
    return [key for key, one in kind.model_fields.items() if one.is_required()]


def _missing(name: str, given: Any, known: Collection[str]) -> str:
    """That a key is missing, and which key of the mapping may be it, misspelt."""
    others = [key for key in given if isinstance(key, str) and key not in known] if isinstance(given, dict) else []
    meant = next((key for key in others if did_you_mean(key, [name])), None)
    return f"the key {name!r} is missing" + (f"; should {meant!r} be {name!r}?" if meant else "")


def _shown(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else "null" if value is None else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
