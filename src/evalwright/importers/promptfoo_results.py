"""Results of promptfoo, as `promptfoo eval -o out.json` writes them, or `out.jsonl` and `out.yaml`.

`promptIdx` counts prompts × providers, and each repetition has a `testIdx` of its own: neither identifies a case. Rows
with the same test are one case for each prompt; those with one `promptIdx` are its trials.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.files.numbers import is_number
from evalwright.files.yaml import parse
from evalwright.importers.blocks import texts_of
from evalwright.importers.file_heads import columns_of
from evalwright.importers.format_marks import is_promptfoo_table
from evalwright.importers.imported_records import Imported, ImportFindings, Read
from evalwright.importers.json_lines import records
from evalwright.importers.record_values import described, dictionaries
from evalwright.importers.sources import ImportNotes, Mistakes, document, json_document, json_value, lines, record_key
from evalwright.importers.token_counts import Tokens, recorded_dollars, recorded_milliseconds, token_count
from evalwright.importers.traces import TraceImporter
from evalwright.importers.transcript import Transcript
from evalwright.model.trace import TraceError

__all__ = ["PromptfooResults", "recorded_cost", "result_document"]

_PROVIDER_FAILED = 2
"""The `failureReason` of a row without an answer: `error` holds the reason of a failed assertion, too."""


def read(files: Sequence[Path], reading: ImportFindings) -> Iterator[Imported]:
    """The rows of the files."""
    for file in files:
        results_file = result_document(file, reading.mistakes)
        results = results_file.get("results") if isinstance(results_file, dict) else None
        rows = results.get("results") if isinstance(results, dict) else results
        if not isinstance(rows, list):
            reading.mistakes.add(file, f"expected results.results, found {described(rows)}", key="results")
            continue
        config = results_file.get("config")
        if isinstance(config, dict) and isinstance(config.get("description"), str):
            reading.name = config["description"]
        unusable = [(i, row) for i, row in enumerate(rows) if not isinstance(row, dict)]
        for i, row in unusable:
            reading.mistakes.add(file, f"expected an object, found {described(row)}", key=f"results.results[{i}]")
        if not unusable:
            yield from _Rows(file, rows, _prompts(results), reading).records()


def result_document(file: Path, mistakes: Mistakes) -> Any:
    """The document in a file of results; the rows of one in JSON Lines are its `results`.

    Raises InputError for a file that contains neither, and for a table, which lacks most of a row.
    """
    first = next((text for _, text in lines(file)), b"")
    if first.lstrip().startswith((b"{", b"[")):
        return (
            {"results": [row for _, row in records(file, mistakes)]}
            if _is_row(first)
            else json_document(file, mistakes)
        )
    if is_promptfoo_table(columns_of(file)):
        message = "a table has no prompts and assertions: import results that end with .json, .jsonl or .yaml"
        raise InputError(Problem(str(file), message))
    return parse(document(file), str(file), "true_false").value


def _is_row(text: bytes) -> bool:
    try:
        value = json_value(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "promptIdx" in value and "results" not in value


def _prompts(results: Any) -> list[dict[str, Any]]:
    return list(dictionaries(results.get("prompts"))) if isinstance(results, dict) else []


class _Rows:
    """The rows of one file, with the tests, prompts and providers found in all of them."""

    def __init__(
        self, file: Path, rows: list[dict[str, Any]], columns: list[dict[str, Any]], reading: ImportFindings
    ) -> None:
        self._file, self._rows, self._reading = file, rows, reading
        self._tests = _numbers_by_key(sorted(rows, key=_test_index), _test_of)
        self._columns = columns
        self._prompts = _numbers_by_key([*columns, *rows], self._prompt_of)

    def records(self) -> Iterator[Imported]:
        if not self._one_provider_a_name():
            return
        for row in self._rows:
            test = f"test-{self._tests[_test_of(row)]}"
            prompt = self._prompts[self._prompt_of(row)]
            yield Imported(
                self._file,
                f"{test}/prompt-{prompt}" if len(self._prompts) > 1 else test,
                _input(row),
                _transcript(row, self._reading).trace(_variant(row), self._extra(row)),
                trial=_test_index(row),
                metadata=_metadata(row),
                record=row,
            )

    def _prompt_of(self, row: dict[str, Any]) -> str:
        """The label of a column, or of the column that a row belongs to; the row's own if it names none."""
        column = row.get("promptIdx")
        return _label_of(self._columns[column] if isinstance(column, int) and 0 <= column < len(self._columns) else row)

    def _one_provider_a_name(self) -> bool:
        """Whether provider names are unique; otherwise results of providers with the same name would be taken for
        trials."""
        columns: dict[tuple[str, str, Any], set[Any]] = {}
        for row in self._rows:
            at = (_variant(row), self._prompt_of(row), _test_index(row))
            columns.setdefault(at, set()).add(record_key(row.get("promptIdx")))
        several = sorted({name for (name, _, _), column in columns.items() if len(column) > 1})
        for name in several:
            self._reading.mistakes.add(self._file, f"two providers are called {name!r}: give each a label of its own")
        return not several

    def _extra(self, row: dict[str, Any]) -> dict[str, Any]:
        origin = {"file": self._file.name, "format": "promptfoo-results", "id": row.get("id")}
        graded = row.get("gradingResult")
        parts = dictionaries(graded.get("componentResults") if isinstance(graded, dict) else None)
        scores = [_score(part) for part in parts]
        response = row.get("response")
        cached = {"cached": True} if isinstance(response, dict) and response.get("cached") else {}
        return {"imported_from": origin, **cached, **({"recorded_scores": scores} if scores else {})}


