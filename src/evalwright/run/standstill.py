"""Systems that cannot work: they answer nothing, and every cell ends in the same error.

Continuing would only cost time and money: the cause is a mistake in the suite or the program, or a service that is not
there, and the first twenty cells show as much as the next thousand would.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set

from evalwright.model.plan import Plan
from evalwright.model.trace import Trace, TraceError
from evalwright.scoring.reasons import error_text

__all__ = ["Standstill"]

_MOST_KINDS = 50
"""Different errors of one system that are counted: if there are more, there is no single mistake to find."""
_NOT_ITS_OWN = ("cost_limit", "not_recorded")
"""Errors that say nothing about the system."""
_SIGN_IN = "sign_in"
"""The error of an account that is not signed in: every further call can only end the same way, in any variant."""
_CHANGING = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?|[0-9a-f]{8,}")
"""Parts that may differ between messages of the same error: addresses, times, ids."""
_LONGEST = 500

_Kind = tuple[str, str]


class Standstill:
    """Counts the errors of systems that have not answered yet, until one of them reaches the plan's number."""

    def __init__(self, plan: Plan, accounts: Mapping[str, str], proven: Set[str], reasons: dict[str, str]) -> None:
        """`accounts` says for each variant what signs in for it; variants with the same account stop together.

        Variants in `proven` answered before the first error. The reason why one is no longer called is put into
        `reasons`.
        """
        self._limit, self._reasons = plan.run.stop_after_errors, reasons
        self._accounts = {v.name: accounts.get(v.name, v.name) for v in plan.variants}
        self._unproven: dict[str, dict[_Kind, int]] = {
            v.name: {} for v in plan.variants if self._limit and v.name not in proven
        }

    def add(self, trace: Trace) -> None:
        """Count the outcome of one cell; a system that has answered once is never stopped, and a stopped one
        continues."""
        error = None if trace.extra.get("source") == "replay" else trace.error  # a recorded one stops no recording
        if error is None:
            self._unproven.pop(trace.variant_name, None)
            self._reasons.pop(trace.variant_name, None)  # a cell that was in flight when it was stopped
            return
        if error.type == _SIGN_IN and self._limit:
            self._stop_account(trace.variant_name, error)
            return
        counts = self._unproven.get(trace.variant_name)
        if counts is None or error.type in _NOT_ITS_OWN:
            return
        kind = error.type, _CHANGING.sub("#", error.message.replace(trace.case_id, "#"))[:_LONGEST]
        if kind in counts or len(counts) < _MOST_KINDS:
            counts[kind] = counts.get(kind, 0) + 1
            if counts[kind] >= self._limit:
                del self._unproven[trace.variant_name]
                self._reasons[trace.variant_name] = _reason(trace.variant_name, counts[kind], error)

    def _stop_account(self, variant: str, error: TraceError) -> None:
        account = self._accounts.get(variant, variant)
        reason = f"stopped: {account} is not signed in: {error.message}. `evalwright retry RUN` then runs the rest"
        for name, other in self._accounts.items():
            if other == account:
                self._unproven.pop(name, None)
                self._reasons.setdefault(name, reason)


def _reason(variant: str, number: int, error: TraceError) -> str:
    cure = _cure(error)
    return (
        f"stopped {variant!r}: {number} cells ended in the same error and none had an answer: {error_text(error)}"
        + (f". Most likely: {cure}" if cure else "")
        + ". `evalwright retry RUN` then runs these cells and the rest (--keep-going never stops)"
    )


_CURES: tuple[tuple[str, str], ...] = (
    (r"no answer: response_mapping|no answer: stream_", "correct the path so that it matches the reply"),
    (r"no answer: stdout", "print an object with 'final_answer', or leave out parse_stdout_as: json"),
    (r"nothing reads the key", "return the answer as final_answer, and other values below extra"),
    (r"the case has no ", "correct the name in the template, or give it a default"),
    (r"command not found|No such file|cannot start command", "write the full path of the program, or set PATH in env"),
    (r"ConnectError|[Cc]onnection (?:refused|failed)|connection", "start the service, or correct its address"),
    (r"no answer|allow_missing", "return text, or a mapping with final_answer"),
    (r"is not valid JSON|expected JSON", "check the address: the service there does not answer in JSON"),
)
_CURES_OF_STATUS = {
    400: "correct the request: request_template and body",
    401: "check the key that is sent (headers, api_key_env)",
    403: "check the key that is sent (headers, api_key_env), and what it allows",
    404: "correct the address or the model's name",
    405: "correct the method or the address",
    422: "correct the request: request_template and body",
    429: "lower run.max_concurrency, or raise the limit of the service",
}
_CURES_OF_TYPE = {
    "timeout": "raise timeout_seconds of the system, or find out why it hangs",
    "authentication": "check the key in the environment",
    "quota": "the account has no credit left",
    "no_backend": "name the system to call with --target",
}


def _cure(error: TraceError) -> str:
    """The most likely remedy; empty if none is known."""
    if isinstance(error.status, int) and error.status in _CURES_OF_STATUS:
        return _CURES_OF_STATUS[error.status]
    if error.stack is not None:
        place = re.search(r" in (\S+:\d+)$", error.message)
        return f"mend {place[1]}" if place else ""
    if error.type in _CURES_OF_TYPE:
        return _CURES_OF_TYPE[error.type]
    return next((cure for pattern, cure in _CURES if re.search(pattern, error.message)), "")
