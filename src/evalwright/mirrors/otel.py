"""Exports a run as OpenTelemetry spans: one root span per trace, with its steps, tool calls and evaluations below it.

Evaluations are also `gen_ai.evaluation.result` events (OpenTelemetry's GenAI semantic conventions). The application's
own tracer provider is not touched.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Iterator, Sequence
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.files.key_paths import as_written
from evalwright.model.cell import AttemptKey, attempt_key
from evalwright.model.plan import Plan
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.summary import RunSummary
from evalwright.model.trace import Span, Trace
from evalwright.targets.http.config import header_mistakes

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

__all__ = ["OpenTelemetry"]

_PROTOCOLS = ("http/protobuf", "grpc")
_TIMEOUT = 10
_FLUSH = 1_000
"""Spans after which the export is awaited; the SDK's queue holds 2,048 and drops what exceeds that."""
_TEXT = 4_000
"""Characters of an attribute."""
_OPERATIONS = {
    "llm": "chat", "tool": "execute_tool", "agent": "invoke_agent", "embedding": "embeddings", "retriever": "retrieval",
}  # fmt: skip
_CONVENTIONS = {
    "provider": "gen_ai.provider.name", "request_model": "gen_ai.request.model", "response_id": "gen_ai.response.id",
    "response_model": "gen_ai.response.model", "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
}  # fmt: skip
"""Attributes of captured model calls, with their names in the conventions."""


class OpenTelemetry:
    """Traces and verdicts as OpenTelemetry spans; it needs the extra `otel`.

    Keys: `endpoint`, `headers`, `protocol` (http/protobuf or grpc), `timeout_seconds`.
    """

    config_keys: tuple[str, ...] = ("endpoint", "headers", "protocol", "timeout_seconds")

    def __init__(self, config: dict[str, Any]) -> None:
        if problems := [Problem("", message, key=key) for key, message in _mistakes(config)]:
            raise InputError(problems)
        self._exporter = _exporter(config)
        self._started: dict[AttemptKey, Any] = {}
        self._failures = self._unflushed = 0
        self._provider: Any = None

    def start(self, plan: Plan) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        resource = Resource.create({"service.name": "evalwright", "evalwright.run_id": plan.run_id})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(
            BatchSpanProcessor(cast("SpanExporter", _WatchedExporter(self._exporter, self)))
        )
        self._tracer = self._provider.get_tracer("evalwright")

    def prepare(self, trace: Trace) -> None:
        """Start the root span, so that its id can be stored with the trace."""
        from opentelemetry import context

        span = self._tracer.start_span(
            f"{trace.variant_name} {trace.case_key}", context=context.Context(), start_time=_ns(trace.started_at)
        )
        span_context = span.get_span_context()
        trace.extra = {**trace.extra, "span_id": f"{span_context.span_id:016x}"}
        trace.extra.setdefault("trace_id", f"{span_context.trace_id:032x}")
        self._started[attempt_key(trace)] = span

    def trace(self, trace: Trace, results: Sequence[EvaluationResult], verdict: CaseVerdict) -> None:
        from opentelemetry import trace as api

        span = self._started.pop(attempt_key(trace), None)
        if span is None:
            return
        inside = api.set_span_in_context(span)
        self._steps(trace.spans, inside)
        shown = any(step.kind == "tool" for step in trace.spans)
        for call in () if shown else trace.tool_calls:
            start = _ns(call.started_at or trace.started_at)
            child = self._tracer.start_span(f"execute_tool {call.name}", context=inside, start_time=start)
            child.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": call.name})
            child.end(end_time=start)
        about = _response(trace)
        for row in results:
            evaluated = {**_evaluation_attributes(row), **about}
            self._evaluation(row, evaluated, inside)
            span.add_event("gen_ai.evaluation.result", evaluated, timestamp=_ns(row.finished_at))
        span.set_attributes(_attributes(trace, verdict))
        if trace.error is not None:
            span.set_status(api.StatusCode.ERROR, trace.error.message[:_TEXT])
        span.end(end_time=_ns(trace.finished_at))
        self._unflushed += 1 + len(trace.spans) + len(trace.tool_calls) + len(results)
        if self._unflushed >= _FLUSH:
            self._unflushed = 0
            self._provider.force_flush(_TIMEOUT * 1000)

    def _steps(self, steps: Sequence[Span], root: Any) -> None:
        """Export the spans of a trace below their parents, or below the root if the parent did not come before."""
        from opentelemetry import trace as api

        inside: dict[str, Any] = {}
        for step in steps:
            if step.started_at is None:
                continue
            above = inside.get(step.parent_id or "", root)
            child = self._tracer.start_span(step.name, context=above, start_time=_ns(step.started_at))
            inside[step.id] = api.set_span_in_context(child)
            child.set_attributes(_attributes_of_step(step))
            if step.status == "error":
                child.set_status(api.StatusCode.ERROR, (step.error or "error")[:_TEXT])
            child.end(end_time=_ns(step.finished_at or step.started_at))

    def _evaluation(self, row: EvaluationResult, evaluated: dict[str, Any], inside: Any) -> None:
        child = self._tracer.start_span(f"evaluate {row.evaluator}", context=inside, start_time=_ns(row.started_at))
        child.set_attributes(evaluated)
        child.end(end_time=_ns(row.finished_at))

    def summary(self, summary: RunSummary) -> None:
        """Export a span for the whole run. Raises RuntimeError if spans could not be exported."""
        span = self._tracer.start_span(f"run {summary.run_id}", start_time=_ns(summary.started_at))
        for v in summary.variants:
            span.set_attribute(f"evalwright.{v.name}.cases", v.cases_total)
            if v.pass_rate is not None:
                span.set_attribute(f"evalwright.{v.name}.pass_rate", v.pass_rate)
        span.end(end_time=_ns(summary.finished_at))
        flushed = self._provider.force_flush(_TIMEOUT * 1000)
        if self._failures or not flushed:
            raise RuntimeError(f"{self._failures or 'some'} batches of spans could not be exported")

    def failed(self) -> None:
        self._failures += 1

    def close(self) -> None:
        """End the export; before `start`, only the connection."""
        (self._provider or self._exporter).shutdown()


