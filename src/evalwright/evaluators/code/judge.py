"""A judge that is a program: one JSON object on stdin, one on stdout (AgentEvals 1.0, `code_judge`)."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

from evalwright.errors import EvaluatorError, Problem
from evalwright.evaluators.combined.banded import banded
from evalwright.evaluators.limits.execution import used_by
from evalwright.evaluators.tools.calls import TracedCall, calls_of, messages_of
from evalwright.files.temporary import temporary_folder
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case
from evalwright.model.trace import Trace
from evalwright.processes import OUTPUT_LIMIT, Finished, run_command
from evalwright.session import environment

__all__ = ["CodeJudge", "Reply", "asked", "script_of", "trace_summary"]

_ALWAYS = ("PATH", "LANG")
_TOLD = 200
"""Characters of unreadable output in the reason."""
_LAST = 2000
"""Characters of each stream in the message."""


class Reply(NamedTuple):
    """The program's reply. If it could not be read, the score is 0 and the reasoning says why."""

    score: float
    hits: list[str]
    misses: list[str]
    reasoning: str
    details: dict[str, Any]
    verdict: str | None


class CodeJudge(msgspec.Struct, frozen=True):
    """Score, hits and misses from the command `script`: a list, run without a shell, or a string for `sh`."""

    script: Annotated[list[str], msgspec.Meta(min_length=1)] | Annotated[str, msgspec.Meta(min_length=1)]
    cwd: str = "."
    config: dict[str, Any] | None = None
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0)] = 120.0
    env: list[str] = []
    """Variables of the environment that the program gets, beside PATH, LANG and an empty folder as HOME."""

    @staticmethod
    def config_problems(values: dict[str, Any]) -> list[Problem]:
        script = values.get("script")
        if isinstance(script, list) and not all(isinstance(word, str) and word.strip() for word in script):
            return [Problem("", "'script' must have no blank entries", key="script")]
        return []

    async def evaluate(self, case: Case, trace: Trace) -> Evaluation:
        document = _both_cases(_document(case, trace, self.config))
        extra = {"AGENTV_WORKSPACE_PATH": path} if (path := _workspace(trace)) else {}
        limit = case.extra.get("timeout_seconds") or self.timeout_seconds
        try:
            async with asyncio.timeout(limit):
                reply = await asked(script_of(self.script), self.cwd, document, extra, self.env)
        except TimeoutError:
            raise EvaluatorError(f"the code judge timed out after {limit:g} seconds", "timeout") from None
        return banded(reply.score, reply.hits, reply.misses, reply.reasoning, detail=reply.details)


def script_of(script: Sequence[str] | str) -> list[str]:
    """The command as a list; a string is run by the shell."""
    return ["sh", "-lc", script] if isinstance(script, str) else list(script)


async def asked(
    command: Sequence[str],
    cwd: str,
    document: Mapping[str, Any],
    extra: Mapping[str, str] = {},
    env: Collection[str] = (),
) -> Reply:
    """The program's reply. `env` names the variables that it gets; `extra` are further ones.

    Raises EvaluatorError if one is not set, and if the program cannot be started or exits with a code other than 0.
    """
    stdin = json.dumps(document, ensure_ascii=False).encode(errors="replace")
    with temporary_folder() as home:
        given = {**_allowed(env), "HOME": str(home), **extra}
        try:
            finished = await run_command(command, env=given, cwd=cwd, stdin=stdin, output_limit=OUTPUT_LIMIT)
        except OSError as error:
            message = f"{command[0]!r} cannot be started: {error.strerror or error}"
            raise EvaluatorError(message, "not_started") from None
    if finished.exit_code != 0:
        raise EvaluatorError(f"the code judge ended with {finished.how()}: {_said(finished)}", "exit_code")
    return _read(finished.stdout.kept.decode(errors="replace").strip())


def _said(finished: Finished) -> str:
    """The end of both streams: libraries tell their mistakes on either."""
    last = [stream.last.decode(errors="replace")[-_LAST:].strip() for stream in (finished.stderr, finished.stdout)]
    return "; ".join(filter(None, [last[0], last[1] and f"standard output: {last[1]}"]))


