"""The shape of `eval.yaml` (pydantic): which keys there are, their types and defaults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictStr, ValidationError

from evalwright.errors import did_you_mean

__all__ = ["EvalFile", "problems_of"]


def _whole(value: Any) -> Any:
    """Whole numbers as they are or as digits (an expanded `${N}`); booleans and fractions are none."""
    if isinstance(value, (bool, float)):
        raise ValueError("expected a whole number")
    return value


def _seconds(value: Any) -> Any:
    """A number as it is, or as text (an expanded `${N}`)."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    try:
        return float(value) if isinstance(value, str) and "." in value else int(value if isinstance(value, str) else "")
    except ValueError:
        raise ValueError("expected a number of seconds") from None


Count = Annotated[int, BeforeValidator(_whole)]
Seconds = Annotated[int | float, BeforeValidator(_seconds), Field(gt=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class EvalSection(_Strict):
    name: Annotated[StrictStr, Field(min_length=1)]
    description: StrictStr | None = None
    owner: StrictStr | None = None
    tags: list[StrictStr] = []


class DatasetSection(_Open):
    type: StrictStr
    path: StrictStr | None = None
    filter: dict[str, Any] = {}
    sample: Annotated[Count, Field(ge=0)] | None = None
    seed: Count | None = None


class SystemSection(_Open):
    name: StrictStr
    adapter: StrictStr
    metadata: dict[str, Any] = {}
    timeout_seconds: Seconds = 120
    concurrency: Annotated[Count, Field(ge=1)] | None = None
    isolation: Literal["none", "process"] = "none"
    trials: Annotated[Count, Field(ge=1)] | None = None


class EvaluatorSection(_Strict):
    name: StrictStr
    type: StrictStr
    config: dict[str, Any] = {}


class CriteriaSection(_Strict):
    all_required: list[StrictStr] = []
    any_required: list[StrictStr] = []
    errored_cases: Literal["error", "evaluate"] = "error"


class RetrySection(_Strict):
    max_attempts: Annotated[Count, Field(ge=1)] = 1
    on: list[Literal["timeout", "http_5xx", "adapter_error"]] = []
    backoff_seconds: Annotated[float, Field(ge=0)] = 0.0


class ExecutorSection(_Open):
    type: StrictStr = "local"


class RunSection(_Strict):
    max_concurrency: Annotated[Count, Field(ge=1)] = 4
    per_variant_concurrency: Annotated[Count, Field(ge=1)] | None = None
    retry: RetrySection = RetrySection()
    baseline_variant: StrictStr | None = None
    executor: ExecutorSection = ExecutorSection()
    trials: Annotated[Count, Field(ge=1)] = 1
    evaluator_timeout_seconds: Seconds = 60.0


class TraceSection(_Strict):
    capture: list[StrictStr] = []


class OutputSection(_Open):
    type: StrictStr
    path: StrictStr | None = None


class EvalFile(_Strict):
    """The whole file."""

    schema_version: Annotated[StrictStr, Field(pattern=r"^1\.")] = "1.0"
    eval: EvalSection
    metadata: dict[str, Any] = {}
    dataset: DatasetSection
    systems: Annotated[list[SystemSection], Field(min_length=1)]
    evaluators: Annotated[list[EvaluatorSection], Field(min_length=1)]
    pass_criteria: CriteriaSection = CriteriaSection()
    trace: TraceSection = TraceSection()
    run: RunSection = RunSection()
    output: Annotated[list[OutputSection], Field(min_length=1)]


_SECTIONS: dict[str, type[BaseModel]] = {
    "": EvalFile,
    "eval": EvalSection,
    "evaluators": EvaluatorSection,
    "pass_criteria": CriteriaSection,
    "run": RunSection,
    "run.retry": RetrySection,
    "trace": TraceSection,
}


def problems_of(error: ValidationError, document: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Place and message of each mistake that pydantic found."""
    for item in error.errors(include_url=False):
        place = tuple(step for step in item["loc"] if not (isinstance(step, str) and "[" in step))
        kind = item["type"]
        if kind == "extra_forbidden":
            section = ".".join(step for step in place[:-1] if isinstance(step, str))
            known = _SECTIONS[section].model_fields if section in _SECTIONS else ()
            yield place, f"unknown key{did_you_mean(str(place[-1]), known)}"
        elif kind == "missing":
            yield place, f"the key {place[-1]!r} is missing"
        else:
            message = item["msg"].removeprefix("Value error, ")
            yield place, f"{message[0].lower()}{message[1:]}, found {_shown(item['input'])}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
