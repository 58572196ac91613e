"""What an application is marked and recorded with."""

from evalwright.capture.recording import (
    InstrumentationHandler,
    Observation,
    add_handler,
    flush,
    init,
    observe,
    remove_handler,
    start_observation,
)
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
from evalwright.capture.wrapping import (
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
from evalwright.pixie.trace_store import enable_storage

enable_llm_tracing = init

__all__ = [
    "AssistantMessage",
    "ImageContent",
    "InstrumentationHandler",
    "LLMSpan",
    "Message",
    "Observation",
    "ObservationNode",
    "ObserveSpan",
    "SystemMessage",
    "TextContent",
    "ToolCall",
    "ToolDefinition",
    "ToolResultMessage",
    "UserMessage",
    "WrapRegistryMissError",
    "WrapTypeMismatchError",
    "add_handler",
    "clear_eval_input",
    "clear_eval_output",
    "enable_llm_tracing",
    "enable_storage",
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
