"""The results of a dataset as one self-contained HTML page; every value is escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from itertools import count
from pathlib import Path
from typing import Any

from evalwright.files.durable import replace_file
from evalwright.files.masker import Masker
from evalwright.formats.pixie.observer import PASSES
from evalwright.formats.pixie.surface.config import get_config
from evalwright.formats.pixie.surface.evaluation import Evaluation, could_not_judge
from evalwright.reports.text import harmless
from evalwright.session import environment

__all__ = ["DatasetEntryResult", "DatasetScorecard", "generate_dataset_scorecard_html", "save_dataset_scorecard"]

_LONGEST_NAME = 60
_META = (
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
)
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#1c2024}"
    "header p{margin:.2rem 0;color:#555}section{border:1px solid #d5d9de;border-radius:8px;margin:1rem 0;padding:1rem}"
    "h1,h2,td{overflow-wrap:anywhere}h2{font-size:1.1rem;margin:.2rem 0 .6rem}"
    "table{border-collapse:collapse;table-layout:fixed;width:100%}th:first-child{width:11rem}"
    "thead th:nth-child(2){width:5rem}th,td{text-align:left;vertical-align:top;padding:.3rem .6rem .3rem 0}"
    "pre{background:#f4f5f7;border-radius:6px;margin:.2rem 0;overflow:auto;padding:.5rem;white-space:pre-wrap;"
    "overflow-wrap:anywhere}.pass{color:#0b6b35}.fail,.error{color:#b3261e}"
    "@media(prefers-color-scheme:dark){body{background:#16181b;color:#e6e8ea}header p{color:#a5abb2}"
    "section{border-color:#3a3f45}pre{background:#22262a}.pass{color:#5fd08f}.fail,.error{color:#ff8a80}}"
)


@dataclass(frozen=True)
class DatasetEntryResult:
    """The evaluators' results for one entry."""

    evaluator_names: tuple[str, ...]
    evaluations: tuple[Evaluation, ...]
    input_label: str
    evaluable_dict: dict[str, Any]

    @property
    def passed(self) -> bool:
        """Whether every score is at least one half; skipped results do not count if there are others."""
        return self.status == "pass"

    @property
    def status(self) -> str:
        """`pass`, `fail`, or `pending` if nothing failed and a score is still missing."""
        marks = [_mark(evaluation) for evaluation in self.evaluations]
        counted = [mark for mark in marks if mark not in ("skip", "pending")]
        if any(mark != "pass" for mark in counted):
            return "fail"
        if "pending" in marks:
            return "pending"
        return "pass" if counted or not marks else "fail"


@dataclass
class DatasetScorecard:
    """The results of one dataset."""

    dataset_name: str
    entries: Sequence[DatasetEntryResult]
    timestamp: datetime = field(default_factory=lambda: datetime.now(UTC))


def generate_dataset_scorecard_html(scorecard: DatasetScorecard, command_args: str) -> str:
    """The whole page as text."""
    statuses = [entry.status for entry in scorecard.entries]
    passed, pending, total = statuses.count("pass"), statuses.count("pending"), len(statuses)
    status = "FAIL" if "fail" in statuses else "PENDING" if pending else "PASS"
    left = f", {pending} pending" if pending else ""
    name = _text(scorecard.dataset_name)
    entries = "\n".join(_entry(number, entry) for number, entry in enumerate(scorecard.entries, 1))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        f"{_META}<style>{_STYLE}</style></head><body>\n"
        f"<header><h1>{name}</h1><p><code>{_text(command_args)}</code></p>"
        f"<p>{scorecard.timestamp.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC</p>"
        f'<p class="{status.lower()}"><strong>{status}</strong> {passed}/{total} entries passed{left}</p></header>\n'
        f"<main>{entries}</main>\n</body></html>\n"
    )


def _entry(number: int, entry: DatasetEntryResult) -> str:
    mark, opened = entry.status, " open" if entry.status == "fail" else ""
    rows = "".join(
        f'<tr><td>{_text(name)}</td><td class="{_mark(evaluation)}">{_score(evaluation)}</td>'
        f"<td>{_text(evaluation.reasoning)}{_details(evaluation.details)}</td></tr>"
        for name, evaluation in zip(entry.evaluator_names, entry.evaluations, strict=False)
    )
    values = "".join(
        f"<tr><th>{_text(str(key))}</th><td><pre>{_text(_shown_value(value))}</pre></td></tr>"
        for key, value in entry.evaluable_dict.items()
    )
    return (
        f'<section><h2>{number}. {_text(entry.input_label)} <span class="{mark}">{mark}</span></h2>'
        f"<table><thead><tr><th>Evaluator</th><th>Score</th><th>Reasoning</th></tr></thead><tbody>{rows}</tbody></table>"
        f"<details{opened}><summary>Values</summary><table>{values}</table></details></section>"
    )


def _mark(evaluation: Evaluation) -> str:
    if could_not_judge(evaluation):
        return "error"
    details = evaluation.details or {}
    if details.get("pending"):
        return "pending"
    if details.get("skipped"):
        return "skip"
    return "pass" if evaluation.score >= PASSES else "fail"


def _score(evaluation: Evaluation) -> str:
    mark = _mark(evaluation)
    return mark if mark in ("error", "pending", "skip") else f"{evaluation.score:.2f}"


def _text(value: str) -> str:
    """Escaped for the page: markup, and characters that reorder or hide text."""
    return escape(harmless(value))


def _details(details: dict[str, Any]) -> str:
    return f"<details><summary>Details</summary><pre>{_text(_shown_value(details))}</pre></details>" if details else ""


def _shown_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, default=str)


def save_dataset_scorecard(scorecard: DatasetScorecard, command_args: str) -> str:
    """Write the page, without the secrets of the environment, below the configured root; returns its absolute path."""
    folder = Path(get_config().root).resolve() / "scorecards"
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"-+", "-", re.sub(r"[^\w-]", "-", scorecard.dataset_name).strip("-"))[:_LONGEST_NAME]
    stamp = f"{scorecard.timestamp:%Y%m%d-%H%M%S}"
    path = _free(folder, f"{stamp}-{name}" if name else stamp)
    page = Masker.of({}, environment()).mask_text(generate_dataset_scorecard_html(scorecard, command_args))
    replace_file(path, page.encode())
    return str(path)


def _free(folder: Path, stem: str) -> Path:
    """A new empty file of that name, numbered if the name is taken."""
    for number in count(1):
        path = folder / (f"{stem}.html" if number == 1 else f"{stem}-{number}.html")
        with suppress(FileExistsError):
            path.touch(exist_ok=False)
            break
    return path
