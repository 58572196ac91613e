"""A recorded trace as the answer: evaluates what has already happened and calls nothing. Target `replay`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from evalwright.errors import TargetError, counted
from evalwright.model.plan import Variant
from evalwright.model.recordings import recorded_of
from evalwright.model.snapshot import Case
from evalwright.model.trace import UNDATED, Answer, Trace

__all__ = ["Replay"]

_NONE = timedelta()


class Replay:
    """Answers with the case's recorded trace, including its input, times and metrics; trial k replays recording k.

    With `variant`, only recordings of the system with that name count.
    """

    config_keys: tuple[str, ...] = ("variant",)

    def __init__(self, variant: Variant) -> None:
        self._of = variant.config.get("variant")

    async def run(self, case: Case, trial: int) -> Answer:
        recordings = [recording for recording in _recordings(case) if self._of in (None, recording.variant_name)]
        if trial >= len(recordings):
            whose = "" if self._of is None else f" of {self._of!r}"
            known = counted(len(recordings), "recorded trial")
            raise TargetError(f"case {case.id!r} has {known}{whose}, none for trial {trial + 1}")
        trace = recordings[trial]
        shift = _NONE if trace.started_at != UNDATED else datetime.now(UTC) - UNDATED
        replayed_from = {
            "platform": trace.extra.get("source"),
            "trace_id": trace.extra.get("trace_id"),
            "fetched_at": trace.extra.get("fetched_at"),
        }
        return Answer(
            output=trace.output,
            messages=trace.messages,
            tool_calls=trace.tool_calls,
            tool_results=trace.tool_results,
            metrics=trace.metrics,
            error=trace.error,
            extra={**trace.extra, "source": "replay", "replayed_from": replayed_from},
            started_at=trace.started_at + shift,
            finished_at=trace.finished_at + shift,
            latency_ms=trace.latency_ms,
            spans=trace.spans,
            input=trace.input,
        )


def _recordings(case: Case) -> list[Trace]:
    recorded = recorded_of(case)
    if recorded is None:
        instead = "to call a system instead, name it in place of `adapter: replay`"
        fixtures = "a fixture's traces are read with embed_full_trace: true"
        raise TargetError(f"case {case.id!r} has no recording to replay; {instead} ({fixtures})")
    return recorded if isinstance(recorded, list) else [recorded]
