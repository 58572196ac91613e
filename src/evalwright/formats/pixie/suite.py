"""Pixie datasets: JSON files whose entries drive an instrumented application, read unchanged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.files.dotenv import nearest_dotenv, read_dotenv, unread_lines
from evalwright.files.masker import secrets_in
from evalwright.formats.pixie import FORMAT
from evalwright.formats.pixie.datasets import Dataset, read_dataset
from evalwright.formats.pixie.surface.config import runnable_concurrency
from evalwright.formats.shared.portable_paths import absolute_place
from evalwright.model.plan import PassCriteria, RunSettings, Variant
from evalwright.model.suite import Suite
from evalwright.session import environment, learn, process_environment

__all__ = ["datasets_in", "load"]

_TIMEOUT = 600.0


def load(
    path: Path,
    variables: Mapping[str, str],
    *,
    to_run: bool = True,
    trust_pickled_types: bool = False,
    allow_outside: Sequence[Path] = (),
) -> Suite:
    """The suite of one dataset, or of every dataset in a folder. Raises InputError with every problem."""
    homes = nearest_dotenv(Path.cwd()) if to_run else []
    values = read_dotenv(homes, process_environment())
    learn(values)  # before the application is imported
    files = datasets_in(path) if path.is_dir() else [path]
    if not files:
        raise InputError(Problem(str(path), "No dataset files found."))
    datasets: list[Dataset] = []
    problems: list[Problem] = []
    for file in files:
        try:
            datasets.append(read_dataset(file, to_run=to_run, allowed=allow_outside))
        except InputError as error:
            problems += error.listed
    if problems:
        raise InputError(problems, f"Invalid dataset {path}")
    _give_distinct_keys(datasets, files)
    suite = _suite(path, datasets, values, trust_pickled_types)
    warnings = [*unread_lines(home / ".env" for home in homes), *suite.warnings]
    return msgspec.structs.replace(suite, files=files, warnings=warnings)


def _give_distinct_keys(datasets: Sequence[Dataset], files: Sequence[Path]) -> None:
    """Give datasets with the same name keys of their own: by its key, an entry finds its application."""
    first: dict[str, Path] = {}
    for dataset, file in zip(datasets, files, strict=True):
        if dataset.name in first:
            keys = (f"{dataset.name}#{number}" for number in count(2))
            dataset.key = next(key for key in keys if key not in first)
            dataset.cases = [
                case.model_copy(update={"extra": {**case.extra, "dataset": dataset.key}}) for case in dataset.cases
            ]
            message = f"{first[dataset.name]} has the same name: the entries of this file begin with {dataset.key!r}"
            dataset.warnings.append(Problem(str(file), message, key="name"))
        first[dataset.key] = file


def datasets_in(folder: Path) -> list[Path]:
    """The datasets below a folder, sorted, without hidden folders, folders of results and other JSON."""
    datasets = []
    for path in sorted(folder.rglob("*.json")):
        inner = path.relative_to(folder).parts[:-1]
        if any(part.startswith(".") or part in ("results", "runs", "scorecards") for part in inner):
            continue
        try:
            value = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            datasets.append(path)  # a broken dataset is reported, not skipped
            continue
        if isinstance(value, dict) and value.keys() & {"runnable", "entries", "items"}:
            datasets.append(path)
    return datasets


def _suite(path: Path, datasets: list[Dataset], values: dict[str, str], trusted: bool) -> Suite:
    several = len(datasets) > 1
    folders = list(dict.fromkeys(folder for dataset in datasets for folder in dataset.folders))
    runnables = {
        # each is searched for in the folders of its own dataset: another one may have a file of that name
        dataset.key: absolute_place(dataset.runnable, dataset.folders) if several else dataset.runnable
        for dataset in datasets
        if dataset.runnable is not None
    }
    cases = [
        case.model_copy(update={"id": f"{dataset.key}/{case.id}"}) if several else case
        for dataset in datasets
        for case in dataset.cases
    ]
    known = {**values, **environment()}
    config: dict[str, Any] = {"runnables": runnables, "folders": folders}
    if trusted:
        config["trust_pickled_types"] = True
    return Suite(
        name=datasets[0].name if not several else path.resolve().name,
        dialect=FORMAT.name,
        source=path,
        cases=cases,
        variants=[Variant("app", "pixie_app", config, timeout_seconds=_TIMEOUT)],
        evaluators=[],
        evaluators_by_case=True,
        empty="loaded",
        pass_criteria=PassCriteria(errored_evaluators="error"),
        run=RunSettings(max_concurrency=runnable_concurrency(known), evaluator_timeout_seconds=_TIMEOUT),
        environment=values,
        secrets=secrets_in({name: known[name] for name in values}),
        warnings=[
            *(warning for dataset in datasets for warning in (*dataset.warnings, *dataset.unfit)),
            *(object_ for dataset in datasets if not trusted for object_ in dataset.objects),
        ],
        document={"datasets": [dataset.document for dataset in datasets]},
    )
