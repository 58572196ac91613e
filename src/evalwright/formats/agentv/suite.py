"""AgentEvals files: evalcases with rubrics, evaluators and targets, in old and new spellings."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.errors import AllMistakes, InputError, Problem, counted
from evalwright.files.boundary import Boundary
from evalwright.files.dotenv import read_dotenv, unread_lines
from evalwright.files.masker import secrets_in
from evalwright.files.paths import import_folders, near_file, seen_from_here
from evalwright.formats.agentv import FORMAT
from evalwright.formats.agentv.assertions import Evaluators
from evalwright.formats.agentv.cases import Cases, Defaults
from evalwright.formats.agentv.config import read_project_config
from evalwright.formats.agentv.dependencies import refuse_dependencies
from evalwright.formats.agentv.file import EvalFile, read_file
from evalwright.formats.agentv.head_doubts import head_doubts
from evalwright.formats.agentv.message_files import Files
from evalwright.formats.agentv.shorthands import Environment
from evalwright.formats.agentv.target import PLACE, files_of
from evalwright.formats.agentv.targets_file import TARGETS_NAMES, Targets, targets_file
from evalwright.formats.agentv.workspace_settings import WorkspaceSettings, read_hooks, read_workspace
from evalwright.formats.agentv.workspace_templates import check_workspaces
from evalwright.model.plan import PassCriteria, Plugin, RunSettings, Variant
from evalwright.model.suite import Suite
from evalwright.session import environment, learn, process_environment

__all__ = ["TIMEOUT", "load"]

TIMEOUT = 120.0
"""Seconds that a target has for a case by default."""
_RETRIES = 2
_WORKERS = 3
_FORMS = {"jsonl": "agentv", "yaml": "agentv_yaml", "json": "json", "junit": "junit", "html": "html"}
"""Reports under the original's names."""
_HEAD = 4096
_SCHEMA = re.compile(r"^\$schema:\s*[\"']?agentv-(targets|config|eval)\b", re.MULTILINE)


class _Options(NamedTuple):
    """The options of the command line."""

    target: str | None = None
    targets: Path | None = None
    conversation: str | None = None
    description: str | None = None
    agent_timeout: float | None = None
    max_retries: int | None = None
    workers: int | None = None
    threshold: float | None = None
    output: Path | None = None
    output_format: str | None = None
    allow_outside: tuple[Path, ...] = ()
    allow_tools: bool = False


def load(path: Path, variables: Mapping[str, str], *, to_run: bool = True, **options: Any) -> Suite:
    """The suite in an EVAL.yaml, or in JSON Lines with a sidecar. Raises InputError."""
    given = _Options(**options)
    files = Files(path.resolve().parent, given.allow_outside)
    values = read_dotenv(files.roots, process_environment())
    known_here = {**values, **environment()}
    suggested = values.keys() - process_environment().keys() - variables.keys()
    resolving = {**known_here, **variables}
    secrets = secrets_in({name: known_here[name] for name in values})
    if (place := _schema(path) or _place(path)) in ("targets", "config"):
        return _beside(path, place, resolving)
    mistakes = AllMistakes()
    file = _file(path, given, mistakes)
    put = _with_environment(file, resolving)
    folder = str(path.resolve().parent)
    known, missing, workspace = None, "", WorkspaceSettings()
    with mistakes:
        file.refuse()
    with mistakes:
        known, missing = _targets(given.targets, files, resolving, suggested)
    if known is not None:
        values = {**values, **known.keys}  # where models look for theirs
    learn(values)
    chosen = given.target or file.default_target or files.config.target or "default"
    with mistakes:
        workspace = _workspace(file, files.boundary)
        _prepare(known, file, workspace.get("template"), given.target)
    limit = given.agent_timeout or files.config.timeout_seconds or TIMEOUT
    defaults = Defaults(file, files, given.target, known, limit, chosen)
    judges = _judges(known, chosen, folder, in_workspace=bool(workspace))
    evaluators = _evaluators(given, file, files, known, judges, folder, put)
    cases = Cases(file, defaults, evaluators)
    with mistakes:
        list(cases)
    mistakes.refuse(cases.beside_mistakes())
    config = {"default": chosen, "folder": folder, "try_seconds": file.timeout_seconds or limit}
    config |= _optional(given, missing, workspace)
    variant = _variant(config, {} if known is None else known.used(), cases, limit)
    check_workspaces(known, cases, workspace, Path(folder) if to_run else None, given.allow_outside)
    if to_run:
        _build(path, variant, known)
    return Suite(
        name=file.name,
        dialect=FORMAT.name,
        source=path,
        cases=cases,
        variants=[variant],
        evaluators=[],
        evaluators_by_case=True,
        pass_criteria=_criteria(file, given.threshold),
        run=_settings(file, given.workers or file.workers or _workers(known, chosen), limit),
        exports=_exports(given.output, given.output_format),
        document=file.document,
        target_chosen=True,
        metadata=file.metadata,
        environment=values,
        secrets=secrets | put.secrets | evaluators.variables | ({} if known is None else known.secrets),
        files=[*dict.fromkeys(place.path for place in file.places or ()), *([] if known is None else [known.path])],
        warnings=[*_warnings(files, file, put, known, missing), *cases.warnings],
    )


