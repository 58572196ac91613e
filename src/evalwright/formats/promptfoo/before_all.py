"""`beforeAll`: a suite as its extensions change it before anything is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from evalwright.errors import InputError
from evalwright.files.key_paths import as_written
from evalwright.files.yaml import Document
from evalwright.formats.promptfoo.cases import Tests
from evalwright.formats.promptfoo.extensions import BEFORE_ALL, concerned, hooked
from evalwright.formats.promptfoo.faults import ScriptError
from evalwright.formats.promptfoo.origin import Origin
from evalwright.formats.promptfoo.prompts import AuthoredPrompt
from evalwright.formats.promptfoo.providers import Provider
from evalwright.formats.promptfoo.shapes import CONFIG, what_fits
from evalwright.formats.promptfoo.sources import split_function
from evalwright.formats.promptfoo.values import as_javascript
from evalwright.formats.shared.findings import Findings
from evalwright.session.imports import executes_code

__all__ = ["HookedParts", "after_before_all", "prompts_shown"]

_TAKEN = ("prompts", "tests", "scenarios", "defaultTest", "nunjucksFilters", "derivedMetrics")
"""What hooks may change."""


class HookedParts(NamedTuple):
    """What hooks may have changed besides the tests."""

    prompts: list[AuthoredPrompt]
    settings: dict[str, Any]
    """The configuration."""
    variables: Mapping[str, str] = MappingProxyType({})
    """What they set in their environment, such as the cookie of a session."""


def after_before_all(
    parts: HookedParts, providers: Sequence[Provider], tests: Tests, folder: Path, origin: Origin
) -> HookedParts:
    """The suite after `beforeAll`; `tests` take over what it changed. Mistakes in that are reported at the hook's file.

    If nothing may be executed, that is reported instead. If mistakes were found before, nothing is called.
    """
    raw = parts.settings
    extensions = concerned(raw.get("extensions", ()), BEFORE_ALL)
    if not extensions:
        return parts
    files = ", ".join(dict.fromkeys(split_function(named)[0] for named in extensions))
    if not executes_code():
        tests.skipped.append(origin.problem(f"what beforeAll of {files} changes is missing: it is not executed"))
        origin.warn(f"beforeAll of {files} was not executed: it may change tests and prompts")
        return parts
    suite = {
        "description": raw.get("description"),
        "prompts": prompts_shown(parts.prompts),
        "providers": [{"id": provider["id"], "label": provider["label"]} for provider in providers],
        **tests.shown(),
        "nunjucksFilters": raw.get("nunjucksFilters", {}),
        "derivedMetrics": raw.get("derivedMetrics", []),
        "extensions": raw["extensions"],
    }
    if origin.findings.problems:
        return parts
    from evalwright.sandbox.workers import awaited_now

    before = as_javascript({"suite": suite})
    variables: dict[str, str] = {}
    try:
        after = awaited_now(hooked(extensions, str(folder), BEFORE_ALL, before, _with_changes, variables))["suite"]
    except (ScriptError, InputError) as error:
        origin.report(str(error))
        return parts
    changed = {key: after[key] for key in _TAKEN if after[key] != before["suite"][key]}
    made = Origin(Findings(Path(files), Document(files, {})), ("suite",))
    made.findings.problems, made.findings.warnings = origin.findings.problems, origin.findings.warnings
    tests.take(changed, made)
    prompts = _prompts_in(changed["prompts"], parts, made.at("prompts")) if "prompts" in changed else parts.prompts
    settings = {key: value for key, value in changed.items() if key in ("nunjucksFilters", "derivedMetrics")}
    return HookedParts(prompts, {**raw, **what_fits(settings, CONFIG, made)}, variables)


def _with_changes(context: dict[str, Any], returned: Any) -> dict[str, Any]:
    suite = returned.get("suite") if isinstance(returned, Mapping) else None
    if not isinstance(suite, Mapping):
        raise ScriptError(f"expected the context with its suite, or nothing; found {as_written(returned)}")
    if missing := [key for key in _TAKEN if key not in suite]:
        raise ScriptError(f"it returned a suite without {', '.join(missing)}")
    return {"suite": {**context["suite"], **{key: suite[key] for key in _TAKEN}}}


def prompts_shown(prompts: Sequence[AuthoredPrompt]) -> list[dict[str, Any]]:
    """Prompts in the form in which promptfoo shows them to hooks."""
    keys = ("label", "id", "config")
    return [{"raw": _text(prompt), **{key: prompt[key] for key in keys if key in prompt}} for prompt in prompts]


def _text(prompt: AuthoredPrompt) -> str:
    if "raw" in prompt:
        return str(prompt["raw"])
    file, name = prompt["function"]
    return f"file://{file}:{name}" if name else f"file://{file}"


def _prompts_in(returned: Any, parts: HookedParts, origin: Origin) -> list[AuthoredPrompt]:
    """The prompts that a hook returned; those that it left as they were are the same, functions included."""
    if not isinstance(returned, list):
        origin.report(f"expected a list of prompts, found {as_written(returned)}")
        return parts.prompts
    shown = as_javascript(prompts_shown(parts.prompts))
    prompts: list[AuthoredPrompt] = []
    for i, prompt in enumerate(returned):
        if prompt in shown:
            prompts.append(parts.prompts[shown.index(prompt)])
        elif (
            isinstance(prompt, dict) and isinstance(prompt.get("raw"), str) and isinstance(prompt.get("label", ""), str)
        ):
            extra = {key: prompt[key] for key in ("id", "config") if prompt.get(key) is not None}
            prompts.append({"raw": prompt["raw"], "label": prompt.get("label") or prompt["raw"], **extra})
        else:
            origin.at(i).report(f"expected a prompt with raw and label, found {as_written(prompt)}")
    return prompts
