"""Why a model gave no answer: one word for each cause, and whether asking again may help."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import Any

from evalwright.errors import EvaluatorError, TargetError
from evalwright.model.chat import Purpose

__all__ = ["CallFailed", "failure_of", "raised_for"]

_TEXT = 500
_AGAIN = (408, 409, 425, 429)


class CallFailed(Exception):
    """One attempt failed. `again` says whether another one may help, `retry_after` what the server asked for, in s."""

    def __init__(self, kind: str, message: str, *, again: bool = False, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.kind, self.again, self.retry_after = kind, again, retry_after
        self.status: int | None = None
        """That of HTTP, where the server answered with one."""


def raised_for(purpose: Purpose, kind: str, message: str) -> EvaluatorError | TargetError:
    """The error for who asked: a judge could not judge, a system could not answer."""
    return EvaluatorError(message, kind) if purpose == "judge" else TargetError(message, kind)


def failure_of(error: Exception) -> CallFailed:
    """The failure behind an exception of one of the official clients, which have the same names for the same things."""
    if isinstance(error.__cause__, CallFailed):
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
            return CallFailed("timeout", "no answer within the time of one attempt", again=True)
        if "Connection" in name:
            cause = error.__cause__
            why = f"{type(cause).__name__}: {cause}" if cause is not None else text
            return CallFailed("connection", f"the connection failed: {why}"[:_TEXT], again=True)
        return CallFailed("bad_reply", f"the reply cannot be read: {name}: {text}", again="Validation" not in name)
    if status == 429:
        if _is_quota(error, text):
            return CallFailed("quota", f"HTTP 429: the quota is used up: {text}")
        return CallFailed("rate_limited", f"HTTP 429: {text}", again=True, retry_after=_retry_after(error))
    if status in (401, 403):
        return CallFailed("authentication", f"HTTP {status}: {text}")
    if status == 402:
        return CallFailed("quota", f"HTTP 402: {text}")
    if status >= 500:
        return CallFailed("http_5xx", f"HTTP {status}: {text}", again=True, retry_after=_retry_after(error))
    return CallFailed("bad_request", f"HTTP {status}: {text}", again=status in _AGAIN)


def _text(error: Exception) -> str:
    """What the server said, without headers and addresses."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    said = inner.get("message") if isinstance(inner, dict) else inner or body
    return str(said or getattr(error, "message", None) or error)[:_TEXT]


def _is_quota(error: Exception, text: str) -> bool:
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else {}
    codes = {inner.get("code"), inner.get("type")} if isinstance(inner, dict) else set()
    return "insufficient_quota" in codes or "billing_hard_limit_reached" in codes


def _retry_after(error: Exception) -> float | None:
    """Seconds that the server asks to wait, as a number or as a date (RFC 9110, 10.2.3)."""
    headers: Any = getattr(getattr(error, "response", None), "headers", None) or {}
    value = headers.get("retry-after")
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        from datetime import UTC, datetime

        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None
