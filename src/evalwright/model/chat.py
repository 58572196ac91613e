"""Model calls: request, reply and cost (produced: calls are recorded, cached and replayed)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import msgspec

from evalwright.model.plan import Price
from evalwright.model.trace import ToolCall

__all__ = [
    "SERVED_RESULTS",
    "ChatMessage",
    "ChatReply",
    "ChatRequest",
    "Embedding",
    "EmbeddingRequest",
    "Models",
    "Moderation",
    "Purpose",
    "ServedCall",
    "Usage",
    "Waits",
]

Purpose = Literal["judge", "system", "user"]
"""Who calls: a judge, the system under test, or the simulated user. Only judges' calls are cached."""


class ChatMessage(msgspec.Struct, frozen=True):
    """One message. `content` is text, or a list of content blocks as the OpenAI chat API has them."""

    role: str
    content: Any
    name: str | None = None
    tool_calls: list[ToolCall] = []
    tool_call_id: str | None = None


class Waits(msgspec.Struct, frozen=True):
    """How a call is retried; a field that is None is left to the run."""

    first_seconds: float | None = None
    """The longest wait before the second attempt; each further wait is `factor` times as long, up to
    `longest_seconds`."""
    longest_seconds: float | None = None
    factor: float | None = None
    statuses: list[int] | None = None
    """The HTTP statuses that are retried. None: those where a retry may help."""


class ChatRequest(msgspec.Struct, frozen=True):
    """One request to a model: everything that can change the reply.

    `model` is a name as users write it (`gpt-4o-mini`, `claude-...`, `openai/...`, `anthropic/...`).
    `schema` asks for a JSON reply: a JSON Schema, or `{}` for any object. `repeat` tells repeated samples apart.
    `provider`, `base_url` and `api_key_env` override what the name and the environment say.
    """

    model: str
    messages: Sequence[ChatMessage]
    system: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    schema: dict[str, Any] | None = None
    tools: list[dict[str, Any]] = []
    """Functions on offer, each `{name, description, parameters: JSON Schema}`."""
    tool_choice: str | None = None
    repeat: int = 0
    provider: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    extra: dict[str, Any] = {}
    """Further parameters of the provider's API, passed on unchanged."""
    attempts: int | None = None
    """Maximum number of attempts; `attempt_seconds` is the time limit of each. None leaves both to the run."""
    waits: Waits | None = None
    attempt_seconds: float | None = None
    api: Literal["responses"] | msgspec.UnsetType = msgspec.UNSET
    """OpenAI's Responses API, in place of chat completions."""
    stream: bool | msgspec.UnsetType = msgspec.UNSET
    """Whether the reply should arrive in pieces, so that the time of its first word is known."""
    default_limit: bool | msgspec.UnsetType = msgspec.UNSET
    """Whether `max_tokens` is only a default, which a reasoning model may exceed."""


class EmbeddingRequest(msgspec.Struct, frozen=True):
    """Texts for which a model computes vectors. `base_url` and `api_key_env` are those of `ChatRequest`."""

    model: str
    texts: Sequence[str]
    base_url: str | None = None
    api_key_env: str | None = None


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one call, null if the provider did not report them. Cached tokens are part of the input."""

    token_input: int | None = None
    token_output: int | None = None
    token_thinking: int | None = None
    token_cached: int | None = None
    """Read from the provider's cache."""
    token_cache_write: int | None = None
    """Written to the provider's cache."""


class ServedCall(msgspec.Struct, frozen=True):
    """A call of a tool that the provider itself ran, such as a web search: the caller has nothing to answer."""

    call: ToolCall
    result: dict[str, Any] | str | None = None
    """None if the reply does not contain it."""


SERVED_RESULTS = ("results", "outputs", "result", "output")
"""Where the items of OpenAI's Responses API for such calls have what the tool returned."""


class ChatReply(msgspec.Struct, frozen=True):
    """A model's reply. `cost_usd` is null without a price; a cached reply carries the original cost and latency."""

    text: str
    model: str
    thinking: str | None = None
    tool_calls: list[ToolCall] = []
    usage: Usage = Usage()
    cost_usd: float | None = None
    latency_ms: int = 0
    finish_reason: str | None = None
    refusal: str | None = None
    cached: bool = False
    reply_format: str | None = None
    """How the format of the reply was requested: `strict` or `json_schema`, `tool`, `json_object`, `prompt`."""
    left_out: list[str] = []
    """Parameters of the request that were not sent because the model rejects them."""
    limit: int | None = None
    """The token limit of the reply; null if none was sent."""
    first_ms: int | None = None
    """Milliseconds until the first piece of a streamed reply."""
    served_calls: list[ServedCall] | msgspec.UnsetType = msgspec.UNSET
    """Absent if the provider ran no tools itself."""
    written_arguments: list[str] | msgspec.UnsetType = msgspec.UNSET
    """The arguments of each tool call as the model wrote them; absent if there are no calls or no such texts."""
    log_probabilities: list[float] | msgspec.UnsetType = msgspec.UNSET
    """Of each token of the text (natural logarithm); absent if the provider did not report them."""


class Embedding(msgspec.Struct, frozen=True):
    """Vectors in the order of the texts."""

    vectors: list[list[float]]
    model: str
    usage: Usage = Usage()
    cost_usd: float | None = None
    cached: bool = False


class Moderation(msgspec.Struct, frozen=True):
    """Scores from 0 to 1 by category, and the categories that are flagged."""

    flagged: bool
    scores: dict[str, float]
    model: str
    categories: list[str] = []
    """Empty, too, in recordings of older versions."""


class Models(Protocol):
    """The only way to call models in a run: retries, limits, budget, cache, recording. Safe to share in one loop.

    Raises EvaluatorError (judges) or TargetError (systems and users); their `type` says why there is no answer:
    `rate_limited`, `authentication`, `quota`, `bad_request`, `http_5xx`, `connection`, `timeout`, `refused`,
    `bad_reply`, `cost_limit`, `no_price`, `not_recorded`, `network_refused`.
    """

    async def chat(self, request: ChatRequest, purpose: Purpose = "judge") -> ChatReply: ...

    def forget(self, request: ChatRequest) -> None:
        """Remove a judge's reply that cannot be used from the cache, so that the model is called again next time."""

    async def embed(self, request: EmbeddingRequest, purpose: Purpose = "judge") -> Embedding:
        """A vector for each text."""
        ...

    async def moderate(
        self, model: str, text: str, base_url: str | None = None, api_key_env: str | None = None
    ) -> Moderation:
        """What a moderation model says of a text. `base_url` and `api_key_env` are those of `ChatRequest`."""
        ...

    def price(self, model: str) -> Price | None:
        """The price of a model; None if it is unknown."""