def _numbers_by_key(rows: Sequence[dict[str, Any]], key: Any) -> dict[str, int]:
    """Each different key, numbered from 1 by its first row."""
    numbers: dict[str, int] = {}
    for row in rows:
        numbers.setdefault(key(row), len(numbers) + 1)
    return numbers


def _test_index(row: dict[str, Any]) -> int:
    index = row.get("testIdx")
    return index if isinstance(index, int) else 0


def _test_of(row: dict[str, Any]) -> str:
    test = row.get("testCase")
    test = test if isinstance(test, dict) else {}
    same = [test.get("description"), test.get("vars", row.get("vars")), test.get("assert")]
    return msgspec.json.encode(same, order="deterministic").decode()


def _label_of(row: dict[str, Any]) -> str:
    """The label of a row's prompt, or that of a column."""
    prompt = row.get("prompt")
    prompt = prompt if isinstance(prompt, dict) else row
    return str(prompt.get("label") or prompt.get("raw") or "")


def _variant(row: dict[str, Any]) -> str:
    provider = row.get("provider")
    if isinstance(provider, dict):
        return str(provider.get("label") or provider.get("id") or "recorded")
    return str(provider or "recorded")


def _input(row: dict[str, Any]) -> dict[str, Any]:
    variables = row.get("vars")
    return dict(variables) if isinstance(variables, dict) else {}


def _metadata(row: dict[str, Any]) -> dict[str, Any]:
    test = row.get("testCase")
    test = test if isinstance(test, dict) else {}
    metadata, description = test.get("metadata"), test.get("description")
    items = metadata.items() if isinstance(metadata, dict) else ()
    described = {"description": description} if isinstance(description, str) and description else {}
    return {**{key: value for key, value in items if not key.startswith("_promptfoo")}, **described}


def _transcript(row: dict[str, Any], reading: ImportFindings) -> Transcript:
    talk = Transcript()
    prompt = row.get("prompt")
    _add_prompt(talk, str(prompt.get("raw") or "") if isinstance(prompt, dict) else "", reading)
    response = row.get("response")
    response = response if isinstance(response, dict) else {}
    output = response.get("output")
    if isinstance(output, dict):
        talk.structured = output
    if output is not None:
        talk.turn().add_text(output if isinstance(output, str) else msgspec.json.encode(output).decode())
    talk.latency_ms = recorded_milliseconds(row.get("latencyMs"), reading.notes)
    talk.tokens = _tokens(row, response, reading.notes)
    failure, error = row.get("failureReason"), row.get("error")
    if failure == _PROVIDER_FAILED or (failure is None and error and not row.get("gradingResult")):
        talk.error = TraceError("provider_error", str(error or "the provider failed"))
    else:
        talk.custom = _scores(row)
    return talk


def _add_prompt(talk: Transcript, raw: str, reading: ImportFindings) -> None:
    """The prompt: text, or the messages of a chat as JSON."""
    messages = None
    if raw.lstrip().startswith("["):
        try:
            messages = msgspec.json.decode(raw)
        except (ValueError, RecursionError):
            messages = None
    if isinstance(messages, list) and messages and all(isinstance(one, dict) and "role" in one for one in messages):
        for message in messages:
            text = texts_of(message.get("content"), reading.notes)
            match message["role"]:
                case "system" | "developer":
                    talk.system(text)
                case "assistant":
                    talk.turn().add_text(text)
                case _:
                    talk.user(text)
    else:
        talk.user(raw)


def _scores(row: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if isinstance(row.get("success"), bool):
        fields["reward"] = float(row["success"])
    if isinstance(row.get("score"), int | float):
        fields["score"] = row["score"]
    named = row.get("namedScores")
    numbers = (named if isinstance(named, dict) else {}).items()
    return {**fields, **{name: value for name, value in numbers if isinstance(value, int | float)}}


def _score(part: dict[str, Any]) -> dict[str, Any]:
    assertion = part.get("assertion")
    assertion = assertion if isinstance(assertion, dict) else {}
    return {
        "name": assertion.get("metric") or assertion.get("type") or "assertion",
        "passed": part.get("pass"),
        "score": part.get("score"),
        "reason": part.get("reason"),
    }


def _tokens(row: dict[str, Any], response: dict[str, Any], notes: ImportNotes) -> Tokens:
    """Tokens and cost; zero tokens count as not measured."""
    usage = response.get("tokenUsage")
    usage = usage if isinstance(usage, dict) else {}
    counted = bool(usage.get("total") or usage.get("prompt") or usage.get("completion"))
    return Tokens(
        token_count(usage.get("prompt"), notes) if counted else None,
        token_count(usage.get("completion"), notes) if counted else None,
        cost=recorded_dollars(_stated_cost(row), notes),
    )


def _stated_cost(row: Mapping[str, Any]) -> Any:
    """What a row says that its call cost. promptfoo gives it the cost 0 if the provider reports none."""
    response = row.get("response")
    cost = response.get("cost") if isinstance(response, dict) else None
    return cost if cost is not None else row.get("cost") or None


def recorded_cost(row: Mapping[str, Any]) -> float | None:
    """What a call cost, in US dollars."""
    cost = _stated_cost(row)
    usable = is_number(cost) and math.isfinite(cost) and cost >= 0
    return float(cost) if usable and cost is not None else None


class PromptfooResults(TraceImporter):
    """Results of promptfoo, as `promptfoo eval -o` writes them into files in JSON, JSON Lines and YAML."""

    read: ClassVar[Read] = staticmethod(read)
