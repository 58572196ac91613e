"""What known providers expect and return: the values of the key `provider`, under evalh's names."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["PRESETS", "Preset"]


class Preset(NamedTuple):
    """A request template and a response mapping, single entries of which may be overridden."""

    request_template: str
    response_mapping: dict[str, str]


_CHAT_REQUEST = '{"messages": [{"role": "user", "content": {{ input.user_message | json }}}]}'

_OPENAI_CHAT = Preset(
    _CHAT_REQUEST,
    {
        "final_answer": "$.choices[0].message.content",
        "thinking": "$.choices[0].message.reasoning_content",
        "tool_calls": "$.choices[0].message[tool_calls,function_call]",
        "tokens.input": "$.usage.prompt_tokens",
        "tokens.output": "$.usage.completion_tokens",
        "tokens.thinking": "$.usage.completion_tokens_details.reasoning_tokens",
    },
)

_ANTHROPIC_MESSAGES = Preset(
    _CHAT_REQUEST,
    {
        "final_answer": '$.content[?(@.type=="text")].text',
        "thinking": '$.content[?(@.type=="thinking")].thinking',
        # Of the blocks only calls have a name; some of them are run by the provider (`server_tool_use`).
        "tool_calls": "$.content[?(@.name)]",
        "tokens.input": "$.usage.input_tokens",
        "tokens.output": "$.usage.output_tokens",
        "tokens.thinking": "$.usage.thinking_tokens",
    },
)

_SIMPLE = Preset('{"input": {{ input | json }}}', {"final_answer": "$.output"})

PRESETS: dict[str, Preset] = {
    "anthropic_messages": _ANTHROPIC_MESSAGES,
    "deepseek_r1": _OPENAI_CHAT,
    "langserve_invoke": _SIMPLE,
    "openai_chat": _OPENAI_CHAT,
    "simple": _SIMPLE,
}
