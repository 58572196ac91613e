"""The cases of an AgentEvals file.

An unreadable case is still a case: its verdict is an error, and the others run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.errors import InputError, Problem
from evalwright.files.bulk import collector_paused
from evalwright.files.key_paths import as_written
from evalwright.files.plain import mapping_or_empty
from evalwright.formats.agentv.assertions import Evaluators
from evalwright.formats.agentv.booleans import boolean_mistake
from evalwright.formats.agentv.case_keys import (
    CASE_KEYS,
    EXECUTION_KEYS,
    evaluator_lists,
    first_given,
    lists_of_file,
    of_assertions,
    warn_of_unused,
)
from evalwright.formats.agentv.conversations import is_conversation, read_turns
from evalwright.formats.agentv.dependencies import DEPENDENCY_KEYS, note_dependencies
from evalwright.formats.agentv.detection import OUTCOMES
from evalwright.formats.agentv.file import EvalFile, above_zero, first_target, share_in, texts_in
from evalwright.formats.agentv.head_doubts import head_doubts
from evalwright.formats.agentv.message_files import Files
from evalwright.formats.agentv.message_texts import chat_of, guidelines_of, prompt_of, question_of, reference_of
from evalwright.formats.agentv.messages import checked_messages, expected_messages
from evalwright.formats.agentv.notes import OF_FILE, Notes
from evalwright.formats.agentv.shorthands import shared_input, with_files, with_variables
from evalwright.formats.agentv.specs import Spec, unique, uses_default_judge
from evalwright.formats.agentv.targets_file import Targets
from evalwright.formats.agentv.workspace_settings import read_workspace
from evalwright.formats.shared.findings import REACHED_BY_ALL
from evalwright.formats.shared.isolation import OF_PROGRAMS
from evalwright.model.case import ForeignCase
from evalwright.scoring.bands import THRESHOLD

__all__ = ["Cases", "Defaults"]


class Defaults(NamedTuple):
    """What a file, the command line and the targets define for all cases."""

    file: EvalFile
    files: Files
    target: str | None
    targets: Targets | None
    timeout_seconds: float
    chosen: str
    """The target of cases that name none."""


class Cases:
    """The cases of a file; `problems` and `warnings` are complete once they have been iterated over.

    Iterating raises InputError for what affects more than one case.
    """

    def __init__(self, file: EvalFile, defaults: Defaults, evaluators: Evaluators) -> None:
        self._file, self._defaults, self._evaluators = file, defaults, evaluators
        self.problems: list[Problem] = []
        self.lost: dict[str, list[Problem]] = {}
        """The mistakes of each unreadable case, by its id."""
        self.warnings: list[Problem] = []
        self._refused: list[Problem] = []
        self._unusable: list[Problem] = []
        """What keeps the target of cases that name none, or its judge, from being used."""
        self._read: list[ForeignCase] | None = None

    def __len__(self) -> int:
        return len(self._file.cases)

    def __iter__(self) -> Iterator[ForeignCase]:
        if self._read is None:
            with collector_paused():
                self._read = [self._case(raw, i) for i, raw in enumerate(self._file.cases)]
            self._refuse()
            self.problems, self.warnings = [*dict.fromkeys(self.problems)], [*dict.fromkeys(self.warnings)]
        return iter(self._read)

    def beside_mistakes(self) -> Iterator[Problem]:
        """What alone keeps only single cases from running, or none: mistakes in them, and keys that nothing reads."""
        yield from self.problems
        yield from (warning for warning in (*head_doubts(self._file), *self.warnings) if warning.unread)

    def _refuse(self) -> None:
        """Raise InputError for duplicate ids, for keys that isolate and for a target that cannot be used."""
        first: dict[str, int] = {}
        problems = [*self._refused, *dict.fromkeys(self._unusable)]
        for i, case in enumerate(self._read or ()):
            if case.id in first:
                message = f"duplicate id {case.id!r}, first in {self._file.key}[{first[case.id]}]"
                problems.append(self._file.problem(i, case.id, "id", message))
            first.setdefault(case.id, i)
        if problems:
            self._read = None
            raise InputError(problems)

    def _case(self, raw: Any, index: int) -> ForeignCase:
        notes = Notes()
        case_id = raw.get("id") if isinstance(raw, dict) else None
        named = case_id if isinstance(case_id, str) and case_id.strip() else ""
        case = self._valid_case(raw, named or f"{self._file.key}[{index}]", notes)
        errors = [self._file.problem(index, named, *note) for note in notes.errors]
        left_out = [self._file.problem(index, named, *note) for note in notes.left_out]
        self.problems += errors + left_out
        self.warnings += left_out
        self.warnings += [replace(self._file.problem(index, named, *note), unread=True) for note in notes.unread]
        self.warnings += [self._file.problem(index, named, *note) for note in notes.warnings]
        self._refused += [self._file.problem(index, named, *note) for note in notes.refused]
        if errors:
            self.lost[case.id] = errors
            case = ForeignCase(id=named or f"{self._file.key}[{index}]", input="", evaluators=[])
            mistakes = [
                self._file.problem(index, named, path, _with_path(path, message)) for path, message in notes.errors
            ]
            case.extra = {"load_error": "; ".join(problem.message for problem in mistakes)}
        return case

    def _valid_case(self, raw: Any, case_id: str, report: Notes) -> ForeignCase:
        if not isinstance(raw, dict):
            report("", f"expected a mapping, found {as_written(raw)}")
            return ForeignCase(id=case_id, input="")
        if not isinstance(raw.get("id"), str) or not raw["id"].strip():
            report("id", f"id: expected text that is not empty, {_found_text(raw, ['id'])}")
        for key in [key for key, value in raw.items() if self._file.key != "tests" and "${{" in str(value)]:
            report.warn(
                str(key), f"{key}: '${{{{ NAME }}}}' stays as it is here, variables are read in targets.yaml only"
            )
        raw = with_variables(raw)
        outcome = raw.get(first_given(raw, OUTCOMES))
        if outcome in (None, "") and self._has_criterion(raw):
            outcome = ""
        elif not isinstance(outcome, str) or not outcome.strip():
            key = first_given(raw, OUTCOMES) or OUTCOMES[0]
            report(key, f"{key}: expected text that is not empty, {_found_text(raw, OUTCOMES)}")
        execution = {} if raw.get("execution") is None else raw["execution"]
        if not isinstance(execution, dict):
            report("execution", f"execution: expected a mapping, found {as_written(execution)}")
            execution = {}
        report.unknown_keys("", raw, CASE_KEYS | DEPENDENCY_KEYS)
        note_dependencies(raw, report)
        report.unknown_keys("execution", execution, EXECUTION_KEYS, OF_PROGRAMS)
        if mistake := boolean_mistake("skip_defaults", execution.get("skip_defaults")):
            report("execution.skip_defaults", mistake)
        warn_of_unused(raw, execution, report)
        messages, expected = self._messages(raw, report), self._expected_messages(raw, report)
        seen = {} if report.errors else self._seen_messages(messages, expected)
        self._evaluators.of_case(share_in(execution.get("threshold")))
        specs = self._checks(raw, execution, report)
        turns: dict[str, Any] = {}
        if is_conversation(raw):
            turns, spec = read_turns(raw, specs, self._evaluators, self._defaults.files, report)
            specs = [spec]
        specs = specs or [self._evaluators.default()]
        overrides = self._overrides(execution, uses_default_judge(specs), report)
        extra = {
            **seen,
            **turns,
            **overrides,
            "expected_outcome": outcome,
            **self._workspace(raw.get("workspace"), report),
        }
        return ForeignCase(
            id=case_id,
            input=extra.get("question", ""),
            tags=[*self._file.tags, *texts_in(raw.get("tags"))],
            metadata={
                **self._file.shared_metadata,
                **{str(key): value for key, value in mapping_or_empty(raw.get("metadata")).items()},
            },
            group=_text(raw.get("conversation_id")),
            description=_text(raw.get("description")),
            note=_text(raw.get("note")),
            extra=extra,
            evaluators=specs,
        )

    def _has_criterion(self, raw: dict[str, Any]) -> bool:
        """Whether a case in the newer form says what is good without needing a criterion."""
        newer = self._file.key == "tests" or "assert" in raw or "assertions" in raw
        shared = any(of_assertions(key) for key, _ in lists_of_file(self._file.head, self._file.execution))
        own = ("assert", "assertions", "expected_output", "expected_messages", "rubrics", "turns")
        return newer and (shared or any(raw.get(key) not in (None, []) for key in own))

    def _messages(self, raw: dict[str, Any], report: Notes) -> list[dict[str, Any]]:
        key = first_given(raw, ("input_messages", "input"))
        if key is None:
            report("input", "input: a case needs 'input' or 'input_messages'")
            return []
        files, head = self._defaults.files, self._file.head
        execution = raw.get("execution")
        alone = isinstance(execution, dict) and execution.get("skip_defaults") is True
        own = with_files(raw[key], None if alone else head.get("input_files"), raw.get("input_files"), report)
        messages = checked_messages(own, key, files, report)
        shared = None if alone or self._file.path.suffix == ".jsonl" else head.get("input")
        shared = shared_input(shared, raw)
        return messages if shared is None else [*checked_messages(shared, f"input{OF_FILE}", files, report), *messages]

    def _expected_messages(self, raw: dict[str, Any], report: Notes) -> list[dict[str, Any]]:
        key = first_given(raw, ("expected_messages", "expected_output"))
        return [] if key is None else expected_messages(raw[key], key, self._defaults.files, report)

    def _seen_messages(self, messages: list[dict[str, Any]], expected: list[dict[str, Any]]) -> dict[str, Any]:
        """What systems and judges see of the messages, which are valid."""
        files = self._defaults.files
        paths = dict.fromkeys(path for block in _blocks(messages) if (path := files.named(block)) is not None)
        guidelines = [path for path in paths if files.is_guideline(path)]
        named = [path for path in paths if path not in guidelines]
        return {
            "question": question_of(messages),
            "prompt": prompt_of(messages, files, "content"),
            "bare_prompt": prompt_of(messages, files, "name"),
            **({"located_prompt": _parts_around(prompt_of(messages, files, "path"), named)} if named else {}),
            "chat": chat_of(messages, files, named),
            "input_messages": messages,
            "expected_messages": expected,
            "reference_answer": reference_of(expected),
            "input_files": [str(path) for path in named],
            "guideline_files": [str(path) for path in guidelines],
            "guidelines": guidelines_of(guidelines, files),
        }

    def _overrides(self, execution: dict[str, Any], judged: bool, report: Notes) -> dict[str, Any]:
        """A case's settings for its own execution; the command line's target takes precedence.

        Raises InputError if the default target cannot be used, or its judge if the case is `judged`.
        """
        overrides: dict[str, Any] = {}
        timeout = execution.get("timeout_seconds")
        timeout = self._file.timeout_seconds if timeout is None else timeout
        if timeout is not None:
            if above_zero(timeout) is None:
                message = f"timeout_seconds: expected a number above 0, found {as_written(timeout)}"
                report("execution.timeout_seconds", message)
            else:
                overrides["timeout_seconds"] = timeout
        if (least := execution.get("threshold")) is not None:
            if (share := share_in(least)) is not None:
                overrides[THRESHOLD] = share
                if share == 0:
                    report.warn("execution.threshold", f"threshold: {REACHED_BY_ALL}")
            else:
                report("execution.threshold", f"threshold: expected a number from 0 to 1, found {as_written(least)}")
        listed, targets = execution.get("targets"), self._defaults.targets
        own = first_target(execution)
        if listed is not None and (own is None or len(listed) > 1):
            message = "the first of a list of names" if own is None else repr(own)
            report.warn(
                "execution.targets",
                f"targets: a case is evaluated with one target, {message}; found {as_written(listed)}",
            )
        target = self._defaults.target or own or execution.get("target")
        if targets is None:
            return overrides
        if target is None:
            try:
                chosen = targets.chosen(self._defaults.chosen)
                if judged:
                    targets.chosen(targets.judge_of(chosen))
            except InputError as error:
                self._unusable += map(self._file.about_target, error.listed)
            return overrides
        try:
            overrides["target"] = targets.chosen(str(target))
            judge = targets.judge_of(str(target))
            overrides["judge"] = targets.chosen(judge) if judged else judge
        except InputError as error:
            # A mistake in the target of the command line is reported once for all cases.
            if "target" in overrides or self._defaults.target is None:
                report("execution.target", str(error.listed[0].message))
        return overrides

    def _workspace(self, raw: Any, report: Notes) -> dict[str, Any]:
        """The case's settings for its workspace; a mistake in them rejects the whole suite."""
        if raw is None:
            return {}
        try:
            folder, boundary = self._file.path.resolve().parent, self._defaults.files.boundary
            return {"workspace": read_workspace(raw, folder, self._file.put_into, boundary)}
        except InputError as error:
            report.refused += [(p.key or "workspace", p.message) for p in error.listed]
            return {}

    def _checks(self, raw: dict[str, Any], execution: dict[str, Any], report: Notes) -> list[Spec]:
        """The case's evaluators. An unreadable one is left out with a warning; if no other is left, the case is
        lost."""
        read = self._evaluators
        specs: list[Spec] = []
        if raw.get("rubrics") not in (None, []):
            rubric = read.of_rubrics(raw["rubrics"], report)
            specs += [rubric] if rubric is not None else []
        for key, listed in self._lists(raw, execution):
            specs += read.read(listed, key, report, named=not of_assertions(key.removesuffix(OF_FILE)))
        if report.left_out and not specs:
            report.errors += report.left_out
            report.left_out = []
        return unique(specs)

    def _lists(self, raw: dict[str, Any], execution: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """The case's own list of evaluators and the file's, each with its place.

        `evaluators` of a case replace those of the file, while assertions of both are used.
        """
        own = evaluator_lists(raw, execution)[:1]
        yield from own
        if execution.get("skip_defaults") is True:
            return
        for key, listed in lists_of_file(self._file.head, self._file.execution)[:1]:
            if of_assertions(key) or all(map(of_assertions, dict(own))):
                yield f"{key}{OF_FILE}", listed


def _with_path(path: str, message: str) -> str:
    """The message after its path, for readers that see nothing else; it may begin with the last key itself."""
    path = path.replace(OF_FILE, "")
    last = path.rpartition(".")[2].partition("[")[0]
    return f"{path}: {message.removeprefix(f'{last}: ')}" if path else message


def _parts_around(text: str, paths: Iterable[Path]) -> list[str]:
    """The text in parts, each path a part of its own: the hash of a case ignores where paths lie, because suites are
    moved."""
    longest_first = sorted(map(str, paths), key=len, reverse=True)
    return re.split(f"({'|'.join(map(re.escape, longest_first))})", text)


def _blocks(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for message in messages:
        content = message.get("content")
        yield from content if isinstance(content, list) else ()


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _found_text(raw: Mapping[Any, Any], names: Sequence[str]) -> str:
    """What the first of these keys that is there has."""
    return next((f"found {as_written(raw[name])}" for name in names if name in raw), "it is missing")