def _evaluators(
    chosen: _Options,
    file: EvalFile,
    files: Files,
    known: Targets | None,
    judges: dict[str, Any],
    folder: str,
    put: Environment,
) -> Evaluators:
    """What makes the evaluators of each case."""
    passing = file.threshold if chosen.threshold is None else chosen.threshold
    newer = put if file.key == "tests" else None
    return Evaluators(files, folder, judges, known, chosen.agent_timeout, put=newer, threshold=passing)


def _optional(chosen: _Options, missing: str, workspace: WorkspaceSettings) -> dict[str, Any]:
    """Keys of the target that most suites do without."""
    optional = {
        "retries": chosen.max_retries,
        "missing": missing or None,
        "workspace": workspace or None,
        "allow_tools": chosen.allow_tools or None,
        "allow_outside": [str(folder.absolute()) for folder in chosen.allow_outside] or None,
    }
    return {key: value for key, value in optional.items() if value is not None}


def _criteria(file: EvalFile, threshold: float | None) -> PassCriteria:
    return PassCriteria(rule="bands", threshold=file.threshold if threshold is None else threshold)


def _workers(known: Targets | None, chosen: str) -> int:
    own = None if known is None else known.get(chosen).get("workers")
    return own or _WORKERS


def _settings(file: EvalFile, workers: int, limit: float) -> RunSettings:
    return RunSettings(
        max_concurrency=workers,
        evaluator_timeout_seconds=max(600.0, 4 * limit),
        trials=file.trials or 1,
        cost_limit_usd=file.budget_usd,
    )


def _place(path: Path) -> str:
    """The kind of a file by its place: `targets`, `config`, or `eval`."""
    if path.suffix in (".yaml", ".yml") and (path.stem == "targets" or path.parts[-2:-1] == (".agentv",)):
        return path.stem if path.stem in ("targets", "config") else "eval"
    return "eval"


def _schema(path: Path) -> str:
    """The kind of a file by its `$schema`; empty if that does not tell. `agentv-targets-v2.2` are targets."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            match = _SCHEMA.search(file.read(_HEAD))
    except OSError:
        return ""
    return match[1] if match else ""


def _beside(path: Path, kind: str, environment: Mapping[str, str]) -> Suite:
    """A file beside suites, only to be checked: it has no cases."""
    if kind == "targets":
        targets = Targets(path, environment)
        warnings, contents = targets.check(), counted(len(targets), "target")
    else:
        warnings, contents = list(read_project_config(path).warnings), "settings of a repository"
    nothing: dict[str, Any] = {"cases": (), "variants": [], "evaluators": []}
    return Suite(name=kind, dialect=FORMAT.name, source=path, warnings=warnings, contents=lambda: contents, **nothing)


def _targets(
    named: Path | None, files: Files, environment: Mapping[str, str], suggested: Collection[str]
) -> tuple[Targets | None, str]:
    """The targets, or the message with which a run is rejected: a file may be checked without targets."""
    path = targets_file(named, files.roots)
    if path is None and named is not None:
        inside = f"this folder has no {', '.join(TARGETS_NAMES)}"
        missing = f"this targets file does not exist{near_file(named)}"
        raise InputError(Problem(str(named), inside if os.path.isdir(named) else missing))
    if path is None:
        return None, f"no targets.yaml in {files.roots[0]} or above it defines the targets to evaluate"
    return Targets(seen_from_here(path), environment, suggested), ""


def _file(path: Path, chosen: _Options, mistakes: AllMistakes) -> EvalFile:
    """The file, with the cases that the command line selects. Raises InputError."""
    file = read_file(path, chosen.allow_outside)
    with mistakes:
        refuse_dependencies(file)  # on any case of the file, whether selected or not
    for key, glob in (("conversation_id", chosen.conversation), ("description", chosen.description)):
        if glob is not None:
            file.keep(key, glob)
    return file


def _with_environment(file: EvalFile, known: Mapping[str, str]) -> Environment:
    """Put variables into a newer file; what they are taken from, for other texts of the suite."""
    variables = Environment(known)
    if file.key == "tests":
        file.put_into = variables.put_into
        file.cases, file.head = file.put_into(file.cases), file.put_into(file.head)
    return variables


def _workspace(file: EvalFile, boundary: Boundary) -> WorkspaceSettings:
    """The file's settings for the workspace. Raises InputError that names the place."""
    raw = file.head.get("workspace")
    if raw is None:
        return {}
    try:
        return read_workspace(raw, file.head_path.resolve().parent, file.put_into, boundary)
    except InputError as error:
        problems = [(p.message, p.key) for p in error.listed]
        raise InputError(
            [Problem(str(file.head_path), m, file.head_line(key or ""), key) for m, key in problems]
        ) from None