class _WatchedExporter:
    """The exporter, with its failures counted.

    The SDK only logs them, and its records quote the server's answer, which may contain keys: those records are
    dropped.
    """

    def __init__(self, exporter: Any, mirror: OpenTelemetry) -> None:
        self._exporter, self._mirror = exporter, mirror
        self._thread: int | None = None
        for logger in self._loggers():
            logger.addFilter(self._is_of_others)

    def export(self, spans: Any) -> Any:
        from opentelemetry.sdk.trace.export import SpanExportResult

        self._thread = threading.get_ident()
        try:
            result = self._exporter.export(spans)
        except Exception:
            result = SpanExportResult.FAILURE
        finally:
            self._thread = None
        if result is not SpanExportResult.SUCCESS:
            self._mirror.failed()
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()
        for logger in self._loggers():
            logger.removeFilter(self._is_of_others)

    def _loggers(self) -> Iterator[logging.Logger]:
        for kind in type(self._exporter).__mro__:
            if kind.__module__.startswith("opentelemetry."):
                yield logging.getLogger(kind.__module__)

    def _is_of_others(self, record: logging.LogRecord) -> bool:
        return record.thread != self._thread

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return bool(self._exporter.force_flush(timeout_millis))


def _mistakes(config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    protocol, endpoint = config.get("protocol", _PROTOCOLS[0]), config.get("endpoint")
    if protocol not in _PROTOCOLS:
        yield "protocol", f"'protocol' must be one of {', '.join(_PROTOCOLS)}, found {as_written(protocol)}"
    if endpoint is not None and not isinstance(endpoint, str):
        yield "endpoint", f"'endpoint' must be a URL, found {as_written(endpoint)}"
    yield from header_mistakes(config.get("headers"))
    limit = config.get("timeout_seconds", _TIMEOUT)
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not 0 < limit < math.inf:
        yield "timeout_seconds", f"expected a number above 0, found {as_written(limit)}"


def _exporter(config: dict[str, Any]) -> Any:
    settings = {
        "endpoint": config.get("endpoint"),
        "headers": config.get("headers"),
        "timeout": config.get("timeout_seconds", _TIMEOUT),
    }
    settings = {key: value for key, value in settings.items() if value is not None}
    try:
        if config.get("protocol") == "grpc":
            return import_module("opentelemetry.exporter.otlp.proto.grpc.trace_exporter").OTLPSpanExporter(**settings)
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        return OTLPSpanExporter(session=_session(), **settings)
    except ImportError as error:
        raise InputError(f"the output 'otel' needs {error.name}: pip install 'evalwright[otel]'") from error


def _session() -> Any:
    """What sends the spans: to this address only, for which the headers are meant, and without reading the answers,
    which may be endless."""
    requests = import_module("requests")

    def without_body(response: Any, **_: Any) -> Any:
        response.close()
        answer = requests.Response()
        answer.status_code, answer.reason, answer.headers = response.status_code, response.reason, response.headers
        return answer

    session = requests.Session()
    session.max_redirects = 0
    session.stream = True
    session.hooks["response"].append(without_body)
    return session


def _attributes(trace: Trace, verdict: CaseVerdict) -> dict[str, Any]:
    metrics = trace.metrics
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "evalwright.case_id": trace.case_id,
        "evalwright.variant": trace.variant_name,
        "evalwright.trial": trace.trial,
        "evalwright.verdict": verdict.status,
        "gen_ai.usage.input_tokens": metrics.token_input,
        "gen_ai.usage.output_tokens": metrics.token_output,
        "evalwright.cost_usd": metrics.cost_usd,
        "evalwright.answer": (trace.output.final_answer or "")[:_TEXT],
    }
    return {key: value for key, value in attributes.items() if value is not None}


