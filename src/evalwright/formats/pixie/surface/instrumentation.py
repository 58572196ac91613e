"""How an application is marked and recorded."""

from pathlib import Path

from evalwright.capture import listeners
from evalwright.capture.handlers import InstrumentationHandler
from evalwright.capture.listeners import add_handler, flush, remove_handler
from evalwright.capture.observations import Observation, observe, start_observation
from evalwright.capture.spans import (
    AssistantMessage,
    ImageContent,
    LLMSpan,
    Message,
    ObserveSpan,
    SystemMessage,
    TextContent,
    ToolCall,
    ToolDefinition,
    ToolResultMessage,
    UserMessage,
)
from evalwright.capture.tree import ObservationNode
from evalwright.capture.wrap import (
    WrapRegistryMissError,
    WrapTypeMismatchError,
    clear_eval_input,
    clear_eval_output,
    get_eval_input,
    get_eval_output,
    init_eval_output,
    set_eval_input,
    wrap,
)
from evalwright.formats.pixie.surface.config import get_config
from evalwright.formats.pixie.surface.observation_store import StorageHandler
from evalwright.formats.pixie.surface.trace_records import (
    ENTRY_KWARGS_KEY,
    EntryInputLog,
    LLMSpanLog,
    WrapNameCollisionError,
    WrappedData,
    filter_by_purpose,
)
from evalwright.formats.pixie.surface.trace_store import enable_storage

MessageContent = TextContent | ImageContent
"""A part of a message."""

__all__ = [
    "ENTRY_KWARGS_KEY",
    "AssistantMessage",
    "EntryInputLog",
    "ImageContent",
    "InstrumentationHandler",
    "LLMSpan",
    "LLMSpanLog",
    "Message",
    "MessageContent",
    "Observation",
    "ObservationNode",
    "ObserveSpan",
    "StorageHandler",
    "SystemMessage",
    "TextContent",
    "ToolCall",
    "ToolDefinition",
    "ToolResultMessage",
    "UserMessage",
    "WrapNameCollisionError",
    "WrapRegistryMissError",
    "WrapTypeMismatchError",
    "WrappedData",
    "add_handler",
    "clear_eval_input",
    "clear_eval_output",
    "enable_llm_tracing",
    "enable_storage",
    "filter_by_purpose",
    "flush",
    "get_eval_input",
    "get_eval_output",
    "init",
    "init_eval_output",
    "observe",
    "remove_handler",
    "set_eval_input",
    "start_observation",
    "wrap",
]


def init(capture_content: bool = True, queue_size: int = 1000) -> None:
    """Start recording; a second call changes nothing. Contents are recorded whatever `capture_content` is.

    Attaches to the application's tracer provider, or sets one if it has none. If PIXIE_TRACING is on, what passes
    `wrap` and the calls of models are appended to the file PIXIE_TRACE_OUTPUT.
    """
    listeners.init(queue_size)
    config = get_config()
    if config.tracing_enabled and config.trace_output:
        from evalwright.formats.pixie.trace_files import log_into

        log_into(Path(config.trace_output))


enable_llm_tracing = init
