"""Receives OpenTelemetry spans: from the application's own tracer provider if it has one, else from a private one.

The application's provider stays in place and gets one more processor. Nothing is imported before the application itself
uses OpenTelemetry, or a library whose OpenInference instrumentor is installed: the SDK takes long to import, and most
applications need none of it.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from evalwright.capture.spans import LLMSpan, StepSpan

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
"""The library that an instrumentor is for, if their names differ."""

_log = logging.getLogger(__name__)


class Telemetry:
    """Calls `notify` with each finished span and the listeners that `listeners` returned when the span began."""

    def __init__(self, notify: Callable[..., None], listeners: Callable[[], Any]) -> None:
        self._notify, self._listeners = notify, listeners
        self._private: Any = None
        self._attached: list[Any] = []
        self._watching = False
        self.untraced: dict[str, str] = {}
        """By library, why its instrumentor did not trace it."""

    def attach(self) -> None:
        """Attach to what the application has set up by now. Called for each cell, so it is cheap if nothing is new."""
        if not self._watching:
            self._watching = True
            for name in _installed_instrumentors():
                _imports.notice(_LIBRARIES.get(name, name), partial(self._instrument, name))
        if "opentelemetry.trace" in sys.modules:
            self._attach_to(_provider_of_application())

    def provide(self) -> None:
        """Become the application's provider if it has none, so that spans of any tracer are received, not only ours."""
        try:
            from opentelemetry import trace
        except ImportError:
            return
        provider = self._provider()
        if provider is not None and _provider_of_application() is None:
            trace.set_tracer_provider(provider)

    def tracer(self) -> Any:
        """A tracer for our own spans; None if the application does not use OpenTelemetry."""
        if not self._attached:
            return None
        return (_provider_of_application() or self._private).get_tracer(SCOPE)

    def carried(self) -> AbstractContextManager[object]:
        """A context manager that makes OpenTelemetry's present context current in another thread."""
        if "opentelemetry.context" not in sys.modules:
            return nullcontext()
        from opentelemetry.context import get_current

        return _made_current(get_current())

    def _provider(self) -> Any:
        """The application's provider, else the private one; None if the SDK is not installed."""
        provider = _provider_of_application()
        if provider is None and self._private is None:
            try:
                from opentelemetry.sdk.trace import TracerProvider
            except ImportError:
                return None
            # Nothing has to be flushed at the exit: our processor hands each span over at once.
            self._private = TracerProvider(shutdown_on_exit=False)
        self._attach_to(provider or self._private)
        return provider or self._private

    def _attach_to(self, provider: Any) -> None:
        if provider is not None and not any(provider is attached for attached in self._attached):
            self._attached.append(provider)
            provider.add_span_processor(_processor(self._notify, self._listeners))

    def _instrument(self, name: str) -> None:
        try:
            instrumentor = getattr(import_module(f"openinference.instrumentation.{name}"), _INSTRUMENTORS[name])()
            provider = self._provider()
            # The application may have instrumented the library itself: twice, each call would be recorded twice.
            if provider is not None and not instrumentor.is_instrumented_by_opentelemetry:
                instrumentor.instrument(tracer_provider=provider, raise_exception_on_conflict=True)
                if not instrumentor.is_instrumented_by_opentelemetry:  # older ones raise nothing
                    from importlib.metadata import version

                    raise RuntimeError(f"{_INSTRUMENTORS[name]} refuses {name} {version(name)}")
        except Exception as error:  # raised inside the application's import of its library, which must not fail for it
            self.untraced[name] = f"{type(error).__name__}: {error}"
            _log.warning("model calls of %s are not traced: %s", name, self.untraced[name])


@contextmanager
def _made_current(context: Any) -> Iterator[None]:
    from opentelemetry.context import attach, detach

    token = attach(context)
    try:
        yield
    finally:
        detach(token)


def _provider_of_application() -> Any:
    """The provider that the application has set; None if it accepts no span processors."""
    from opentelemetry import trace

    provider = trace.get_tracer_provider()
    return provider if hasattr(provider, "add_span_processor") else None


def _installed_instrumentors() -> Iterator[str]:
    """The names of the installed instrumentors. They are found as folders: importing one takes most of a second."""
    spec = find_spec("openinference")
    folders = [Path(folder) / "instrumentation" for folder in (spec and spec.submodule_search_locations) or ()]
    yield from (name for name in _INSTRUMENTORS if any((folder / name).is_dir() for folder in folders))


class _Imports:
    """A finder that finds no module by itself, and calls a function once a library has been imported.

    The instrumentors come with `wrapt`, which does the same, but takes a tenth of a small run to import.
    """

    def __init__(self) -> None:
        self._calls: dict[str, Callable[[], None]] = {}
        self._here = threading.local()

    def notice(self, library: str, call: Callable[[], None]) -> None:
        """Call the function when the library is imported; at once if it has been."""
        if library in sys.modules:
            call()
            return
        self._calls[library] = call
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name not in self._calls or name in sys.modules or getattr(self._here, "asks", None) == name:
            return None
        self._here.asks = name  # the finders after this one are asked, through the same door
        try:
            spec = find_spec(name)
        finally:
            self._here.asks = None
        loader = None if spec is None else spec.loader
        if loader is not None and hasattr(loader, "exec_module"):
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                if module.__name__ == name:  # a loader may have other modules of its archive to load
                    self._calls[name]()

            loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


_imports = _Imports()


def _processor(notify: Callable[..., None], listeners: Callable[[], Any]) -> Any:
    from opentelemetry.sdk.trace import SpanProcessor

    from evalwright.capture.openinference import llm_span_of, step_of

    class Processor(SpanProcessor):
        def __init__(self) -> None:
            self._begun: dict[tuple[int, int], Any] = {}

        def on_start(self, span: Any, parent_context: Any = None) -> None:
            # The end of a span may be reported from a context that is not the one in which it began.
            self._begun[span.context.trace_id, span.context.span_id] = listeners()

        def on_end(self, span: Any) -> None:
            listening = self._begun.pop((span.context.trace_id, span.context.span_id), ())
            try:
                recorded: LLMSpan | StepSpan | None = llm_span_of(span)
                if recorded is None and listening and span.instrumentation_scope.name != SCOPE:
                    recorded = step_of(span)
            except Exception:  # raised where the application ends its span, which must not fail because it is traced
                _log.warning("the span %r cannot be read", span.name, exc_info=True)
                return
            if recorded is not None:
                notify(recorded, listening)

    return Processor()
