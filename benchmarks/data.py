"""Seeded data for the benchmarks, with the number of passes that a correct program must count.

The same number of records always gives the same bytes. A file is made once and kept for later runs.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

__all__ = [
    "CASE_CHECKS",
    "TRACE_CHECKS",
    "Records",
    "case_file",
    "cases",
    "judged_traces",
    "trace_file",
    "true_counts",
]

SEED = 8_191
WORDS = [
    start + end for start in ("bra", "cle", "do", "fi", "gru", "la", "mo", "ne") for end in ("dle", "k", "rn", "ter")
]
TOOLS = ("find_item", "list_stock", "reserve", "ship", "notify")
NEEDED, PROMISED, FORBIDDEN, LIMIT_MS, MOST_CALLS = "find_item", "delivered", "apology", 4_000, 4

CASE_CHECKS: list[dict[str, Any]] = [
    {
        "name": "exact",
        "type": "exact_match",
        "config": {"field": "output.final_answer", "expected_from": "answer"},
    },
    {"name": "includes", "type": "contains_text"},
    {"name": "avoids", "type": "contains_text", "config": {"all_of": [], "none_of": [FORBIDDEN]}},
]
"""Three deterministic checks of an answer."""

TRACE_CHECKS: list[dict[str, Any]] = [
    {"name": "tool", "type": "tool_called", "config": {"tool_name": NEEDED}},
    {"name": "promise", "type": "contains_text", "config": {"all_of": [PROMISED]}},
    {"name": "avoids", "type": "contains_text", "config": {"none_of": [FORBIDDEN]}},
    {"name": "latency", "type": "latency_under", "config": {"max_ms": LIMIT_MS}},
    {
        "name": "few_calls",
        "type": "tool_called",
        "config": {"tool_name": "notify", "min_calls": 0, "max_calls": 1},
    },
]
"""Five deterministic checks of a stored trace."""

Record = tuple[dict[str, Any], dict[str, bool]]
"""A record and which checks it passes."""
Records = Callable[[int], Iterator[Record]]


def _sentence(rng: random.Random, words: int) -> str:
    return " ".join(f"{rng.choice(WORDS)} the {rng.choice(WORDS)}" for _ in range(words))


def cases(count: int) -> Iterator[Record]:
    """Cases for a target that echoes its prompt, and which checks pass."""
    rng = random.Random(SEED)
    for number in range(count):
        prompt = _sentence(rng, rng.randint(5, 10))
        equal, includes, avoids = rng.random() < 0.9, rng.random() < 0.8, rng.random() < 0.95
        if not avoids:
            prompt += f" with an {FORBIDDEN}"
        wanted = prompt.split()[-1] if includes else "zebra"
        case = {
            "id": f"c{number:07d}",
            "input": {"prompt": prompt},
            "expected": {
                "answer_should_include": [wanted],
                "facts": {"answer": prompt if equal else f"{prompt} again"},
            },
            "metadata": {"place": rng.choice(WORDS), "rank": rng.randint(1, 5), "note": _sentence(rng, 3)},
        }
        yield case, {"exact": equal, "includes": includes, "avoids": avoids}


def judged_traces(count: int) -> Iterator[Record]:
    """Stored traces of about 2 kB: a question, one to six tool calls with their results, an answer."""
    rng = random.Random(SEED + 1)
    for number in range(count):
        names = [rng.choice(TOOLS) for _ in range(rng.randint(1, 6))]
        answer = _sentence(rng, rng.randint(5, 12))
        promise, avoids = rng.random() < 0.7, rng.random() < 0.9
        answer += f", {PROMISED.title()}" * promise + f", with an {FORBIDDEN}" * (not avoids)
        latency = rng.randint(50, 5_000)
        calls = [
            {
                "id": f"{number}-{i}",
                "name": name,
                "arguments": {"item": rng.choice(WORDS), "how": _sentence(rng, 2)},
            }
            for i, name in enumerate(names)
        ]
        trace = _trace(number, _sentence(rng, 6), calls, answer, latency, rng)
        yield (
            trace,
            {
                "tool": NEEDED in names,
                "promise": promise,
                "avoids": avoids,
                "latency": latency < LIMIT_MS,
                "few_calls": names.count("notify") <= 1,
            },
        )


def _trace(
    number: int, question: str, calls: list[dict[str, Any]], answer: str, latency: int, rng: random.Random
) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
    results = []
    for call in calls:
        content = {"found": True, "stock": rng.randint(0, 99), "remark": _sentence(rng, 3)}
        results.append({"tool_call_id": call["id"], "name": call["name"], "content": content})
        messages.append({"role": "assistant", "tool_call": call})
        messages.append({"role": "tool", "name": call["name"], "content": content})
    messages.append({"role": "assistant", "content": answer})
    return {
        "case_id": f"c{number:07d}",
        "variant_name": "main",
        "started_at": "2026-03-01T10:00:00Z",
        "finished_at": f"2026-03-01T10:00:{latency / 1000:06.3f}Z",
        "latency_ms": latency,
        "input": {"prompt": question},
        "output": {"final_answer": answer},
        "messages": messages,
        "tool_calls": calls,
        "tool_results": results,
        "metrics": {"token_input": rng.randint(100, 4_000), "token_output": rng.randint(10, 400)},
        "case_index": number,
    }


def true_counts(records: Records, count: int) -> dict[str, int]:
    """How many of the first `count` records pass each check."""
    totals: dict[str, int] = {}
    for _, truth in records(count):
        for name, passed in truth.items():
            totals[name] = totals.get(name, 0) + passed
    return totals


def case_file(count: int, folder: Path) -> Path:
    """The cases as a JSON Lines file in `folder`."""
    return _file(folder / f"cases-{count}.jsonl", cases(count))


def trace_file(count: int, folder: Path) -> Path:
    """The traces as a JSON Lines file in `folder`."""
    return _file(folder / f"traces-{count}.jsonl", judged_traces(count))


def _file(path: Path, records: Iterator[Record]) -> Path:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        with unfinished.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record, _ in records)
        unfinished.replace(path)
    return path