def _prepare(targets: Targets | None, file: EvalFile, template: str | None, named: str | None) -> None:
    """Tell the targets where they work. Raises InputError if the target `named` on the command line cannot be used."""
    if targets is not None:
        targets.work_in_copies(template)
        listed = file.execution.get("targets")
        for i, entry in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(entry, dict):
                hooks = _hooks(entry, file, f"execution.targets[{i}].hooks")
                targets.stand_in(str(entry.get("name")), entry.get("use_target"), hooks)
        if named is not None:  # it applies to all cases: a slip is one mistake, not an error in each case
            targets.chosen(named)


def _hooks(entry: dict[str, Any], file: EvalFile, key: str) -> dict[str, Any]:
    try:
        return read_hooks(entry.get("hooks") or {}, file.head_path.resolve().parent)
    except InputError as error:
        at = file.head_line("execution.targets")
        raise InputError([Problem(str(file.head_path), p.message, at, key) for p in error.listed]) from None


def _warnings(
    files: Files, file: EvalFile, put: Environment, targets: Targets | None, missing: str
) -> Iterator[Problem]:
    """What is said of the file besides its cases, of the repository's configuration and of the targets."""
    yield from unread_lines(root / ".env" for root in files.roots)
    yield from files.config.warnings
    yield from [Problem(str(file.path), missing)] if targets is None else targets.warnings()
    yield from head_doubts(file)
    yield from put.unset(str(file.path))


def _judges(targets: Targets | None, chosen: str, folder: str, *, in_workspace: bool) -> dict[str, Any]:
    if targets is None:
        return {}
    judges = {"targets": targets.used(), "default": targets.judge_of(chosen), "folder": folder}
    return judges | {"in_workspace": True} if in_workspace else judges


def _exports(output: Path | None, form: str | None) -> list[Plugin]:
    """The result file that the command line asks for. Raises InputError."""
    if output is None:
        if form is not None:
            raise InputError("--output-format needs --output FILE")
        return []
    if os.path.isdir(output):
        raise InputError(f"--output: {output} is a folder, expected a file")
    report = _FORMS[form or "jsonl"]
    return [Plugin("agentv_results", {"path": str(output.absolute()), "report": report})]


def _longest(cases: Cases, limit: float, retries: int) -> int:
    """The runner's own limit exceeds all attempts at the slowest case: the target itself limits each attempt."""
    turns = ((case.extra.get("timeout_seconds"), len(case.extra.get("turns", ())) or 1) for case in cases)
    slowest = max([limit, *(float(own or limit) * number for own, number in turns)])
    return math.ceil((slowest + 5) * (retries + 1))


def _variant(config: dict[str, Any], targets: dict[str, dict[str, Any]], cases: Cases, limit: float) -> Variant:
    """The chosen target, which also knows the others, because a case may name one of them."""
    files = _files(cases)  # before the targets are used: iterating over the cases determines which of them are needed
    batched = any(target.get("provider_batching") is True for target in targets.values())
    own = {"targets": targets, **config, **({"files": files} if batched else {})}
    most = max([_RETRIES, *(target.get("max_retries") or 0 for target in targets.values())])
    seconds = _longest(cases, limit, config.get("retries", most) + batched)
    return Variant(config["default"], "agentv", own, timeout_seconds=seconds)


def _files(cases: Cases) -> list[str]:
    """The input files of all cases, each once."""
    return list(dict.fromkeys(file for case in cases for file in files_of(case.extra)))


def _build(path: Path, variant: Variant, known: Targets | None) -> None:
    from evalwright.targets.build import build_target

    try:
        build_target(variant, import_folders(path))
    except InputError as error:
        raise InputError([_located_problem(path, problem, known) for problem in error.listed]) from error


def _located_problem(path: Path, problem: Problem, known: Targets | None) -> Problem:
    """A mistake in a target is placed in the file of targets, any other in the suite."""
    if known is None:
        return Problem(str(path), problem.message, key=problem.key)
    key = problem.key or ""
    for name in known.used():
        if key.startswith(begin := f"{PLACE}{name}."):
            return known.located(name, key.removeprefix(begin), problem.message)
    return Problem(str(path), problem.message, key=problem.key)
