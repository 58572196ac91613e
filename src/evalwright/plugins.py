"""What plug-ins are made of: the seams, the records that pass through them, and the errors that they raise."""

from __future__ import annotations

from evalwright.errors import EvaluatorError, InputError, Problem, StorageError, TargetError
from evalwright.model.artifact import Artifact, FilesystemArtifact
from evalwright.model.case import EvalCase, ExpectedBehavior, ForeignCase
from evalwright.model.chat import ChatMessage, ChatReply, ChatRequest
from evalwright.model.entry import EvaluatorEntry, entry
from evalwright.model.format import Format, Judging, Option
from evalwright.model.plan import EvaluatorSpec, PassCriteria, Plan, Plugin, RunSettings, Variant
from evalwright.model.protocols import (
    Enricher,
    Evaluator,
    Export,
    Extractor,
    Mirror,
    Prepared,
    Report,
    RunReader,
    RunWriter,
    Store,
    Target,
    Traits,
    Workspace,
)
from evalwright.model.result import CaseVerdict, Evaluation, EvaluationResult
from evalwright.model.snapshot import Case, Expected, snapshot
from evalwright.model.suite import Suite
from evalwright.model.summary import RunSummary
from evalwright.model.trace import (
    Answer,
    Metrics,
    Output,
    Span,
    SpanEvent,
    ToolCall,
    ToolResult,
    Trace,
    TraceError,
    TraceMessage,
)
from evalwright.session.workspace import workspace_path

__all__ = [
    "Answer",
    "Artifact",
    "Case",
    "CaseVerdict",
    "ChatMessage",
    "ChatReply",
    "ChatRequest",
    "Enricher",
    "EvalCase",
    "Evaluation",
    "EvaluationResult",
    "Evaluator",
    "EvaluatorEntry",
    "EvaluatorError",
    "EvaluatorSpec",
    "Expected",
    "ExpectedBehavior",
    "Export",
    "Extractor",
    "FilesystemArtifact",
    "ForeignCase",
    "Format",
    "InputError",
    "Judging",
    "Metrics",
    "Mirror",
    "Option",
    "Output",
    "PassCriteria",
    "Plan",
    "Plugin",
    "Prepared",
    "Problem",
    "Report",
    "RunReader",
    "RunSettings",
    "RunSummary",
    "RunWriter",
    "Span",
    "SpanEvent",
    "StorageError",
    "Store",
    "Suite",
    "Target",
    "TargetError",
    "ToolCall",
    "ToolResult",
    "Trace",
    "TraceError",
    "TraceMessage",
    "Traits",
    "Variant",
    "Workspace",
    "entry",
    "snapshot",
    "workspace_path",
]
