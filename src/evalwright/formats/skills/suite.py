"""The evals of a skill as a suite: each agent runs alternately with and without the skill."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem
from evalwright.files import yaml
from evalwright.files.key_paths import bracketed
from evalwright.files.strict_json import JsonFlaw, strict_json
from evalwright.formats.shared.findings import Findings
from evalwright.formats.skills import FORMAT
from evalwright.formats.skills.cases import skill_cases
from evalwright.formats.skills.detection import suite_in
from evalwright.formats.skills.evals import evals_of
from evalwright.formats.skills.skill import Skill, skill_of
from evalwright.formats.skills.variants import WITHOUT, baseline_variant_of, skill_variants
from evalwright.model.plan import Plugin, Price, RunSettings, Variant
from evalwright.model.snapshot import Case
from evalwright.model.suite import Suite
from evalwright.targets.build import build_target
from evalwright.workspaces.case_files import WORKSPACE_FILES

__all__ = ["JUDGE", "SKILL_WORKSPACE", "document_in", "load", "read_evals"]

JUDGE = "claude-sonnet-4-5"
"""The judge of the criteria, unless --judge-model names another."""
SKILL_WORKSPACE = Plugin("case_files")
_JUDGING_SECONDS = 600.0
_BETTER = {"claim": "better_than", "metric": "pass_rate", "alpha": 0.05, "on_undecided": "fail", "group": None}
_OF_PAIRS = {"margin": 0.0, "errors": "exclude", "allow_changed": False, "slices": [], "slice_margin": None}


def load(path: Path, variables: Mapping[str, str], *, to_run: bool = True, **options: Any) -> Suite:
    """The suite of a file of evals, or of a skill's folder. Raises InputError with every problem."""
    path = suite_in(path) or path if path.is_dir() else path
    document = document_in(path)
    findings = Findings(path, document)
    skill, cases = read_evals(path, document, findings, options)
    if to_run and cases and not options.get("agent"):
        findings.report((), "a run needs --agent: claude, codex, gemini, copilot, or a command line", absent=True)
    if to_run and not skill.complete and options.get("variants") != WITHOUT:
        findings.report((), f"a run needs the skill: there is no SKILL.md in {skill.root}", absent=True)
    findings.refuse(f"Invalid evals {path}")
    variants = skill_variants(skill, options)
    if to_run:
        _check(variants, findings)
    return Suite(
        name=skill.name,
        dialect=FORMAT.name,
        source=path,
        cases=cases,
        variants=variants,
        evaluators=[],
        evaluators_by_case=True,
        run=_settings(variants),
        gate=_gate(variants, options),
        workspace=SKILL_WORKSPACE,
        exports=_exports(options),
        prices=_prices(variants, findings) if to_run else {},
        document=document.value,
        files=_files(skill, cases),
        warnings=findings.warnings,
        metadata={"skill_name": skill.name, "skill_path": str(skill.root)},
    )


def read_evals(
    path: Path, document: yaml.Document, findings: Findings, options: Mapping[str, Any]
) -> tuple[Skill, list[Case]]:
    """The skill and its cases; mistakes and oddities are noted in `findings`."""
    value = document.value
    if path.suffix == ".json" and (flaw := _flaw_of(path)):
        findings.warn((), f"the original does not read this file: line {flaw.line}: {flaw}")
    skill = skill_of(path, value if isinstance(value, dict) else {}, findings)
    evals = evals_of(value, skill, path, findings)
    judge = options.get("judge_model") or JUDGE
    return skill, skill_cases(evals, skill, judge, expected_too=options.get("criteria") == "all")


def document_in(path: Path) -> yaml.Document:
    """The content of a file, parsed as YAML. Raises InputError, which reports flaws of JSON as such."""
    try:
        return yaml.load(path)
    except InputError:
        flaw = _flaw_of(path) if path.suffix == ".json" else None
        if flaw is None:
            raise
        message = f"cannot be read as JSON: {flaw}"
        raise InputError([Problem(str(path), message, flaw.line, bracketed(flaw.place))]) from None


def _flaw_of(path: Path) -> JsonFlaw | None:
    """Why a file is not JSON."""
    try:
        strict_json(path.read_bytes())
    except JsonFlaw as flaw:
        return flaw
    except (OSError, UnicodeDecodeError, RecursionError):
        return None  # reported by the YAML reader
    return None


def _check(variants: list[Variant], findings: Findings) -> None:
    """Raise InputError with everything wrong with the agent, each mistake once however many variants share it.

    What the agents will lack is noted in `findings`.
    """
    problems: dict[str, Problem] = {}
    for variant in variants:
        try:
            for warning in getattr(build_target(variant, []), "warnings", ()):
                findings.warn((), warning.message)
        except InputError as error:
            for problem in error.listed:
                # an agent that is not on this machine may be on the run's
                absent = problem.absent or problem.key == "allow_tools"
                problems.setdefault(problem.message, Problem("", problem.message, key="--agent", absent=absent))
    if problems:
        raise InputError(list(problems.values()), "The agent cannot be called:")


def _prices(variants: list[Variant], findings: Findings) -> dict[str, Price]:
    """The prices of the models given to the agents, for agents that count tokens without stating costs."""
    models = dict.fromkeys(variant.config["model"] for variant in variants if "model" in variant.config)
    if not models:
        return {}
    from evalwright.llm.prices import built_in_price, day_of_prices

    prices = {model: price for model in models if (price := built_in_price(model)) is not None}
    if prices:
        day = day_of_prices()
        findings.warn(
            (), f"where the agent does not say what {', '.join(prices)} cost, built-in prices of {day} are used"
        )
    return prices


def _files(skill: Skill, cases: list[Case]) -> list[Path]:
    """The files that a run reads besides the evals, including those in folders."""
    named = [Path(file) for case in cases for file in case.extra.get(WORKSPACE_FILES, {}).values()]
    inside = [file for path in named for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    own = [skill.root / "SKILL.md"] if skill.complete else []
    return [*own, *(file for file in dict.fromkeys(inside) if file.is_file())]


def _settings(variants: list[Variant]) -> RunSettings:
    return RunSettings(
        alternate=True, baseline_variant=baseline_variant_of(variants), evaluator_timeout_seconds=_JUDGING_SECONDS
    )


def _gate(variants: list[Variant], options: Mapping[str, Any]) -> dict[str, Any] | None:
    if options.get("gate") is None:
        return None
    baseline = baseline_variant_of(variants)
    if baseline is None:
        raise InputError(f"--gate better compares two variants: with one agent, and with the skill and {WITHOUT}")
    claim = {**_BETTER, **_OF_PAIRS, "against": baseline, "guards": {}}
    return {"kind": "claims", "claims": [claim], "conditions": None}


def _exports(options: Mapping[str, Any]) -> list[Plugin]:
    folder = options.get("benchmark")
    return [Plugin("skill_benchmark", {"path": str(Path(folder).absolute())} if folder else {})]
