"""Datasets of pydantic_evals, as YAML or JSON: cases, and those of its evaluators that ours can stand for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from evalwright.importers.recordings import described
from evalwright.importers.sources import ImportNotes, document
from evalwright.importers.traces import Imported, ImportFindings, Read, TraceImporter

__all__ = ["PydanticEvals"]


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The cases of the files."""
    numbers = count(1)
    for file in files:
        dataset = _parsed(file)
        cases = dataset.get("cases") if isinstance(dataset, dict) else None
        if not isinstance(cases, list):
            reading.mistakes.add(file, f"expected a list of cases, found {described(cases)}", key="cases")
            continue
        if isinstance(dataset.get("name"), str):
            reading.name = dataset["name"]
        reading.evaluators += _evaluators(dataset.get("evaluators"), reading.notes)
        if dataset.get("report_evaluators"):
            reading.notes.lose("evaluators of whole reports", len(dataset["report_evaluators"]))
        for position, case in enumerate(cases):
            key, number = f"cases[{position}]", next(numbers)
            if not isinstance(case, dict) or "inputs" not in case:
                reading.mistakes.add(file, "expected a case with inputs", key=key)
                continue
            yield _record(file, case, number, key, reading.notes)


def _parsed(file: Path) -> Any:
    from evalwright.files.yaml import parse

    return parse(document(file), str(file), "true_false").value


def _record(file: Path, case: dict[str, Any], number: int, key: str, notes: ImportNotes) -> Imported:
    given = case["inputs"]
    own = case.get("evaluators")
    if isinstance(own, list) and own:
        notes.lose("evaluators of single cases", len(own))
    facts = {} if case.get("expected_output") is None else {"expected_output": case["expected_output"]}
    metadata = case.get("metadata")
    name = case.get("name")
    return Imported(
        file,
        str(name) if name else f"case-{number}",
        dict(given) if isinstance(given, dict) else {"inputs": given},
        expected={"facts": facts},
        metadata=metadata if isinstance(metadata, dict) else {} if metadata is None else {"metadata": metadata},
        record=case,
        key=key,
        authored=True,
    )


def _evaluators(listed: Any, notes: ImportNotes) -> list[dict[str, Any]]:
    """Ours, of the dataset's in their short form: a name, or `{NAME: argument}`."""
    found: list[dict[str, Any]] = []
    for one in listed if isinstance(listed, list) else []:
        name, given = next(iter(one.items()), ("", None)) if isinstance(one, dict) else (str(one), None)
        made = _ours(str(name), given)
        if made is None:
            notes.lose(f"evaluators {name!r}")
        else:
            same = sum(other["type"] == made["type"] for other in found)
            found.append({"name": str(name) if not same else f"{name}-{same + 1}", **made})
    return found


def _ours(name: str, given: Any) -> dict[str, Any] | None:
    arguments = given if isinstance(given, dict) else {}
    answer = "output.final_answer"
    match name:
        case "EqualsExpected":
            return {"type": "exact_match", "config": {"field": answer, "expected_from": "expected_output"}}
        case "Equals":
            value = arguments.get("value", given)
            return {"type": "exact_match", "config": {"field": answer, "expected": value}}
        case "Contains":
            value = arguments.get("value", given)
            return {"type": "contains_text", "config": {"all_of": [value]}} if isinstance(value, str) else None
        case "IsInstance" if (arguments.get("type_name", given)) == "str":
            return {"type": "answered"}
        case "MaxDuration":
            seconds = arguments.get("seconds", given)
            return {"type": "latency_within", "config": {"max_ms": round(seconds * 1000)}} if _number(seconds) else None
    return None


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class PydanticEvals(TraceImporter):
    """Datasets of pydantic_evals, as YAML or JSON."""

    read: ClassVar[Read] = staticmethod(read)