def _allowed(names: Collection[str]) -> dict[str, str]:
    known = environment()
    if missing := [name for name in names if name not in known]:
        raise EvaluatorError(f"'env' names variables that are not set: {', '.join(missing)}", "env_missing")
    return {name: known[name] for name in (*_ALWAYS, *names) if name in known}


def _read(text: str) -> Reply:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return _unreadable("is no JSON", text)
    if not isinstance(said, dict):
        return _unreadable("is no JSON object", text)
    score = said.get("score")
    if isinstance(score, bool) or not isinstance(score, (int, float)) or not math.isfinite(score):
        return _unreadable("has no number as 'score'", text)._replace(hits=_texts(said.get("hits")))
    reasoning, details, verdict = said.get("reasoning"), said.get("details"), said.get("verdict")
    return Reply(
        score,
        _texts(said.get("hits")),
        _texts(said.get("misses")),
        reasoning if isinstance(reasoning, str) else "",
        {"details": details} if isinstance(details, dict) else {},
        verdict if verdict in ("pass", "borderline", "fail") else None,
    )


def _unreadable(what: str, text: str) -> Reply:
    return Reply(0.0, [], [], f"the output of the code judge {what}: {text[:_TOLD]!r}", {}, None)


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str) and text.strip()] if isinstance(value, list) else []


def _document(case: Case, trace: Trace, config: Mapping[str, Any] | None) -> dict[str, Any]:
    extra = case.extra
    document = {
        "question": extra.get("question", case.input if isinstance(case.input, str) else ""),
        "expected_outcome": extra.get("expected_outcome", ""),
        "expected_messages": extra.get("expected_messages", []),
        "reference_answer": extra.get("reference_answer", ""),
        "candidate_answer": trace.output.final_answer or "",
        "output_messages": messages_of(trace) or None,
        "guideline_files": extra.get("guideline_files", []),
        "input_files": extra.get("input_files", []),
        "input_messages": extra.get("input_messages", []),
        "trace_summary": trace_summary(trace),
        "file_changes": trace.extra.get("file_changes"),
        "workspace_path": _workspace(trace),
        "note": case.note,
        "case_id": case.id,
        "metadata": case.metadata,
        "conversation_id": case.group,
    }
    # Judges look `config` up whether there is one or not; whatever else is not known AgentV's SDK wants left out.
    return {**_known(document), "config": dict(config) if config else None}


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _workspace(trace: Trace) -> str | None:
    """The folder in which the system worked; it is gone once the run is over."""
    path = trace.extra.get("workspace_path")
    return path if isinstance(path, str) and Path(path).is_dir() else None


def _both_cases(document: dict[str, Any]) -> dict[str, Any]:
    """The top-level keys in camel case as well: pages of AgentEvals 1.0 have those. Nested keys are the user's."""
    camel = {}
    for key, value in document.items():
        first, *rest = key.split("_")
        if rest:
            camel[first + "".join(word.capitalize() for word in rest)] = value
    return {**document, **camel}


def trace_summary(trace: Trace) -> dict[str, Any] | None:
    """AgentV's summary of a trace: calls by tool, tokens, US dollars, milliseconds, each where it was measured.

    None if the trace has no messages.
    """
    messages = messages_of(trace)
    if not messages:
        return None
    calls, used = calls_of(trace), used_by(trace)
    counted = used.input is not None and used.output is not None
    usage = _known({"input": used.input, "output": used.output, "cached": used.cached}) if counted else None
    summary = {
        "event_count": len(calls),
        "tool_names": sorted({call.name for call in calls}),
        "tool_calls_by_name": dict(Counter(call.name for call in calls)),
        "error_count": 0,
        "llm_call_count": sum(message.get("role") == "assistant" for message in messages),
        "token_usage": usage,
        "cost_usd": used.cost_usd,
        "duration_ms": used.duration_ms,
        "start_time": trace.started_at.isoformat(),
        "end_time": trace.finished_at.isoformat(),
        "tool_durations": _durations(calls),
    }
    return _known(summary)


def _durations(calls: Sequence[TracedCall]) -> dict[str, list[float]]:
    durations: dict[str, list[float]] = {}
    for call in calls:
        if call.duration_ms is not None:
            durations.setdefault(call.name, []).append(call.duration_ms)
    return durations
