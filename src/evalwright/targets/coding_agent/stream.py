"""What an agent prints, line by line as it arrives, and the answer in it.

The whole stream is written to a file. Lines that are records also go to another file, which the reader of that format
turns into a trace: it has everything that was printed before the agent broke off or was stopped. A line of another
kind, such as a warning, is merely left out; without a record that is too large to be kept, the cell is an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import msgspec

from evalwright.errors import InputError, counted
from evalwright.files.masker import Masker
from evalwright.importers.imported_records import Imported, ImportFindings
from evalwright.importers.record_values import RECORDING_DEPTH, too_deep
from evalwright.model.trace import Answer, Doubt, Output, Trace, TraceError, TraceMessage
from evalwright.registry import load
from evalwright.targets.coding_agent.joined_sessions import joined_trace
from evalwright.targets.coding_agent.programs import Program

__all__ = ["TEXT", "AgentStream"]

TEXT = "text"
"""The output of a program whose stdout is its answer."""
_MOST_BYTES = 256 * 2**20
"""Bytes of a stream that are kept; the rest is only counted."""
_LONGEST_LINE = 64 * 2**20
_LONGEST_TEXT = 10 * 2**20
"""Bytes of an answer that is plain text."""
_FEW = 3


class AgentStream:
    """The stdout of one call. `feed` gets it in pieces of any size; leave the block before reading the answer."""

    def __init__(self, folder: Path, program: Program, masker: Masker) -> None:
        self.raw: Path = folder / "stream.jsonl"
        """The whole stream, without secrets."""
        self.ended: bool = False
        """Whether the agent reported its end, and did nothing afterwards."""
        self.error_words: set[str] = set()
        """The words that its records use for errors."""
        self.empty: bool = True
        """Whether it has no records so far."""
        self._records = folder / "records.jsonl"
        self._program, self._masker = program, masker
        self._size, self._line, self._odd = 0, bytearray(), 0
        self._odd_lines: list[str] = []
        self._warnings: list[str] = []
        self._lost = ""
        """A record that could not be kept: what the agent did then is unknown."""
        self._files: list[BinaryIO] = []

    def __enter__(self) -> AgentStream:
        self._files = [path.open("wb") for path in (self.raw, self._records)]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._line:
            self._end_line(b"")
        for file in self._files:
            with suppress(OSError):
                file.close()

    def feed(self, chunk: bytes) -> None:
        """Take the next piece of the stream."""
        room = max(0, _MOST_BYTES - self._size)
        self._size += len(chunk)
        if len(chunk) > room:
            self._warn(f"only the first {_MOST_BYTES:,} bytes of the stream were read")
            chunk = chunk[:room]
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            self._add(piece)
            self._end_line(b"\n")
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        self._line += piece[: max(0, _LONGEST_LINE + 1 - len(self._line))]

    def _write(self, file: int, data: bytes) -> None:
        try:
            self._files[file].write(data)
        except OSError as error:
            self._warn(f"the stream could not be kept: {error.strerror or error}")

    def _end_line(self, end: bytes) -> None:
        line = bytes(self._line)
        self._line.clear()
        if len(line) > _LONGEST_LINE:
            self._lost = f"a line of more than {_LONGEST_LINE:,} bytes"
            self._warn(f"{self._lost} was left out")
            return
        value = self._value(line)
        if isinstance(value, dict):
            kind = value.get("type")
            if isinstance(kind, str):
                self.ended = kind in self._program.ends or (self.ended and kind not in self._program.works)
            if isinstance(value.get("error"), str):
                self.error_words.add(value["error"])
            line = self._masker.mask_bytes(line)
            self._write(1, line + b"\n")
            self.empty = False
        elif line.strip():
            self._odd += 1
            line = self._masked(line)
            if len(self._odd_lines) < _FEW:
                self._odd_lines.append(line.decode(errors="replace").strip()[:200])
        self._write(0, line + end)

    def _value(self, line: bytes) -> Any:
        """The value of a line; None if it is none that can be kept."""
        try:
            value = msgspec.json.decode(line)
            if not too_deep(value):
                return value
        except ValueError:
            return None
        except RecursionError:
            pass
        if line.lstrip().startswith(b"{"):
            self._lost = f"a record of more than {RECORDING_DEPTH} levels"
        return None

    def _masked(self, line: bytes) -> bytes:
        text = line.decode(errors="surrogateescape")
        masked = self._masker.mask_text(text)
        return line if masked == text else masked.encode(errors="surrogateescape")

    def _warn(self, warning: str) -> None:
        if warning not in self._warnings:
            self._warnings.append(warning)

    @property
    def odd(self) -> str:
        """The first lines that were not records."""
        return "\n".join(self._odd_lines)

    def answer(self, output: str, prompt: str) -> Answer:
        """What was said, read by the format `output`; with an error if it cannot be read."""
        if output == TEXT:
            return self._text()
        answer = self._with_warnings(Answer()) if self.empty else self._read(output, prompt)
        if self._lost and answer.error is None:
            answer.error = TraceError("agent_error", f"what the agent did is not known: {self._lost} was left out")
        return answer

    def _text(self) -> Answer:
        with self.raw.open("rb") as file:
            data = file.read(_LONGEST_TEXT)
        text = data.decode(errors="replace").rstrip("\r\n")
        if self._size > len(data):
            self._warn(f"only the first {len(data):,} bytes of the answer were kept")
        return self._with_warnings(Answer(Output(text)))

    def _read(self, output: str, prompt: str) -> Answer:
        findings = ImportFindings()
        try:
            imports: list[Imported] = [*load("importers", output).read([self._records], findings)]
            findings.mistakes.check()
        except InputError as error:
            message = "; ".join(problem.message for problem in error.problems) or error.headline
            why = f"what the agent printed cannot be read as {output}: {message}"
            return self._with_warnings(Answer(error=TraceError("agent_error", why)))
        if self._odd:
            shown = "; ".join(json.dumps(line) for line in self._odd_lines)
            self._warn(f"{counted(self._odd, 'line')} of its output left out: no JSON object: {shown}")
        notes = [self._about_record(note) for note in findings.notes.lines()]
        for note in notes:
            self._warn(note)
        try:
            trace, warnings = joined_trace(imports)
        except ValueError:
            return self._with_warnings(Answer(error=TraceError("agent_error", "the agent printed no messages")))
        for warning in warnings:
            self._warn(warning)
        messages = trace.messages
        if not messages or messages[0].role != "user":
            messages = [TraceMessage("user", prompt), *messages]
        answer = Answer(trace.output, messages, trace.tool_calls, trace.tool_results, trace.metrics, trace.error)
        answer.spans, answer.extra = trace.spans, trace.extra
        answer.doubts = tuple(self._doubts(trace, notes))
        return self._with_warnings(answer)

    def _about_record(self, note: str) -> str:
        """A note of the reader without the name of our file, which is gone."""
        name = self._records.name
        return note.removeprefix(f"{name}: ").replace(f"{name}:", "record ", 1)

    def _doubts(self, trace: Trace, notes: Sequence[str]) -> Iterator[Doubt]:
        """What evaluators cannot see: a limit that ended the work, and what the agent itself or its reader warns of."""
        if "stopped" in trace.extra:
            yield Doubt(f"the limit {trace.extra['stopped']} ended the work")
        if notes:
            yield Doubt("the agent's output has warnings", self._masker.mask_text(notes[0]))

    def _with_warnings(self, answer: Answer) -> Answer:
        if self._warnings:
            answer.extra["warnings"] = [self._masker.mask_text(warning) for warning in self._warnings]
        return answer
