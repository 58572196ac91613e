"""Why a span failed."""

from __future__ import annotations

from evalwright.importers.wire_spans import WireSpan
from evalwright.model.trace import TraceError

__all__ = ["error_of", "failure_in"]

_STACK = "Traceback (most recent call last):"
"""What LangChain writes behind the message of an exception."""


def error_of(span: WireSpan) -> TraceError:
    """The error of a trace, one of whose spans failed."""
    raised = next((event.attributes for event in span.events if event.name == "exception"), {})
    kind = span.attributes.get("error.type", raised.get("exception.type"))
    message = str(span.message or raised.get("exception.message") or "the application failed")
    text, begins, trace = message.partition(_STACK)
    stack = raised.get("exception.stacktrace") or begins + trace
    text = text.strip() or message
    text = f"{kind}: {text}" if isinstance(kind, str) and kind.rpartition(".")[2] not in text else text
    return TraceError("exception", text, stack if isinstance(stack, str) and stack else None)


def failure_in(span: WireSpan) -> str | None:
    """Why a span failed; None if it did not."""
    raised = next(
        (event.attributes.get("exception.message") for event in span.events if event.name == "exception"), None
    )
    return (span.message or str(raised or "error")) if span.status == "error" else None
