"""Why a model call failed: one word for each cause, and whether another attempt may help."""

from __future__ import annotations

from typing import Any

from evalwright.errors import EvaluatorError, TargetError
from evalwright.llm.rates import exhausted_for
from evalwright.model.chat import Purpose

__all__ = ["CallFailed", "error_for", "failure_of", "retry_after"]

_TEXT = 500
"""Characters of a server's message that are kept: some servers send pages of HTML."""
_RETRYABLE = (408, 409, 425, 429)
"""Client errors that may pass: request timeout, conflict (the provider holds a lock), too early, too many requests."""

_WRONG_CERTIFICATE = "CERTIFICATE_VERIFY_FAILED"
"""OpenSSL's word for a server whose certificate is not trusted, has expired or names another host."""


class CallFailed(Exception):
    """One attempt failed.

    `retryable` says whether another attempt may help, `retry_after` how many seconds the server asks to wait before it.
    """

    kind: str
    retry_after: float | None
    retryable: bool

    def __init__(self, kind: str, message: str, *, retryable: bool = False, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.kind, self.retryable, self.retry_after = kind, retryable, retry_after
        self.status: int | None = None
        """The HTTP status; None if the server did not answer."""
        self.attempts = 1
        self.arrived: bool = True
        """Whether the server may have received the call."""


def error_for(purpose: Purpose, failure: CallFailed, message: str) -> EvaluatorError | TargetError:
    """The error for the caller: a judge could not judge, or a system could not answer."""
    if purpose == "judge":
        return EvaluatorError(message, failure.kind, status=failure.status)
    return TargetError(message, failure.kind, status=failure.status, attempts=failure.attempts)


def failure_of(error: Exception) -> CallFailed:
    """The failure behind an exception of one of the official clients, whose exceptions have the same names."""
    if isinstance(error.__cause__, CallFailed):  # our own, raised while the reply arrived
        return error.__cause__
    status = getattr(error, "status_code", None)
    failure = _failure(error, status)
    failure.status = status
    return failure


def _failure(error: Exception, status: int | None) -> CallFailed:
    name = type(error).__name__
    text = _text(error)
    if status is None:
        if "Timeout" in name:
            return CallFailed("timeout", "no answer within the time limit of one attempt", retryable=True)
        if "Connection" in name:
            cause = error.__cause__
            why = f"{type(cause).__name__}: {cause}" if cause is not None else text
            # A certificate is as wrong at the next attempt.
            again = _WRONG_CERTIFICATE not in why
            failure = CallFailed("connection", f"the connection failed: {why}"[:_TEXT], retryable=again)
            failure.arrived = type(cause).__name__ not in ("ConnectError", "ConnectTimeout")
            return failure
        # A validation error of the client is about our request: it would be the same next time.
        return CallFailed("bad_reply", f"the reply cannot be read: {name}: {text}", retryable="Validation" not in name)
    if status == 429:
        if _is_quota(error):  # OpenAI's status for an empty account, too, which waiting does not refill
            return CallFailed("quota", f"HTTP 429: quota exceeded: {text}")
        return CallFailed("rate_limited", f"HTTP 429: {text}", retryable=True, retry_after=_retry_after(error))
    if status in (401, 403):
        return CallFailed("authentication", f"HTTP {status}: {text}")
    if status == 402:
        return CallFailed("quota", f"HTTP 402: {text}")
    if status // 100 == 5:
        return CallFailed("http_5xx", f"HTTP {status}: {text}", retryable=True, retry_after=_retry_after(error))
    return CallFailed("bad_request", f"HTTP {status}: {text}", retryable=status in _RETRYABLE)


def _text(error: Exception) -> str:
    """The server's message, without headers and addresses, which may contain keys."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    message = inner.get("message") if isinstance(inner, dict) else inner or body
    return str(message or getattr(error, "message", None) or error)[:_TEXT]


def _is_quota(error: Exception) -> bool:
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else {}
    codes = {inner.get("code"), inner.get("type")} if isinstance(inner, dict) else set()
    return "insufficient_quota" in codes or "billing_hard_limit_reached" in codes


def _retry_after(error: Exception) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    stated = retry_after(headers)
    return exhausted_for(headers) if stated is None else stated


def retry_after(headers: Any) -> float | None:
    """Seconds that a server asks to wait, from a number or a date (RFC 9110, section 10.2.3).

    OpenAI and Azure state them more exactly in `retry-after-ms`.
    """
    exact = headers.get("retry-after-ms") or ""
    if exact.isascii() and exact.isdigit() and len(exact) < 16:
        return int(exact) / 1000
    value = headers.get("retry-after")
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        from datetime import UTC, datetime
        from email.utils import parsedate_to_datetime

        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None
