"""Outputs that promptfoo recorded, used instead of calls: `--cached results.json`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from evalwright.errors import InputError, Problem, TargetError
from evalwright.formats.promptfoo.calls import ProviderReply
from evalwright.formats.promptfoo.calls.replies import reply_in
from evalwright.formats.promptfoo.values import compact_json, recorded
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.model.trace import Answer

__all__ = ["RecordedResults", "known_by", "mark_replayed", "recorded_tests", "replaying", "test_key"]

_PROVIDER_FAILED = 2
_Row = Mapping[str, Any]


class RecordedResults:
    """The results of one column. Tests are matched by their variables and description, as repetitions have numbers of
    their own; tests that have both in common cannot be distinguished and are errors."""

    def __init__(self, path: Path, column: int, trials: int) -> None:
        self._name, self._trials = path.name, trials
        self._rows: dict[str, list[_Row]] = defaultdict(list)
        for row in sorted(_rows(path), key=lambda result: result.get("testIdx") or 0):
            if row.get("promptIdx", 0) == column:
                test = row.get("testCase") or {}
                self._rows[test_key(test.get("vars") or {}, test.get("description"))].append(row)

    def find(self, case: Case, trial: int) -> tuple[ProviderReply, int | None]:
        """The output and the latency in milliseconds of one cell. Raises TargetError."""
        from evalwright.importers.promptfoo_results import recorded_cost

        rows = self._rows.get(test_key(case.input, case.description), [])
        if len(rows) > self._trials:
            raise TargetError(f"{self._name} has {len(rows)} results for tests like this one", "not_recorded")
        if trial >= len(rows):
            raise TargetError(f"{self._name} has no result for this test", "not_recorded")
        row = rows[trial]
        response = row.get("response") or {}
        if row.get("failureReason") == _PROVIDER_FAILED and "output" not in response:
            raise TargetError(str(row.get("error") or "the provider failed"), "recorded_error")
        reply = reply_in({**response, "cost": recorded_cost(row), "error": None})
        took = row.get("latencyMs")
        return reply, int(took) if isinstance(took, (int, float)) else None


def mark_replayed(answer: Answer, latency_ms: int | None) -> None:
    """Give an answer from the recording its latency."""
    answer.started_at = datetime.now(UTC)
    answer.finished_at = answer.started_at + timedelta(milliseconds=latency_ms or 0)
    answer.latency_ms = latency_ms
    answer.extra["source"] = "replay"


def replaying(variants: Sequence[Variant], numbers: Sequence[int], path: Path, trials: int) -> list[Variant]:
    """The columns with the outputs that promptfoo recorded for each. Raises InputError if the file has none for a
    column.

    `numbers` are their numbers among all columns of the configuration: a file from a run without filters has all of
    them.
    """
    recorded = {row.get("promptIdx", 0) for row in _rows(path)}
    places = range(len(numbers)) if recorded <= {*range(len(numbers))} else numbers
    place = {"path": str(path.absolute()), "trials": trials}
    return [
        msgspec.structs.replace(variant, config={**variant.config, "cached": {**place, "column": number}})
        for variant, number in zip(variants, places, strict=True)
    ]


def _rows(path: Path) -> list[_Row]:
    from evalwright.importers.promptfoo_results import result_document
    from evalwright.importers.sources import Mistakes

    mistakes = Mistakes()
    document = result_document(path, mistakes)
    mistakes.check()
    results = document.get("results") if isinstance(document, dict) else None
    rows = results.get("results") if isinstance(results, dict) else results
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(Problem(str(path), "expected results.results, a list of results of promptfoo"))
    return rows


def recorded_tests(path: Path) -> Iterator[tuple[str, _Row]]:
    """The test of each result, in the form of `test_key`, and the result. Raises InputError."""
    for row in _rows(path):
        test = row.get("testCase") or {}
        yield test_key(test.get("vars") or {}, test.get("description")), row


def known_by(case: Case) -> str:
    """The same for a case of a run; an imported case has its description in its metadata."""
    return test_key(case.input, case.description or case.metadata.get("description"))


def test_key(variables: Any, description: Any) -> str:
    """What identifies a test in result files."""
    known = variables if isinstance(variables, dict) else {}
    return compact_json([sorted(recorded(known).items()), str(description or "")])
