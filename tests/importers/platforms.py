"""Traces as platforms export them: the smallest that say something."""

import json
from base64 import b64encode

AT = "2026-03-04T09:00:{:02}Z"
ASKED = [{"role": "user", "content": "Where is order 7?"}]
CALL = {"id": "c1", "type": "function", "function": {"name": "track", "arguments": '{"order": 7}'}}


def observation(id: str, kind: str, parent: str | None, start: int, end: int, **more: object) -> dict[str, object]:
    named = {"id": id, "traceId": "t", "type": kind, "name": id, "parentObservationId": parent}
    return {**named, "startTime": AT.format(start), "endTime": AT.format(end), **more}


OBSERVATIONS = [
    observation("agent", "SPAN", None, 0, 4, output="In Bonn"),
    observation(
        "model", "GENERATION", "agent", 1, 2, model="gpt-4o-mini", input=ASKED,
        output={"role": "assistant", "content": None, "tool_calls": [CALL]},
        usageDetails={"input": 10, "input_cached_tokens": 5, "output": 3, "total": 18}, costDetails={"total": 0.01},
    ),
    observation("track", "TOOL", "agent", 2, 3, input={"order": 7}, output={"place": "Bonn"}),
]  # fmt: skip


def langsmith(id: str, kind: str, parent: str | None, start: int, end: int, **more: object) -> dict[str, object]:
    named = {"id": id, "trace_id": "t", "run_type": kind, "name": id, "parent_run_id": parent}
    return {**named, "start_time": AT.format(start), "end_time": AT.format(end), "inputs": {}, "outputs": {}, **more}


def lc(kind: str, **fields: object) -> dict[str, object]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind], "kwargs": fields}


def mlflow_span(id: bytes, parent: bytes | None, name: str, kind: str, at: int, **more: object) -> dict[str, object]:
    """A span as MLflow 3 writes it: ids in base64, and each attribute as JSON text."""
    start = 1_795_940_404_000_000_000 + at * 10**6
    attributes = {"mlflow.spanType": kind, **{f"mlflow.{key}": value for key, value in more.items()}}
    return {
        "trace_id": b64encode(b"t" * 16).decode(), "span_id": b64encode(id * 8).decode(),
        "parent_span_id": parent and b64encode(parent * 8).decode(), "name": name, "start_time_unix_nano": start,
        "end_time_unix_nano": start + 10**6, "events": [], "status": {"code": "STATUS_CODE_OK", "message": ""},
        "attributes": {**{key: json.dumps(value) for key, value in attributes.items()}, "step": "4"}, "links": [],
    }  # fmt: skip


def row(id: str, kind: str, parent: str | None, start: float, end: float, **more: object) -> dict[str, object]:
    """A span as Braintrust's SDK logs it."""
    metrics = {"start": 1772614800 + start, "end": 1772614800 + end, **more.pop("metrics", {})}
    about = {"type": kind, "name": id, **({"purpose": "scorer"} if kind == "score" else {})}
    parents = [parent] if parent else None
    return {"id": f"row-{id}", "span_id": id, "root_span_id": "r", "span_parents": parents, "span_attributes": about,
            "metrics": metrics, "created": AT.format(0), "experiment_id": "e", **more}  # fmt: skip
