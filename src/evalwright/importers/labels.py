"""Human labels for answers of a run, as a table (CSV) or as JSON Lines: one label per row.

Columns: `case_id`, `evaluator`, and `verdict` (pass, fail, yes, no, true, false, 1, 0), `score`, or both; `variant` and
`trial` if a case has several answers; `attempt` if a retry may have replaced the answer; `run` where two runs are
labelled. Other columns (notes) are ignored.

In a file that only grows, `labelled_at` says when each label was given, and `labeller` by whom: a labeller's last label
for an answer counts, an empty one withdraws it, and `unsure` says that there is no verdict. `sampling` says in which
order of labelling the answer came up; of a `balanced` one, `stratum` is the evaluator's verdict then, and
`stratum_size` how many answers of the variant had it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.files.jsonl import lines_of
from evalwright.files.key_paths import as_written
from evalwright.files.paths import unreadable
from evalwright.model.calibration import BALANCED

__all__ = ["NAMES_OF_COLUMNS", "WORDS_OF_VERDICTS", "LabelRow", "read_labels"]

NAMES_OF_COLUMNS = {
    "case_id": ("case_id", "case", "id"),
    "evaluator": ("evaluator",),
    "verdict": ("verdict", "human_verdict", "passed"),
    "score": ("score", "human_score"),
    "variant": ("variant", "variant_name"),
    "trial": ("trial",),
    "attempt": ("attempt",),
    "run": ("run", "run_id"),
    "labeller": ("labeller",),
    "labelled_at": ("labelled_at",),
    "sampling": ("sampling",),
    "stratum": ("stratum",),
    "stratum_size": ("stratum_size",),
}
_LONGEST = 400
"""Characters of a header that are shown."""
_ALIASES = {alias: name for name, aliases in NAMES_OF_COLUMNS.items() for alias in aliases}
WORDS_OF_VERDICTS = {
    **dict.fromkeys(("pass", "passed", "yes", "true", "1"), True),
    **dict.fromkeys(("fail", "failed", "no", "false", "0"), False),
}


@dataclass(frozen=True, slots=True)
class LabelRow:
    """One label as it was written; the answer that it is about has not been looked up yet."""

    line: int
    case_id: str
    """With the blanks around it, which may be part of the id or a slip of the labeller."""
    evaluator: str
    variant: str | None = None
    trial: int | None = None
    passed: bool | None = None
    score: float | None = None
    run: str | None = None
    """If labels are about two runs: `A`, `B`, or the id of one."""
    unsure: bool = False
    """The labeller has looked at the answer and gives no verdict."""
    attempt: int | None = None
    """None: the newest one."""
    labeller: str = ""
    chosen: str = ""
    """How the answer was chosen for labelling, as in `Label`; `stratum` and `stratum_size` too."""
    stratum: str = ""
    stratum_size: int | None = None


def read_labels(path: Path) -> tuple[list[LabelRow], list[Problem]]:
    """All labels that can be read, and all mistakes. Raises InputError if the file as a whole cannot be read."""
    lines = lines_of(path)
    first = next(lines, None)
    if first is None:
        raise InputError(Problem(str(path), "is empty; expected one label per line"))
    records = _objects if first[1].lstrip().startswith(b"{") else _table_rows
    rows: list[LabelRow] = []
    problems: list[Problem] = []
    found = 0
    for line, fields in _newest(records(path, problems)):
        found += 1
        if _is_withdrawn(fields):
            continue
        mistakes = [Problem(str(path), message, line, key) for key, message in _mistakes(fields)]
        problems += mistakes
        if not mistakes:
            rows.append(_row(line, fields))
    if not found and not problems:
        problems.append(Problem(str(path), "has no labels"))
    return rows, problems


def _newest(records: Iterator[tuple[int, dict[str, Any]]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """For an append-only file, the last label of each labeller for an answer, in the order of their first labels."""
    grown: dict[tuple[str, ...], tuple[int, dict[str, Any]]] = {}
    for line, fields in records:
        if "labelled_at" not in fields:
            yield line, fields
            continue
        names = ("case_id", "variant", "trial", "run", "evaluator", "labeller")
        grown[tuple(str(fields.get(name, "")) for name in names)] = (line, fields)
    yield from grown.values()


def _is_withdrawn(fields: Mapping[str, Any]) -> bool:
    return "labelled_at" in fields and "verdict" not in fields and "score" not in fields


def _objects(path: Path, problems: list[Problem]) -> Iterator[tuple[int, dict[str, Any]]]:
    misspelt: set[str] = set()
    for number, line in lines_of(path):
        try:
            record = msgspec.json.decode(line)
        except (ValueError, RecursionError) as error:
            problems.append(Problem(str(path), f"not valid JSON: {error}", number))
            continue
        if not isinstance(record, dict):
            problems.append(Problem(str(path), f"expected an object, found {as_written(record)}", number))
            continue
        problems += (Problem(str(path), message, number, name) for name, message in _misspelt(record, misspelt))
        yield number, _known_fields(record)


def _table_rows(path: Path, problems: list[Problem]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of a CSV file with a header; the separator is a comma, or else the semicolon or tab in the header."""
    text = _text(path)
    header_line = text.split("\n", 1)[0]
    separator = next((mark for mark in ",;\t" if mark in header_line), ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    header: list[str] | None = None
    line = 1
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            problems.append(Problem(str(path), f"not valid CSV: {error}", line))
            return
        if cells is None:
            return
        if any(cell.strip() for cell in cells):
            if header is None:
                header = [cell.strip() for cell in cells]
                problems += _header_problems(path, header, line)
                if missing := _missing(header):
                    problems.append(
                        Problem(str(path), f"no column {missing}; found: {', '.join(header)[:_LONGEST]}", line)
                    )
                    return
            elif len(cells) > len(header):
                problems.append(Problem(str(path), f"{len(cells)} values under {len(header)} columns", line))
            else:
                yield line, _known_fields(dict(zip(header, cells, strict=False)))
        line = reader.line_num + 1


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(Problem(str(path), unreadable(path, error))) from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError(Problem(str(path), "is not UTF-8; save it as CSV UTF-8", line)) from error


def _header_problems(path: Path, header: list[str], line: int) -> Iterator[Problem]:
    known = [_canonical(name) for name in header]
    for name, message in _misspelt(dict.fromkeys(header), set()):
        yield Problem(str(path), message, line, name)
    for name in sorted({name for name in known if name and known.count(name) > 1}):
        yield Problem(str(path), f"two columns for the {name}", line, name)


def _missing(header: list[str]) -> str:
    known = set(map(_canonical, header))
    missing = [repr(name) for name in ("case_id", "evaluator") if name not in known]
    if not known & {"verdict", "score"}:
        missing.append("'verdict' or 'score'")
    return ", ".join(missing)


def _canonical(name: str) -> str | None:
    return _ALIASES.get("_".join(name.lower().split()))


def _misspelt(fields: Mapping[str, Any], reported: set[str]) -> Iterator[tuple[str, str]]:
    """Unknown names that resemble a known one, each once."""
    for name in fields:
        if name in reported or _canonical(name) is not None:
            continue
        if near := did_you_mean(
            name.lower(), [known for known in NAMES_OF_COLUMNS if known not in map(_canonical, fields)]
        ):
            reported.add(name)
            yield name, f"nothing reads {name!r}{near}"


def _known_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The known fields under their canonical names; empty cells are left out.

    Ids keep the blanks at their ends, as the ids of cases may have some; those of other values mean nothing.
    """
    known_fields: dict[str, Any] = {}
    for name, value in fields.items():
        text = value.strip() if isinstance(value, str) else value
        if (known := _canonical(name)) is not None and text not in (None, ""):
            known_fields.setdefault(known, value if known == "case_id" else text)
    return known_fields


def _mistakes(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key in ("case_id", "evaluator"):
        if key not in fields:
            yield key, "is missing"
    for key in ("case_id", "evaluator", "variant", "run"):
        if not isinstance(fields.get(key, ""), str):
            yield key, f"expected text, found {as_written(fields[key])}"
    if "verdict" not in fields and "score" not in fields:
        yield "verdict", "neither a verdict nor a score"
    if "verdict" in fields and _verdict(fields["verdict"]) is None and not _is_unsure(fields):
        yield "verdict", f"expected pass or fail, found {as_written(fields['verdict'])}"
    if "score" in fields and _number(fields["score"]) is None:
        yield "score", f"expected a number, found {as_written(fields['score'])}"
    if "trial" in fields and _trial(fields["trial"]) is None:
        yield "trial", f"expected 0, 1, 2, ..., found {as_written(fields['trial'])}"
    if "attempt" in fields and not _trial(fields["attempt"]):
        yield "attempt", f"expected 1, 2, 3, ..., found {as_written(fields['attempt'])}"
    if fields.get("sampling") == BALANCED:
        yield from _mistakes_of_stratum(fields)


def _mistakes_of_stratum(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Without its stratum a label has no weight."""
    if fields.get("stratum") not in ("pass", "fail"):
        yield "stratum", f"expected pass or fail for a balanced sample, found {fields.get('stratum', '')!r:.60}"
    if not _trial(fields.get("stratum_size")):
        stratum_size = fields.get("stratum_size", "")
        yield "stratum_size", f"expected 1, 2, 3, ... for a balanced sample, found {as_written(stratum_size)}"


def _row(line: int, fields: Mapping[str, Any]) -> LabelRow:
    return LabelRow(
        line,
        fields["case_id"],
        fields["evaluator"],
        fields.get("variant"),
        _trial(fields["trial"]) if "trial" in fields else None,
        _verdict(fields["verdict"]) if "verdict" in fields else None,
        _number(fields["score"]) if "score" in fields else None,
        fields.get("run"),
        _is_unsure(fields),
        _trial(fields["attempt"]) if "attempt" in fields else None,
        str(fields.get("labeller", "")),
        str(fields.get("sampling", "")),
        str(fields.get("stratum", "")),
        _trial(fields.get("stratum_size")),
    )


def _is_unsure(fields: Mapping[str, Any]) -> bool:
    return "labelled_at" in fields and str(fields.get("verdict")).lower() == "unsure"


def _verdict(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    return WORDS_OF_VERDICTS.get(str(value).lower()) if isinstance(value, str | int) else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


def _trial(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return int(value) if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10 else None
