"""Recorded spans in a file below the configured root, from which dataset items are made."""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalwright.capture.listeners import add_handler, init
from evalwright.capture.spans import LLMSpan
from evalwright.capture.values import stored
from evalwright.files.masker import Masker
from evalwright.formats.pixie.surface.config import get_config
from evalwright.session import environment

if TYPE_CHECKING:
    from evalwright.formats.pixie.surface.evaluable import Evaluable

__all__ = ["LineFile", "TraceFile", "enable_storage", "newest_item"]

_log = logging.getLogger(__name__)

Span = dict[str, Any]


class LineFile:
    """Appends records as lines of JSON, without the secrets of the environment. If the file cannot be written, that is
    reported and does not stop the application."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        self._masker = Masker.of({}, environment())

    def append(self, record: dict[str, Any]) -> None:
        """Write one line."""
        line = self._masker.mask_text(json.dumps(record, ensure_ascii=False))
        try:
            with self._lock:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                # whole lines, even if several processes record at once
                with self._path.open("ab", buffering=0) as file:
                    file.write(f"{line}\n".encode("utf-8", "backslashreplace"))
        except OSError as error:
            _log.warning("%s cannot be written: %s", self._path, error.strerror)


class TraceFile:
    """Appends every finished span to a file."""

    def __init__(self, path: Path) -> None:
        self._lines = LineFile(path)

    def collect(self, span: Any) -> None:
        """Write one span as a line."""
        from evalwright.formats.pixie.recorded import as_evaluable

        record = asdict(span) | {"kind": "llm" if isinstance(span, LLMSpan) else "observe"}
        record["evaluable"] = as_evaluable(span).model_dump(mode="json")
        record |= {key: record[key].isoformat() for key in ("started_at", "ended_at")}
        self._lines.append(stored(record))


_enabled: set[Path] = set()
"""Per process, like `enable_storage`: it records what the program does."""


def enable_storage() -> None:
    """Record every span from now on into `<root>/traces.jsonl`; a second call changes nothing."""
    init()
    path = _path().resolve()
    if path not in _enabled:
        _enabled.add(path)
        add_handler(TraceFile(path))


def _path() -> Path:
    return Path(get_config().root) / "traces.jsonl"


def _newest_trace() -> list[Span]:
    """The spans of the trace that began last, in the order in which they began; empty if nothing was recorded."""
    try:
        lines = _path().read_text("utf-8").splitlines()
    except FileNotFoundError:
        return []
    spans = [span for line in lines if (span := _span(line)) is not None]
    if not spans:
        return []
    newest = max(spans, key=lambda span: datetime.fromisoformat(span["started_at"]))["trace_id"]
    return sorted((span for span in spans if span["trace_id"] == newest), key=lambda span: str(span["started_at"]))


def _span(line: str) -> Span | None:
    try:
        span = json.loads(line)
        datetime.fromisoformat(span["started_at"])
    except (ValueError, TypeError, KeyError):
        return None
    return span if isinstance(span, dict) and "trace_id" in span else None


def newest_item(select: str, name: str | None) -> Evaluable:
    """A span of the newest recorded trace: its root, its last model call, or the latest one with a name.

    Raises ValueError if there is none.
    """
    if select == "by_name" and not name:
        raise ValueError("--span-name is required with --select by_name")
    spans = _newest_trace()
    if not spans:
        raise ValueError("nothing was recorded: call enable_storage() in the application")
    trace_id = spans[0]["trace_id"]
    if select == "root":
        known = {span["span_id"] for span in spans}
        return _evaluable(next(span for span in spans if span["parent_span_id"] not in known))
    if select == "last_llm_call":
        calls = [span for span in spans if span["kind"] == "llm"]
        if not calls:
            raise ValueError(f"No LLM span found in trace {trace_id}")
        return _evaluable(max(calls, key=lambda span: str(span["ended_at"])))
    named = [span for span in spans if (span.get("name") or span.get("request_model")) == name]
    if not named:
        raise ValueError(f"No span named {name!r} found in trace {trace_id}")
    return _evaluable(named[-1])


def _evaluable(span: Span) -> Evaluable:
    from evalwright.formats.pixie.surface.evaluable import Evaluable

    return Evaluable.model_validate(span["evaluable"])
