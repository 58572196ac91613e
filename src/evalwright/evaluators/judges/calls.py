"""Calls of judges: their settings, their replies or why there are none, and their cost."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, TypeVar

import msgspec

from evalwright.errors import EvaluatorError, Problem, shorten
from evalwright.evaluators.judges.readable_reply import ReplyRetries, readable_reply, what_was_sent
from evalwright.llm.endpoints import endpoint_problems, nameless
from evalwright.llm.patience import all_given
from evalwright.model.chat import ChatMessage, ChatReply, ChatRequest
from evalwright.model.plan import Price
from evalwright.model.snapshot import Case
from evalwright.session import session

__all__ = [
    "OF_THE_RUN",
    "JudgeOutcome",
    "JudgeSettings",
    "Prompt",
    "ask",
    "cost",
    "failure",
    "model_problems",
    "spending",
    "unheard",
]

_KNOWN = re.compile(r"(claude|gpt|chatgpt|o\d+)(-.*)?")

T = TypeVar("T")

_UNKNOWN = Price(3.0, 15.0)
"""The price assumed for a model without one, as in evalh 2.0: 3 and 15 US dollars per million tokens."""
_LIKELY_OUTPUT = 512
_KEPT = 2000
"""Characters of an unreadable reply that a result keeps."""
OF_THE_RUN = frozenset({"cost_limit", "no_price", "not_recorded", "network_refused", "not_installed", "truncated"})
"""Failures that the run's own settings cause: they keep their type, which distinguishes them from the judge's."""
_REPLIED = frozenset({"judge_reply", "judge_thinking"})
"""What the detail of an error contains if the judge did reply."""


class JudgeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that all judges share."""

    max_tokens: Annotated[int, msgspec.Meta(gt=0)] | None = None
    """None: `least_tokens`, more for reasoning models."""
    temperature: Annotated[float, msgspec.Meta(ge=0)] | None = None
    """None: the provider's default."""
    cost_limit_usd: Annotated[float, msgspec.Meta(ge=0)] | None = None
    """Maximum cost of all calls of one evaluation, in US dollars."""
    base_url: str | None = None
    api_key_env: str | None = None
    """The environment variable with the key. None: the provider's usual one."""
    reasoning_effort: str | None = None
    thinking: dict[str, Any] | None = None
    """How long the model may think, in its provider's terms; passed on unchanged, like the next key."""
    reply_retries: ReplyRetries = 1

    calls_models = True
    least_tokens: ClassVar[int] = 1024

    @property
    def limit(self) -> int:
        """Tokens of a reply."""
        return self.least_tokens if self.max_tokens is None else self.max_tokens

    @property
    def extra(self) -> dict[str, Any]:
        settings = {"reasoning_effort": self.reasoning_effort, "thinking": self.thinking}
        return {key: value for key, value in settings.items() if value is not None}

    @property
    def judges(self) -> Sequence[str]:
        """The models that are called."""
        raise NotImplementedError

    def asks(self, case: Case) -> Iterator[ChatRequest]:
        for model in self.judges:
            yield ChatRequest(model, [], base_url=self.base_url, api_key_env=self.api_key_env)


def model_problems(values: Mapping[str, Any], models: Iterable[tuple[str, Any]]) -> list[Problem]:
    """Problems of the address and the model names in a configuration. A custom `base_url` accepts any name."""
    problems = endpoint_problems(values)
    if isinstance(values.get("base_url"), str):
        return problems
    backends = [(key, _backend_problem(name)) for key, name in models if isinstance(name, str) and not nameless(name)]
    return problems + [Problem("", message, key=key) for key, message in backends if message is not None]


