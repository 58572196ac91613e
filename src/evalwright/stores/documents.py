"""The documents beside a run's records: its plan as JSON, with secrets as `${NAME}`, and its summary as YAML."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from evalwright.errors import InputError, Problem
from evalwright.files.durable import create_file
from evalwright.files.masker import Masker
from evalwright.files.placeholders import expand, variables_in
from evalwright.model.plan import Plan
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.snapshot import Case, Expected
from evalwright.model.summary import RunSummary
from evalwright.model.trace import (
    SCHEMA_VERSION,
    Metrics,
    Output,
    ToolCall,
    ToolResult,
    Trace,
    TraceError,
    TraceMessage,
    is_newer,
)
from evalwright.registry import format_of_run

__all__ = [
    "INDEXED_FROM",
    "Masked",
    "PlanSecrets",
    "cells_of",
    "missing_key",
    "named_in_plan",
    "newer_version",
    "plan_from_json",
    "plan_to_json",
    "reserved_words",
    "summary_from_yaml",
    "summary_to_plain",
    "summary_to_yaml",
]


INDEXED_FROM = 20_000
"""Number of cells from which a run's index is worth keeping: with fewer, a scan takes only a moment."""
_MOST_CELLS = 10**9
"""Some bytes of memory are taken for each cell of a run that is continued."""
_KEY_BYTES = 32
_SHAPES = (
    *(Case, Expected, Trace, Output, Metrics, ToolCall, ToolResult, TraceMessage, TraceError),
    *(EvaluationResult, CaseVerdict),
)
_SEALED = (
    "dialect", "config_path", "config_hash", "variants", "evaluators", "evaluators_by_case", "import_paths", "mirrors",
    "exports", "workspace", "cases_sha256",
)  # fmt: skip
"""The parts of a plan that determine which code runs, what it calls and with what, and which files it writes."""


def cells_of(plan: Plan) -> int:
    """The number of cells in the whole run, of which a shard has a part."""
    return plan.cases_total * sum(map(plan.trials_of, plan.variants))


def reserved_words(plan: Plan) -> frozenset[str]:
    """Strings that masking leaves alone, so that records stay readable: names of fields, variants, evaluators."""
    words = {name for shape in _SHAPES for name in shape.__struct_fields__}
    words.update(variant.name for variant in plan.variants)
    words.update(evaluator.name for evaluator in plan.evaluators)
    return frozenset(words | {"borderline", plan.config_hash, plan.run_id})


def plan_to_json(plan: Plan, masker: Masker, unresolved: Mapping[str, str] = {}) -> bytes:
    """The plan as it is stored: secrets as `${NAME}`, including those that were never resolved; sealed if it is our
    own. Raises InputError for a path that is not UTF-8: all other texts have been checked."""
    plain = masker.placeholders(msgspec.to_builtins(plan), unresolved)
    try:
        if plan.seal:
            plain["seal"] = _seal_of(plain, create=True)
        return msgspec.json.format(msgspec.json.encode(plain), indent=2) + b"\n"
    except UnicodeEncodeError as error:
        raise InputError(f"{error.object!r:.300} is not UTF-8, and a run could not name it: rename it") from error


