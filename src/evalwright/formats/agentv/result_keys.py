"""Result files of AgentV: one JSON object per line, with the id of a case and its score."""

from __future__ import annotations

import json
import math
from pathlib import Path

from evalwright.errors import InputError, Problem
from evalwright.files.jsonl import lines_of
from evalwright.files.key_paths import as_written

__all__ = ["read_scores"]


def read_scores(path: Path) -> tuple[dict[str, float], int]:
    """Scores by id, the last one for repeated ids, and the number of lines. Raises InputError."""
    scores: dict[str, float] = {}
    lines = 0
    problems = []
    for number, line in lines_of(path):
        lines += 1
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            problems.append(Problem(str(path), f"malformed JSON: {error}", number))
            continue
        named = row.get("eval_id", row.get("test_id")) if isinstance(row, dict) else None
        score = row.get("score") if isinstance(row, dict) else None
        if not isinstance(named, str):
            problems.append(Problem(str(path), "eval_id: expected a text", number, "eval_id"))
        elif isinstance(score, bool) or not isinstance(score, (int, float)) or not math.isfinite(score):
            problems.append(Problem(str(path), f"score: expected a number, found {as_written(score)}", number, "score"))
        else:
            scores[named] = score
    if problems:
        raise InputError(problems)
    return scores, lines