class Prompt(NamedTuple):
    """The prompt for a judge."""

    system: str
    user: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self._text.encode("utf-8", "backslashreplace")).hexdigest()

    @property
    def _text(self) -> str:
        return f"{self.system}\n\n{self.user}"

    def estimate(self, price: Price, max_tokens: int) -> float:
        """Estimated cost of one call in US dollars, at four characters per token."""
        return _call_cost(price, len(self._text) // 4, min(max_tokens, _LIKELY_OUTPUT))


@dataclass(frozen=True, slots=True)
class JudgeOutcome(Generic[T]):
    """What became of calling one judge: `value` is what its last reply says, or `error` says why there is none."""

    model: str
    value: T | None = None
    replies: Sequence[ChatReply] = ()
    error: EvaluatorError | None = None
    problems: Sequence[str] = ()
    """Why it was called again."""


async def ask(
    settings: JudgeSettings,
    questions: Sequence[tuple[str, Prompt, int]],
    schema: dict[str, Any],
    read: Callable[[str], T],
) -> list[JudgeOutcome[T]]:
    """Send all questions (model, prompt, repeat) at once. `read` parses the text of a reply, or raises BadReply.

    Raises EvaluatorError `cost_limit_exceeded`, before anything is sent if the estimate is above the limit.
    """
    limit = settings.cost_limit_usd
    if limit is not None:
        estimate = sum(prompt.estimate(_price(model), settings.limit) for model, prompt, _ in questions)
        if estimate > limit:
            raise _too_costly("would cost about", estimate, limit)
    outcomes = await all_given(_outcome(settings, *question, schema, read, len(questions)) for question in questions)
    spent = sum(_reply_cost(reply) or 0.0 for outcome in outcomes for reply in outcome.replies)
    if limit is not None and spent > limit:
        raise _too_costly("cost", spent, limit, outcomes)
    return outcomes


async def _outcome(
    settings: JudgeSettings,
    model: str,
    prompt: Prompt,
    repeat: int,
    schema: dict[str, Any],
    read: Callable[[str], T],
    judges: int,
) -> JudgeOutcome[T]:
    request = ChatRequest(
        model,
        [ChatMessage("user", prompt.user)],
        system=prompt.system,
        temperature=settings.temperature,
        max_tokens=settings.limit,
        schema=schema,
        repeat=repeat,
        base_url=settings.base_url,
        api_key_env=settings.api_key_env,
        extra=settings.extra,
        default_limit=True if settings.max_tokens is None else msgspec.UNSET,
    )

    def affordable(replies: Sequence[ChatReply]) -> bool:
        # each judge has its share of the limit, and the next reply may cost as much as the last one
        share = None if settings.cost_limit_usd is None else settings.cost_limit_usd / judges
        costs = [_reply_cost(reply) or 0.0 for reply in replies]
        return share is None or sum(costs) + costs[-1] <= share

    try:
        reply = await readable_reply(request, lambda reply: read(reply.text), settings.reply_retries, affordable)
    except EvaluatorError as error:
        kind = error.type if error.type in OF_THE_RUN else "adapter_error"
        detail = {**error.detail, "failure": error.type}
        return JudgeOutcome(model, error=EvaluatorError(unheard(model, error), kind, detail, error.cost_usd))
    if reply.value is not None:
        return JudgeOutcome(model, reply.value, reply.replies, None, reply.problems)
    times = f", asked {len(reply.replies)} times" if reply.problems else ""
    message = f"the reply of the judge {model} cannot be used{times}: {reply.problem}"
    detail = {"judge_reply": shorten(reply.replies[-1].text, _KEPT)}
    return JudgeOutcome(model, None, reply.replies, EvaluatorError(message, "adapter_error", detail), reply.problems)


def unheard(judge: str, error: EvaluatorError) -> str:
    """Why a judge has no verdict: it could not be called, or its reply is unusable."""
    if error.type in ("truncated", "bad_reply") or not _REPLIED.isdisjoint(error.detail):
        return f"the reply of the judge {judge} cannot be used: {error}"
    again = " again" if error.detail.get("asked_again") else ""
    return f"the judge {judge} could not be called{again}: {error}"


def failure(
    error: EvaluatorError, detail: Mapping[str, Any], outcomes: Sequence[JudgeOutcome[Any]] = ()
) -> EvaluatorError:
    """The error of the whole evaluation, with what is known about it and what it cost nevertheless."""
    spent = spending(outcomes) if any(outcome.replies for outcome in outcomes) else {}
    whole = {**detail, **spent, **error.detail}
    return EvaluatorError(str(error), error.type, whole, cost(outcomes) if outcomes else error.cost_usd)


def cost(outcomes: Sequence[JudgeOutcome[Any]]) -> float | None:
    """Cost of all calls in US dollars; None if the price of any is unknown."""
    costs = [reply.cost_usd for outcome in outcomes for reply in outcome.replies]
    # the error of a failed call has what was paid before it
    costs += [
        outcome.error.cost_usd
        for outcome in outcomes
        if outcome.error and not outcome.replies and outcome.error.cost_usd
    ]
    return sum(c for c in costs if c is not None) if costs and None not in costs else None


def spending(outcomes: Sequence[JudgeOutcome[Any]]) -> dict[str, Any]:
    """Cost and tokens of all calls, how they were made, and what the judges thought, for a result's detail.

    Models without a price are counted at an assumed one.
    """
    replies = [reply for outcome in outcomes for reply in outcome.replies]
    spent = [_reply_cost(reply) for reply in replies]
    detail: dict[str, Any] = {
        "cost_usd": sum(c for c in spent if c is not None) if spent and None not in spent else None,
        "usage": {
            "token_input": _total(reply.usage.token_input for reply in replies),
            "token_output": _total(reply.usage.token_output for reply in replies),
        },
    }
    if any(reply.cost_usd is None and cost is not None for reply, cost in zip(replies, spent, strict=True)):
        detail["cost_assumed"] = True
    if thoughts := [reply.thinking for reply in replies if reply.thinking]:
        detail["judge_thinking"] = thoughts if len(replies) > 1 else thoughts[0]
    if cached := sum(reply.cached for reply in replies):
        detail["cached"] = cached
    if problems := [problem for outcome in outcomes for problem in outcome.problems]:
        detail["asked_again"] = problems
    return {**detail, **what_was_sent(replies)}


def _total(counts: Iterable[int | None]) -> int | None:
    """The sum of the known values; None if none is known."""
    counted = [count for count in counts if count is not None]
    return sum(counted) if counted else None


def _reply_cost(reply: ChatReply) -> float | None:
    usage = reply.usage
    if reply.cost_usd is not None:
        return reply.cost_usd
    if usage.token_input is None or usage.token_output is None:
        return None
    return _call_cost(_UNKNOWN, usage.token_input, usage.token_output)


def _price(model: str) -> Price:
    return session().models.price(model) or _UNKNOWN


def _call_cost(price: Price, tokens_in: int, tokens_out: int) -> float:
    return (tokens_in * price.input_per_million_tokens + tokens_out * price.output_per_million_tokens) / 1_000_000


def _too_costly(what: str, dollars: float, limit: float, outcomes: Sequence[JudgeOutcome[Any]] = ()) -> EvaluatorError:
    message = f"judging {what} {dollars:.6f} USD, the limit is {limit:g}"
    detail = spending(outcomes) if outcomes else {"estimated_cost_usd": dollars}
    return EvaluatorError(message, "cost_limit_exceeded", detail, cost(outcomes))


def _backend_problem(model: str) -> str | None:
    """Why no provider serves `model`; None if one does. In `provider/model`, the name itself says which provider."""
    provider, slash, rest = model.partition("/")
    if (slash and provider and rest) or _KNOWN.fullmatch(model) or model.startswith("python:"):
        return None
    hint = f"'openai/{model}' is a model of the server at base_url or OPENAI_BASE_URL"
    return f"no backend for the model {model!r}, expected 'claude-...', 'gpt-...', 'o1...' or 'provider/model'; {hint}"