def _evaluation_attributes(row: EvaluationResult) -> dict[str, Any]:
    label = "error" if row.error is not None else "skip" if row.skipped else "pass" if row.passed else "fail"
    attributes = {
        "gen_ai.evaluation.name": row.evaluator,
        "gen_ai.evaluation.score.value": row.score,
        "gen_ai.evaluation.score.label": label,
        "gen_ai.evaluation.explanation": row.reason[:_TEXT] or None,
        "error.type": row.error.type if row.error is not None else None,
    }
    return {key: value for key, value in attributes.items() if value is not None}


def _attributes_of_step(step: Span) -> dict[str, Any]:
    shown = {"input.value": step.input, "output.value": step.output}
    texts = {
        key: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for key, value in shown.items()
        if value is not None
    }
    scalars = {key: value for key, value in step.attributes.items() if isinstance(value, str | bool | int | float)}
    named = {"gen_ai.operation.name": _OPERATIONS[step.kind]} if step.kind in _OPERATIONS else {}
    known = {_CONVENTIONS.get(key, key): value for key, value in scalars.items()}
    return {key: v[:_TEXT] if isinstance(v, str) else v for key, v in {**named, **known, **texts}.items()}


def _response(trace: Trace) -> dict[str, str]:
    """The id of the completion that gave the answer, if known: that of the model call which ended last."""
    calls = [(span.finished_at, span.attributes) for span in trace.spans if span.kind == "llm" and span.finished_at]
    _, attributes = max(calls, key=lambda call: call[0], default=(None, {}))
    response_id = attributes.get("gen_ai.response.id", attributes.get("response_id"))
    return {"gen_ai.response.id": response_id} if isinstance(response_id, str) and response_id else {}


def _ns(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000_000)
