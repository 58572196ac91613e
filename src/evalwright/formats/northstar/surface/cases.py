"""Cases as their authors write them."""

from __future__ import annotations

from evalwright.formats.northstar.authored import EvalCase, EvalMetrics
from evalwright.model.conversation_case import ConversationExpectation as EvalExpected
from evalwright.model.conversation_case import ExpectedStateTransition, ExpectedToolArguments
from evalwright.model.conversation_case import TraceExpectation as TraceExpected

__all__ = [
    "EvalCase",
    "EvalExpected",
    "EvalMetrics",
    "ExpectedStateTransition",
    "ExpectedToolArguments",
    "TraceExpected",
]