def named_in_plan(data: bytes | None, variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that a stored plan names; none if no plan can be read."""
    try:
        return {} if data is None else variables_in(msgspec.json.decode(data), variables)
    except (ValueError, RecursionError):
        return {}


def plan_from_json(place: str, data: bytes, environ: Mapping[str, str]) -> tuple[Plan, dict[str, str]]:
    """The plan with its secrets from `environ`, and the placeholders that `environ` lacks. Raises InputError."""
    try:
        unresolved: dict[str, str] = {}
        plain = expand(msgspec.json.decode(data), environ, unresolved)
        _must_be_readable(place, plain)
        plan = msgspec.convert(plain, Plan)
        if cells_of(plan) > _MOST_CELLS:
            raise ValueError(f"it has {cells_of(plan):,} cells, and a run has at most {_MOST_CELLS:,}")
        if plan.gate is not None:
            from evalwright.stores.stored_gates import gate_mistake

            if mistake := gate_mistake(plan.gate, format_of_run(plan)):
                raise ValueError(mistake)
        if plan.seal and plan.seal != _seal_of(msgspec.json.decode(data), create=False):
            plan.seal = ""
        plan.started_at = _in_utc(plan.started_at)
        return plan, unresolved
    except (ValueError, RecursionError) as error:
        raise InputError(Problem(place, f"is not a valid plan of a run: {error}")) from error


def _must_be_readable(place: str, plain: Any) -> None:
    """Raise InputError if a later major version wrote the plan, or a variant in it."""
    if not isinstance(plain, dict):
        return
    listed = plain.get("variants")
    variants = listed if isinstance(listed, list) else []
    marked = [
        ("", plain),
        *((f"variants[{i}].", variant) for i, variant in enumerate(variants) if isinstance(variant, dict)),
    ]
    for key, document in marked:
        if (version := document.get("schema_version")) != SCHEMA_VERSION and is_newer(version):
            raise newer_version(place, str(version), key=f"{key}schema_version")


def _seal_of(plain: Mapping[str, Any], *, create: bool) -> str:
    """The seal of a plan as it is stored; empty if the account has no key and none can be created."""
    key = _key(create)
    if key is None:
        return ""
    parts = {name: plain.get(name) for name in _SEALED}
    # without an executor, a plan has the seal that it had before executors existed
    if executor := (plain.get("run") or {}).get("executor"):
        parts["executor"] = executor
    sealed = msgspec.json.encode(parts, order="deterministic")
    return hashlib.blake2b(sealed, key=key, digest_size=16).hexdigest()


def _key(create: bool) -> bytes | None:
    """The user's key, which never leaves the account; `create` makes one if there is none."""
    try:
        path = _key_file().expanduser()
        if create and not path.exists():
            create_file(path, os.urandom(_KEY_BYTES))
        key = path.read_bytes()
    except (OSError, RuntimeError):  # no home, or a read-only one
        return None
    return key if len(key) == _KEY_BYTES else None


def _key_file() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state") / "evalwright" / "key"


def missing_key() -> str:
    """The file that would have the user's key; empty if there is one."""
    return str(_key_file()) if _key(create=False) is None else ""


def summary_to_plain(summary: RunSummary) -> dict[str, Any]:
    """The summary as mappings, lists and scalars; dates as ISO 8601 text with `Z`."""
    plain: dict[str, Any] = msgspec.to_builtins(summary)
    return plain


def summary_to_yaml(plain: dict[str, Any]) -> bytes:
    """The summary as YAML that any loader reads back to the same strings."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(plain, Dumper=dumper, sort_keys=False, allow_unicode=True, width=1000)
    return text.encode()


_converting = threading.Lock()
"""msgspec (0.22) looks into a type when it is first converted to; when threads that merged did so at once, the process
ended with a segmentation fault."""


def summary_from_yaml(data: bytes) -> RunSummary:
    """The summary in `data`; fields that older versions lack get defaults. Raises ValueError for anything else."""
    import yaml

    try:
        plain = yaml.load(data, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"not valid YAML: {error}") from error
    with _converting:
        summary = msgspec.convert(plain, RunSummary, strict=False)
    summary.started_at, summary.finished_at = _in_utc(summary.started_at), _in_utc(summary.finished_at)
    return summary


def _in_utc(moment: datetime) -> datetime:
    """Raises ValueError for a time near the year 1 or 9999 that UTC does not have."""
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{moment.isoformat()} is out of range in UTC") from error


def newer_version(file: str, version: str, line: int | None = None, key: str = "schema_version") -> InputError:
    """The error for a file that a later major version of evalwright wrote."""
    message = f"has version {version}, but this evalwright reads versions 1.x; install a newer one"
    return InputError(Problem(file, message, line, key))


class Masked:
    """Masks with the given masker, or else masks the secrets that the environment has at the first write."""

    def __init__(self, masker: Masker | None) -> None:
        self._given_masker = masker

    @cached_property
    def _masker(self) -> Masker:
        return Masker.of({}, os.environ) if self._given_masker is None else self._given_masker


class PlanSecrets:
    """What readers and writers of a stored run have in common: its plan, with the secrets that they are given."""

    plan: Plan | None
    unresolved: list[str]

    def __init__(
        self, place: str, stored: Callable[[], bytes | None], masker: Masker, variables: Mapping[str, str]
    ) -> None:
        """`stored` reads the plan, which messages call `place`; `variables` replace `${NAME}` in it."""
        self._place, self._stored, self._given_masker = place, stored, masker
        self._recorded = False
        self._fill_in(stored(), variables)

    def _fill_in(self, stored: bytes | None, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self.plan, self._placeholders = (None, {}) if stored is None else plan_from_json(self._place, stored, variables)
        self.unresolved = sorted(self._placeholders)

    @cached_property
    def _masker(self) -> Masker:
        """Made when it is first needed: most readers mask nothing."""
        return self._given_masker if self.plan is None else self._given_masker.keeping(reserved_words(self.plan))

    def reveal(self, variables: Mapping[str, str]) -> dict[str, str]:
        """See `RunReader.reveal`."""
        stored = self._stored()
        named = named_in_plan(stored, variables)
        self._masker = self._masker.hiding(named)
        self._fill_in(stored, {**variables, **self._masker.secrets})
        return named

    def mask(self, text: str) -> str:
        """See `RunReader.mask`."""
        return self._masker.mask_text(text)

    def mask_cases(self, masked: bool = True) -> None:
        """See `RunReader`."""
        self._recorded = masked
