"""What one suite says and another does not, compared part by part as they were read; and keys that nothing reads."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

import msgspec

from evalwright.errors import Problem, shorten
from evalwright.files.credentials import credentials
from evalwright.files.masker import masked_in
from evalwright.formats.shared.references import NAMED, shown
from evalwright.formats.shared.without_defaults import brief
from evalwright.model.case import EvalCase
from evalwright.model.plan import EvaluatorSpec, Variant
from evalwright.model.recordings import recorded_of
from evalwright.model.snapshot import Case, snapshot
from evalwright.model.suite import Suite
from evalwright.registry import format_of, formats, resolve

__all__ = ["differences", "unread_keys"]

_PARTS = (
    "name", "variants", "evaluators", "pass_criteria", "run", "gate", "workspace", "prices", "mirrors", "metadata",
    "evaluators_by_case", "totals",
)  # fmt: skip
_MISSING: Any = object()
_MOST_SHOWN = 60

_OF_THE_RUNNER = ("timeout_seconds", "concurrency")


def differences(original: Suite, written: Suite) -> Iterator[Problem]:
    """One problem for each value that differs: the case, or `suite`, as its file, and the path of the value as its key.

    The cases of both are read once, side by side.
    """
    for part in _PARTS:
        old, new = (msgspec.to_builtins(_part(suite, part)) for suite in (original, written))
        yield from _unlike("suite", part, old, new)
    for old_case, new_case in zip_longest(original.cases, written.cases):
        yield from _case(old_case, new_case)


def _case(old: EvalCase | Case | None, new: EvalCase | Case | None) -> Iterator[Problem]:
    if old is None or new is None:
        there = old or new
        assert there is not None
        yield Problem(f"case {there.id}", "is missing in the new file" if new is None else "is only in the new file")
        return
    was, became = _values(old), _values(new)
    before, error = (values.get("extra", {}).get("load_error") for values in (was, became))
    if before is not None and before != error:
        yield Problem(f"case {old.id}", f"could not be read in the original: {before}")
        return
    if error is not None and before is None:
        yield Problem(f"case {old.id}", f"could not be read in the new file: {error}")
        return
    specs = [values.pop("evaluators") for values in (was, became)]
    for key, text in _texts_with_variables("", was):
        names = ", ".join(dict.fromkeys(NAMED.findall(text)))
        yield Problem(f"case {old.id}", f"only the original puts variables into cases, here {names}", key=key)
    yield from _unlike(f"case {old.id}", "", shown(was), shown(became))
    yield from _unlike(f"case {old.id}", "evaluators", *specs)


def _texts_with_variables(key: str, value: Any) -> Iterator[tuple[str, str]]:
    """The texts of a case that refer to variables, with their paths."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _texts_with_variables(f"{key}.{name}" if key else str(name), item)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _texts_with_variables(f"{key}[{i}]", item)
    elif isinstance(value, str) and NAMED.search(value):
        yield key, value


def _values(case: EvalCase | Case) -> dict[str, Any]:
    """The case as it is stored, with its recorded trace but without the times at which that was read."""
    stored = snapshot(case)
    values: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(stored))
    recorded = recorded_of(stored)
    values["recorded"] = msgspec.json.decode(msgspec.json.encode(brief(recorded)))
    if values["evaluators"] is not None:
        values["evaluators"] = {spec["name"]: _meant_evaluator(spec) for spec in values["evaluators"]}
    if isinstance(named := values.get("extra", {}).get("input_files"), list):
        values["extra"]["input_files"] = [os.path.normpath(name) for name in named]
    if values["expected"].get("conversation") is None:
        values["expected"].pop("conversation", None)
    for trace in values["recorded"] if isinstance(recorded, list) else [values["recorded"]]:
        if trace is not None:
            trace.pop("started_at", None)
            trace.pop("finished_at", None)
    return values


def _part(suite: Suite, part: str) -> Any:
    if part == "totals":
        return suite.totals or suite.dialect
    if part == "variants":
        return [_meant_variant(variant) for variant in suite.variants]
    if part == "evaluators":
        return {spec.name: _meant_evaluator(msgspec.to_builtins(spec)) for spec in suite.evaluators}
    return getattr(suite, part)


def _unlike(place: str, key: str, old: Any, new: Any) -> Iterator[Problem]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            inner = f"{key}.{name}" if key else str(name)
            yield from _unlike(place, inner, old.get(name, _MISSING), new.get(name, _MISSING))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _unlike(place, f"{key}[{i}]", one, other)
    elif not _is_equal(old, new):
        name = key.rpartition(".")[2]
        yield Problem(place, f"{_value_text(name, old)} becomes {_value_text(name, new)}", key=key)


def _is_equal(old: Any, new: Any) -> bool:
    nan = old != old and new != new
    return nan or (old == new and isinstance(old, bool) == isinstance(new, bool))


def _value_text(key: str, value: Any) -> str:
    if value is _MISSING:
        return "nothing"
    text = str(value).lower() if isinstance(value, bool) else "null" if value is None else repr(value)
    for _, secret in credentials({key: value}):
        text = masked_in(text, secret)
    text = str(shown(text))
    return shorten(text, _MOST_SHOWN)


def unread_keys(suite: Suite) -> Iterator[Problem]:
    """One problem for each key that nothing reads, with its path."""
    reported = set()
    for problem in (*suite.warnings, *getattr(suite.cases, "unknown_keys", tuple)()):
        if problem.unread:
            reported.add(problem.key)
            yield Problem("suite", problem.message, key=problem.key)
    finder = format_of(suite.dialect).unread
    for key in resolve(finder)(suite.document) if finder is not None else ():
        if key not in reported:
            yield Problem("suite", "has no effect here", key=key)


def _meant_variant(variant: Variant) -> dict[str, Any]:
    """A variant as plain data, without the keys that `eval.yaml` gives both the target and the runner."""
    plain = msgspec.to_builtins(variant)
    # It turns answers that other formats accept into errors: no conversion changes what a working target does.
    del plain["evalh_rules"]
    config = {key: value for key, value in variant.config.items() if key not in _OF_THE_RUNNER}
    return _normalized_by_formats({**plain, "config": config})


def _meant_evaluator(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The same for an evaluator as plain data, and for the members of a composite."""
    config = dict(plain.get("config", {}))
    if isinstance(config.get("cwd"), str):
        config["cwd"] = os.path.normpath(config["cwd"])
    if plain["type"] == "composite":
        if (config.get("aggregator") or {}).get("type") != "code_judge":
            config.pop("folder", None)
        members = [msgspec.convert(member, EvaluatorSpec) for member in config["evaluators"]]
        config["evaluators"] = [_meant_evaluator(msgspec.to_builtins(member)) for member in members]
    return _normalized_by_formats({**plain, "config": config})


def _normalized_by_formats(data: dict[str, Any]) -> dict[str, Any]:
    """Normalized by every format: a suite of one may use targets and evaluators of another."""
    for suite_format in formats():
        if suite_format.normalize is not None:
            data = resolve(suite_format.normalize)(data)
    return data
