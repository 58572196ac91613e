"""The marks by which exported spans are recognised in the beginning of a file."""

from __future__ import annotations

from typing import Any

from evalwright.importers.file_heads import Head
from evalwright.importers.record_values import dictionaries

__all__ = [
    "is_braintrust",
    "is_langfuse",
    "is_langsmith",
    "is_mlflow",
    "is_openai_agents",
    "is_openinference",
    "is_otlp",
]


def is_otlp(head: Head) -> bool:
    return head.any(lambda record: "resourceSpans" in record or "resourceLogs" in record)


def is_openinference(head: Head) -> bool:
    def is_span(record: dict[str, Any]) -> bool:
        context = record.get("context")
        ids = context.keys() if isinstance(context, dict) else {key.removeprefix("context.") for key in record}
        is_table = isinstance(record.get("context.trace_id"), dict)  # whose index may be the spans' ids
        return "parent_id" in record and "trace_id" in ids and ("span_id" in ids or is_table)

    listed = (head.mapping.get(key) for key in ("data", "spans"))
    return head.any(is_span) or any(is_span(span) for spans in listed for span in dictionaries(spans))


def is_langfuse(head: Head) -> bool:
    def is_observation(record: dict[str, Any]) -> bool:
        return {"startTime", "type"} <= record.keys()

    def is_row(record: dict[str, Any]) -> bool:
        """Whether it is an observation, a score or a trace in a file of a scheduled export."""
        return "project_id" in record and any(
            marks <= record.keys()
            for marks in ({"trace_id", "parent_observation_id"}, {"trace_id", "data_type"}, {"bookmarked", "timestamp"})
        )

    def is_listed(trace: dict[str, Any]) -> bool:
        """Whether it is a trace in a list of the API, with the ids of its observations."""
        ids = trace.get("observations")
        return (
            {"id", "timestamp"} <= trace.keys() and isinstance(ids, list) and bool(ids) and set(map(type, ids)) == {str}
        )

    listed = [*head.records, *dictionaries(head.mapping.get("data"))]
    return any(
        ("traceId" in record and is_observation(record))
        or any(map(is_observation, dictionaries(record.get("observations"))))
        or is_row(record)
        or is_listed(record)
        for record in listed
    )


def is_langsmith(head: Head) -> bool:
    listed = [*head.records, *dictionaries(head.mapping.get("runs"))]
    return any({"run_type", "inputs", "start_time"} <= record.keys() for record in listed)


def is_braintrust(head: Head) -> bool:
    def is_span(record: dict[str, Any]) -> bool:
        return {"span_id", "root_span_id", "span_attributes"} <= record.keys()

    listed = [
        *head.records,
        *(dictionary for key in ("events", "data") for dictionary in dictionaries(head.mapping.get(key))),
    ]
    return any(map(is_span, listed))


def is_openai_agents(head: Head) -> bool:
    def is_mark(record: dict[str, Any]) -> bool:
        return (record.get("object") == "trace.span" and "span_data" in record) or (
            record.get("object") == "trace" and "workflow_name" in record
        )

    return head.any(is_mark) or any(map(is_mark, dictionaries(head.mapping.get("data"))))


def is_mlflow(head: Head) -> bool:
    def is_span(record: dict[str, Any]) -> bool:
        attributes = record.get("attributes")
        return isinstance(attributes, dict) and any(str(key).startswith("mlflow.") for key in attributes)

    def has_spans(record: dict[str, Any]) -> bool:
        data = record.get("data", record)
        return isinstance(data, dict) and any(map(is_span, dictionaries(data.get("spans"))))

    return head.any(has_spans)
