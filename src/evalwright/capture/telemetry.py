"""Hearing OpenTelemetry: the application's own tracer provider if it has one, and a private one where it has none.

The application's provider stays what it is: it gets one more listener, and no other takes its place. Nothing is
imported before the application itself uses OpenTelemetry, or a library whose OpenInference instrumentor is installed.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evalwright.capture.openinference import llm_span_of, step_of

__all__ = ["SCOPE", "Telemetry"]

SCOPE = "evalwright"
"""The instrumentation scope of our own spans."""
_INSTRUMENTORS = {
    "openai": "OpenAIInstrumentor",
    "anthropic": "AnthropicInstrumentor",
    "langchain": "LangChainInstrumentor",
    "google_genai": "GoogleGenAIInstrumentor",
    "dspy": "DSPyInstrumentor",
}
_LIBRARIES = {"langchain": "langchain_core", "google_genai": "google.genai"}
"""What an instrumentor is for, where it has another name."""

_log = logging.getLogger(__name__)


class Telemetry:
    """`tell` takes each finished span with the listeners that `listeners` gave when it began."""

    def __init__(self, tell: Callable[..., None], listeners: Callable[[], Any]) -> None:
        self._tell, self._listeners = tell, listeners
        self._private: Any = None
        self._heard: list[Any] = []
        self._watching = False

    def attach(self) -> None:
        """Hear what there is by now. Costs nothing when nothing is new."""
        if not self._watching:
            self._watching = True
            for name in _installed():
                _when_imported(_LIBRARIES.get(name, name), partial(self._instrument, name))
        if "opentelemetry.trace" in sys.modules:
            self._hear(_of_application())

    def provide(self) -> None:
        """Be the application's provider where it has none: then spans of any tracer are heard, not only of ours."""
        try:
            from opentelemetry import trace
        except ImportError:
            return
        provider = self._provider()
        if provider is not None and _of_application() is None:
            trace.set_tracer_provider(provider)

    def tracer(self) -> Any:
        """A tracer for our own spans; None where nobody uses OpenTelemetry."""
        if not self._heard:
            return None
        return (_of_application() or self._private).get_tracer(SCOPE)

    def carried(self) -> AbstractContextManager[object]:
        """What OpenTelemetry has as current here, to be made current in another thread."""
        if "opentelemetry.context" not in sys.modules:
            return nullcontext()
        from opentelemetry.context import get_current

        return _made_current(get_current())

    def _provider(self) -> Any:
        """The application's, else the private one; None where the SDK is not installed."""
        found = _of_application()
        if found is None and self._private is None:
            try:
                from opentelemetry.sdk.trace import TracerProvider
            except ImportError:
                return None
            self._private = TracerProvider(shutdown_on_exit=False)
        self._hear(found or self._private)
        return found or self._private

    def _hear(self, provider: Any) -> None:
        if provider is not None and not any(provider is one for one in self._heard):
            self._heard.append(provider)
            provider.add_span_processor(_processor(self._tell, self._listeners))

    def _instrument(self, name: str, _library: Any) -> None:
        try:
            instrumentor = getattr(import_module(f"openinference.instrumentation.{name}"), _INSTRUMENTORS[name])()
            provider = self._provider()
            if provider is not None and not instrumentor.is_instrumented_by_opentelemetry:
                instrumentor.instrument(tracer_provider=provider)
        except Exception:  # it must not keep the application from importing its library
            _log.warning("model calls of %s are not seen", name, exc_info=True)


@contextmanager
def _made_current(context: Any) -> Iterator[None]:
    from opentelemetry.context import attach, detach

    token = attach(context)
    try:
        yield
    finally:
        detach(token)


def _of_application() -> Any:
    """The provider that the application has set, if it can be listened to."""
    from opentelemetry import trace

    provider = trace.get_tracer_provider()
    return provider if hasattr(provider, "add_span_processor") else None


def _installed() -> Iterator[str]:
    """The instrumentors that are there; found without importing any, which takes most of a second."""
    spec = find_spec("openinference")
    folders = [Path(folder) / "instrumentation" for folder in (spec and spec.submodule_search_locations) or ()]
    yield from (name for name in _INSTRUMENTORS if any((folder / name).is_dir() for folder in folders))


def _when_imported(library: str, call: Callable[[Any], None]) -> None:
    if library in sys.modules:
        call(sys.modules[library])
        return
    from wrapt import register_post_import_hook  # comes with every instrumentor

    register_post_import_hook(call, library)


def _processor(tell: Callable[..., None], listeners: Callable[[], Any]) -> Any:
    from opentelemetry.sdk.trace import SpanProcessor

    class Processor(SpanProcessor):
        def __init__(self) -> None:
            self._begun: dict[tuple[int, int], Any] = {}

        def on_start(self, span: Any, parent_context: Any = None) -> None:
            self._begun[span.context.trace_id, span.context.span_id] = listeners()

        def on_end(self, span: Any) -> None:
            listening = self._begun.pop((span.context.trace_id, span.context.span_id), ())
            called = llm_span_of(span)
            if called is not None:
                tell(called, listening)
            elif listening and span.instrumentation_scope.name != SCOPE:
                tell(step_of(span), listening)

    return Processor()
