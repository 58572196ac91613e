"""What plug-ins are made of: the interfaces, the records that pass through them, and the errors that they raise.

Names load when they are first used: an evaluator does not load what only formats need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalwright.errors import EvaluatorError, InputError, Problem, StorageError, TargetError
    from evalwright.formats.shared.output import Written
    from evalwright.formats.shims import serve
    from evalwright.model.artifact import Artifact, FilesystemArtifact
    from evalwright.model.case import EvalCase, ExpectedBehavior, ForeignCase
    from evalwright.model.chat import ChatMessage, ChatReply, ChatRequest
    from evalwright.model.format import EvaluatorEntry, Format, Judging, Option, Repository, entry
    from evalwright.model.import_result import ImportResult
    from evalwright.model.plan import EvaluatorSpec, PassCriteria, Plan, Plugin, RunSettings, Variant
    from evalwright.model.protocols import (
        Enricher,
        Evaluator,
        Export,
        Extractor,
        Importer,
        Mirror,
        Prepared,
        Report,
        RunReader,
        RunWriter,
        Store,
        Target,
        Workspace,
    )
    from evalwright.model.result import CaseVerdict, Evaluation, EvaluationResult
    from evalwright.model.snapshot import Case, Expected, snapshot
    from evalwright.model.suite import Suite
    from evalwright.model.summary import RunSummary
    from evalwright.model.trace import (
        Answer,
        Doubt,
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
    from evalwright.model.traits import Traits
    from evalwright.scoring.totals import Totals
    from evalwright.session.workspace import workspace_path

__all__ = [
    "Answer",
    "Artifact",
    "Case",
    "CaseVerdict",
    "ChatMessage",
    "ChatReply",
    "ChatRequest",
    "Doubt",
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
    "ImportResult",
    "Importer",
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
    "Repository",
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
    "Totals",
    "Trace",
    "TraceError",
    "TraceMessage",
    "Traits",
    "Variant",
    "Workspace",
    "Written",
    "entry",
    "serve",
    "snapshot",
    "workspace_path",
]

_PLACES = {
    "Answer": "model.trace",
    "Artifact": "model.artifact",
    "Case": "model.snapshot",
    "CaseVerdict": "model.result",
    "ChatMessage": "model.chat",
    "ChatReply": "model.chat",
    "ChatRequest": "model.chat",
    "Doubt": "model.trace",
    "Enricher": "model.protocols",
    "EvalCase": "model.case",
    "Evaluation": "model.result",
    "EvaluationResult": "model.result",
    "Evaluator": "model.protocols",
    "EvaluatorEntry": "model.format",
    "EvaluatorError": "errors",
    "EvaluatorSpec": "model.plan",
    "Expected": "model.snapshot",
    "ExpectedBehavior": "model.case",
    "Export": "model.protocols",
    "Extractor": "model.protocols",
    "FilesystemArtifact": "model.artifact",
    "ForeignCase": "model.case",
    "Format": "model.format",
    "ImportResult": "model.import_result",
    "Importer": "model.protocols",
    "InputError": "errors",
    "Judging": "model.format",
    "Metrics": "model.trace",
    "Mirror": "model.protocols",
    "Option": "model.format",
    "Output": "model.trace",
    "PassCriteria": "model.plan",
    "Plan": "model.plan",
    "Plugin": "model.plan",
    "Prepared": "model.protocols",
    "Problem": "errors",
    "Report": "model.protocols",
    "Repository": "model.format",
    "RunReader": "model.protocols",
    "RunSettings": "model.plan",
    "RunSummary": "model.summary",
    "RunWriter": "model.protocols",
    "Span": "model.trace",
    "SpanEvent": "model.trace",
    "StorageError": "errors",
    "Store": "model.protocols",
    "Suite": "model.suite",
    "Target": "model.protocols",
    "TargetError": "errors",
    "ToolCall": "model.trace",
    "ToolResult": "model.trace",
    "Totals": "scoring.totals",
    "Trace": "model.trace",
    "TraceError": "model.trace",
    "TraceMessage": "model.trace",
    "Traits": "model.traits",
    "Variant": "model.plan",
    "Workspace": "model.protocols",
    "Written": "formats.shared.output",
    "entry": "model.format",
    "serve": "formats.shims",
    "snapshot": "model.snapshot",
    "workspace_path": "session.workspace",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    loaded = globals()[name] = getattr(import_module(f"evalwright.{_PLACES[name]}"), name)
    return loaded


def __dir__() -> list[str]:
    return sorted(__all__)
