"""AgentEvals cases as JSON Lines and as YAML, and the conversion between them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from evalwright.errors import FirstProblems, InputError, Problem
from evalwright.files import yaml
from evalwright.files.jsonl import lines_of
from evalwright.files.key_paths import as_written
from evalwright.formats.agentv.detection import first_line, is_case
from evalwright.formats.agentv.file import read_file
from evalwright.formats.shared.output import OutputFolder

__all__ = ["other_form"]

ReportProblem = Callable[[Problem], None]
"""Reports a loss: the case as `file`, the place in it as `key`, and why."""


def other_form(source: Path, target: Path | None, output: OutputFolder, report: ReportProblem) -> Path | None:
    """Convert cases between JSON Lines and YAML, and results from JSON Lines to YAML.

    Returns the new file; None for JSON Lines of another kind. Raises InputError for a target with the wrong suffix.
    """
    lines = _is_lines(source)
    if lines and _holds_cases(source) and not is_case(first_line(source)):
        return None
    target = target or _other_place(source)
    if _is_lines(target) == lines:
        expected = ".yaml" if lines else ".jsonl"
        raise InputError(Problem(str(target), f"expected a file that ends in {expected}"))
    (_to_yaml if lines else _to_lines)(source, target, output, report)
    return target


def _is_lines(path: Path) -> bool:
    return path.suffix.lower() == ".jsonl"


def _holds_cases(path: Path) -> bool:
    """Whether the lines of a file are cases; lines of a result file have no `id`."""
    first = next(_rows(path), None)
    return first is None or "id" in first[1]


def _other_place(path: Path) -> Path:
    """The default place of the other form: beside the file, and never where its sidecar would be expected."""
    if not _is_lines(path):
        return path.with_suffix(".cases.jsonl")
    plain = path.with_suffix(".yaml")
    return path.with_suffix(".eval.yaml") if os.path.exists(plain) else plain


def _to_yaml(source: Path, target: Path, output: OutputFolder, report: ReportProblem) -> None:
    """Write one YAML file with the cases of `source` and the content of its sidecar; results become one document
    each."""
    file = output.text(target)
    if not _holds_cases(source):
        for number, row in _rows(source):
            file.write("---\n" + _faithful(row, row, f"line {number}", report))
        return
    file.write(yaml.schema_line("agentv"))
    sidecar = source.with_suffix(".yaml")
    head: Any = yaml.load(sidecar, "yaml12").value if os.path.isfile(sidecar) else {}
    head = {key: value for key, value in head.items() if key != "evalcases"} if isinstance(head, dict) else {}
    named = _head_with_name(head, source, target)
    if named:
        file.write(_faithful(named, named, "sidecar", report))
    file.write("evalcases:\n")
    empty = True
    for number, row in _rows(source):
        empty = False
        file.write(_faithful([row], row, _case(row, number), report))
    if empty:
        file.write("[]\n")


def _to_lines(source: Path, target: Path, output: OutputFolder, report: ReportProblem) -> None:
    """Write JSON Lines with the cases of `source`, and a sidecar with everything else."""
    read = read_file(source)
    if strange := [i for i, case in enumerate(read.cases) if not isinstance(case, dict)]:
        raise InputError(
            [read.problem(i, "", "", f"expected a mapping, found {as_written(read.cases[i])}") for i in strange]
        )
    named = _head_with_name(read.head, source, target)
    with_sidecar = target.with_suffix(".yaml")
    if named:
        output.text(with_sidecar).write(yaml.schema_line("agentv-sidecar") + _faithful(named, named, "sidecar", report))
    _write_lines(output.text(target), read.cases, report)


def _write_lines(file: IO[str], cases: list[Any], report: ReportProblem) -> None:
    for number, case in enumerate(cases, 1):
        place = _case(case, number)
        file.write(json.dumps(_jsonable(case, place, "", report), ensure_ascii=False, allow_nan=False) + "\n")


def _head_with_name(head: dict[str, Any], source: Path, target: Path) -> dict[str, Any]:
    """What is beside the cases, with the name of the source if the new file would give it another."""
    if head.get("name") or head.get("dataset") or _stem(source) == _stem(target):
        return head
    return {"name": _stem(source), **head}


def _stem(path: Path) -> str:
    return path.name.removesuffix(path.suffix)


def _case(row: Any, number: int) -> str:
    named = row.get("id") if isinstance(row, dict) else None
    return f"case {named}" if isinstance(named, str) and named else f"case {number}"


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each line with its number. At the end raises InputError with every line that is not an object."""
    problems = FirstProblems(str(path))
    for number, line in lines_of(path):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            problems.add(Problem(str(path), f"malformed JSON: {error}", number))
            continue
        if isinstance(row, dict):
            yield number, row
        else:
            problems.add(Problem(str(path), f"expected an object, found {as_written(row)}", number))
    problems.refuse()


def _faithful(written: Any, value: Any, place: str, report: ReportProblem) -> str:
    """A value as YAML. If it reads back differently, because YAML cannot hold every character, that is reported."""
    text = yaml.dump(written)
    try:
        read = yaml.parse(text.encode(), place, "yaml12").value
    except InputError as error:
        raise InputError([Problem(place, problem.message) for problem in error.problems]) from error
    for key in _unlike(value, read[0] if isinstance(written, list) else read, ""):
        report(Problem(place, "YAML cannot hold this text as it is", key=key))
    return text


def _unlike(before: Any, read: Any, key: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(read, dict) and before.keys() == read.keys():
        for name, value in before.items():
            yield from _unlike(value, read[name], f"{key}.{name}".lstrip("."))
    elif isinstance(before, list) and isinstance(read, list) and len(before) == len(read):
        for i, value in enumerate(before):
            yield from _unlike(value, read[i], f"{key}[{i}]")
    elif type(before) is not type(read) or (before != read and before == before):
        yield key


def _jsonable(value: Any, place: str, key: str, report: ReportProblem) -> Any:
    """The value for JSON; what JSON cannot express is reported and becomes text."""
    if isinstance(value, dict):
        plain = {}
        for name, item in value.items():
            text = name if isinstance(name, str) else json.dumps(name) if _is_plain(name) else str(name)
            if text in plain:
                report(Problem(place, f"two keys are {text!r} in JSON", key=key))
            plain[text] = _jsonable(item, place, f"{key}.{text}".lstrip("."), report)
        return plain
    if isinstance(value, (list, tuple)):
        return [_jsonable(item, place, f"{key}[{i}]", report) for i, item in enumerate(value)]
    if _is_plain(value):
        return value
    report(Problem(place, f"JSON cannot express {type(value).__name__}: {str(value)[:60]!r} becomes text", key=key))
    return str(value)


def _is_plain(value: Any) -> bool:
    if isinstance(value, float):
        return value - value == 0
    return value is None or isinstance(value, (str, int, bool))
