"""Records what the tests of one process judge. Importing it costs nothing: most test sessions judge nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec

if TYPE_CHECKING:
    from evalwright.formats.pixie.observer import Note
    from evalwright.model.snapshot import Case
    from evalwright.pytest_runs.spool import Spool, SpoolRecord

__all__ = ["Recorder"]

P = ParamSpec("P")
_MOST_FAILURES = 5


class _Test:
    """The test that is running."""

    def __init__(self, name: str, case: Case | None) -> None:
        self.name, self.case = name, case
        self.started = datetime.now(UTC)
        self.cells = 0
        self.statuses: dict[int, str] = {}
        self.notes: dict[int, list[Note]] = {}
        self.raised: list[BaseException | None] = []
        self.failed = False
        """Whether some check gave a verdict that is not a pass."""

    def next_cell(self) -> int:
        self.cells += 1
        return self.cells

    def id_of(self, position: int) -> str:
        return self.name if position == 1 else f"{self.name}/{position}"

    def position_of(self, note: Note) -> int | None:
        """The cell that already has a note about the same thing."""
        for position, notes in self.notes.items():
            if note.evaluable is not None and any(note.evaluable is other.evaluable for other in notes):
                return position
        return None


def _harmless(method: Callable[Concatenate[Recorder, P], None]) -> Callable[Concatenate[Recorder, P], None]:
    """A failure to record must not change how a test ends; it is reported at the end of the session."""

    @wraps(method)
    def careful(recorder: Recorder, /, *arguments: P.args, **keywords: P.kwargs) -> None:
        try:
            method(recorder, *arguments, **keywords)
        except Exception as error:
            recorder.note_failure(f"{type(error).__name__}: {error}")

    return careful


class Recorder:
    """Writes a line for every cell, at its beginning and at its end, to the spool of this process.

    A cell has its test's name; further ones of the same test end with `/2`, `/3` and so on.
    """

    def __init__(self, folder: Path, process: str, root: Path) -> None:
        self._folder, self._process, self._root = folder, process, root
        self._spool: Spool | None = None
        self._lock = threading.RLock()
        self._test = _Test("(outside of tests)", None)
        self.failures: list[str] = []
        """The first things that could not be recorded, and why."""

    @_harmless
    def start(self, name: str, case: Case | None, secrets: dict[str, str] | None = None) -> None:
        """A test begins, possibly for a case of a dataset, which is then a cell, whatever the test does."""
        self._test = _Test(name, case)
        if case is not None:
            import msgspec

            from evalwright.pytest_runs.cells import begun

            self._open_spool().hide(secrets or {})
            case.id, case.occurrence = name, msgspec.UNSET
            self._append(begun(name, 1, case))

    @_harmless
    def begin(self, note: Note) -> None:
        """An input is about to be judged."""
        from evalwright.files.plain import plain
        from evalwright.model.snapshot import Case
        from evalwright.pytest_runs.cells import begun

        test = self._test
        with self._lock:
            position = test.position_of(note)
            if position is None:
                position = test.next_cell()
                case = Case(test.id_of(position), plain(note.given, "input", []))
                self._append(begun(test.name, position, case))
            test.notes.setdefault(position, []).append(note)

    @_harmless
    def end(self, note: Note) -> None:
        """An input was judged; what is judged several times is one cell."""
        from evalwright.pytest_runs.cells import of_notes

        test = self._test
        with self._lock:
            position = next((number for number, notes in test.notes.items() if note in notes), None)
            if position is None:  # its test is over
                return
            done = [note for note in test.notes[position] if note.finished_at is not None]
            test.raised += [note.error, *(outcome for outcome in note.outcomes if isinstance(outcome, BaseException))]
            self._keep(of_notes(test.name, position, test.id_of(position), done))

    @_harmless
    def keep(self, records: Sequence[SpoolRecord]) -> None:
        """Record cells of the test that were judged as in a run; their ids are set here."""
        from msgspec import UNSET

        from evalwright.pytest_runs.spool import parts_of

        test = self._test
        with self._lock:
            for record in records:
                position = test.next_cell()
                record.test, record.position = test.name, position
                name = test.id_of(position)
                record.case.id, record.case.occurrence = name, UNSET
                for row in parts_of(record):
                    row.case_id, row.occurrence = name, UNSET
                self._keep(record)

    @_harmless
    def finish(self, error: BaseException | None, status: str) -> None:
        """The test is over: `status` is passed, failed, error or skipped.

        If that says less than its cells do, or if its case has no cell yet, it becomes a cell of its own.
        """
        test = self._test
        sound = set(test.statuses.values()) <= {"pass", "skip"}
        if (test.case is not None and not test.cells) or (test.statuses and sound and status in ("failed", "error")):
            import msgspec

            from evalwright.model.snapshot import Case
            from evalwright.pytest_runs.cells import of_outcome

            position = test.next_cell()
            name = test.id_of(position)
            case = test.case if test.case is not None else Case(name, None)
            case = msgspec.structs.replace(case, id=name)
            self._keep(of_outcome(test.name, position, case, test.started, status, error))

    def is_error(self, error: BaseException) -> bool:
        """Whether a test ended with `error` because something could not be judged."""
        test = self._test
        if any(error is raised for raised in test.raised):
            return True
        unmet = type(error).__name__ == "EvalAssertionError"
        return unmet and "error" in test.statuses.values() and not test.failed

    def _keep(self, record: SpoolRecord) -> None:
        test = self._test
        test.statuses[record.position] = record.verdict.status
        test.failed |= any(not (row.passed or row.skipped or row.error) for row in record.results)
        self._append(record)

    def _append(self, record: SpoolRecord) -> None:
        record.test_started_at = self._test.started
        self._open_spool().append(record)

    def note_failure(self, failure: str) -> None:
        """Something about the running test could not be recorded."""
        if len(self.failures) < _MOST_FAILURES:
            self.failures.append(f"{self._test.name}: {failure}")

    def _open_spool(self) -> Spool:
        if self._spool is None:
            from evalwright.pytest_runs.collection import session_plan
            from evalwright.pytest_runs.spool import Spool
            from evalwright.stores.documents import reserved_words

            words = reserved_words(session_plan(self._root, datetime.now(UTC)))
            self._spool = Spool(self._folder, self._process, words)
        return self._spool

    def close(self) -> None:
        if self._spool is not None:
            self._spool.close()
