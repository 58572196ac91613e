"""Reading transcripts and results, beside msgspec's typed decoding of the same bytes.

    python benchmarks/importers.py [MIB]

Goal: at least a third of the speed of decoding alone, for formats that are JSON Lines, and memory that does not grow
with the file beyond its largest record, which is a session; a rollout of Codex is one. Reading is from the bytes to the
recordings, without writing them. Speeds are of CPU seconds, in turns, the best of three; memory is that of the whole
command on a file of MIB and on one four times as large.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from measuring import measure

from evalwright.importers.imported_records import ImportFindings
from evalwright.registry import load

ROUNDS, GOAL = 3, 1 / 3
TEXT = "The build fails because a semicolon is missing in line seven of the file. " * 8


class Message(msgspec.Struct):
    role: str = ""
    id: str | None = None
    content: Any = None
    usage: dict[str, int] | None = None


class Line(msgspec.Struct):
    type: str = ""
    uuid: str = ""
    parentUuid: str | None = None
    sessionId: str = ""
    timestamp: str = ""
    message: Message | None = None
    payload: dict[str, Any] | None = None
    doc_id: int | None = None
    doc: dict[str, Any] | None = None
    target: str = ""
    arguments: dict[str, dict[str, Any]] | None = None
    resps: list[list[str]] | None = None
    filtered_resps: list[str] | None = None
    filter: str = ""
    metrics: list[str] | None = None


def claude(size: int) -> Iterator[dict[str, Any]]:
    """Sessions of 20 turns with a call each."""
    for i in range(size):
        session, turn = divmod(i, 60)
        kind = ("user", "assistant", "user")[turn % 3]
        call = {"type": "tool_use", "id": f"t{i}", "name": "Bash", "input": {"command": TEXT}}
        back = {"type": "tool_result", "tool_use_id": f"t{i - 1}", "content": TEXT}
        content = ([{"type": "text", "text": TEXT}], [{"type": "text", "text": TEXT}, call], [back])[turn % 3]
        message: dict[str, Any] = {"role": kind, "content": content}
        if kind == "assistant":
            message |= {"id": f"m{i}", "usage": {"input_tokens": 900, "output_tokens": 20}}
        yield {
            "type": kind, "uuid": f"u{i}", "parentUuid": f"u{i - 1}" if turn else None, "sessionId": f"s{session}",
            "timestamp": "2026-03-04T09:00:00.000Z", "message": message,
        }  # fmt: skip


def codex(size: int) -> Iterator[dict[str, Any]]:
    """One long rollout."""
    at = "2026-03-04T09:00:00.000Z"
    yield {"timestamp": at, "type": "session_meta", "payload": {"id": "r"}}
    for i in range(size):
        call = {"type": "function_call", "name": "sh", "arguments": json.dumps({"command": TEXT}), "call_id": f"c{i}"}
        back = {"type": "function_call_output", "call_id": f"c{i - 1}", "output": TEXT}
        yield {"timestamp": at, "type": "response_item", "payload": (call, back)[i % 2]}


def harness(size: int) -> Iterator[dict[str, Any]]:
    """Samples of the lm-evaluation-harness."""
    for i in range(size):
        yield {
            "doc_id": i, "doc": {"question": TEXT, "answer": "42"}, "target": "42",
            "arguments": {"gen_args_0": {"arg_0": TEXT, "arg_1": {"until": ["\n"]}}}, "resps": [[TEXT]],
            "filtered_resps": ["42"], "filter": "strict", "metrics": ["exact_match"], "exact_match": 1.0,
        }  # fmt: skip


FORMATS = {"claude-code": claude, "codex": codex, "lm-eval": harness}


def written(path: Path, name: str, mib: float) -> Path:
    size = len(json.dumps(list(FORMATS[name](60)))) / 60
    with path.open("w") as file:
        file.writelines(json.dumps(suite_format) + "\n" for suite_format in FORMATS[name](int(mib * 2**20 / size)))
    return path


def decoding(path: Path) -> float:
    start, decode = time.process_time(), msgspec.json.Decoder(Line).decode
    with path.open("rb") as file:
        for line in file:
            decode(line)
    return time.process_time() - start


def reading(path: Path, name: str) -> float:
    start, findings = time.process_time(), ImportFindings(may_start_over=True)
    for _ in load("importers", name).read([path], findings):
        pass
    findings.mistakes.check()
    return time.process_time() - start


def peak(path: Path, folder: Path) -> float:
    cost = measure([sys.executable, "-m", "evalwright", "import", str(path), "--out", str(folder)])
    if cost.status:
        sys.exit(cost.errors)
    return cost.peak


def main() -> None:
    mib = float(sys.argv[1]) if len(sys.argv) > 1 else 32.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for form in FORMATS:
            small = written(folder / f"{form}.jsonl", form, mib)
            pairs = [(decoding(small), reading(small, form)) for _ in range(ROUNDS)]
            alone, read = (min(one) for one in zip(*pairs, strict=True))
            text = "ok" if alone / read >= GOAL else "MISSED"
            print(f"{form:12} {mib / read:6.0f} MiB/s, decoding {mib / alone:6.0f}: {alone / read:.2f} of it, {text}")
            large = written(folder / f"{form}-large.jsonl", form, 4 * mib)
            figures = peak(small, folder / f"{form}-a"), peak(large, folder / f"{form}-b")
            print(f"{'':12} memory {figures[0]:5.0f} and {figures[1]:5.0f} MiB for {mib:.0f} and {4 * mib:.0f} MiB")


if __name__ == "__main__":
    main()
