"""Who made a stored run, and with which settings it may be resumed or re-evaluated: its own, or a suite's."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from evalwright.errors import EvalwrightError, InputError, Problem, did_you_mean
from evalwright.files.paths import import_folders
from evalwright.files.placeholders import variable_of
from evalwright.model.plan import EvaluatorSpec, Plan, Variant
from evalwright.model.protocols import RunReader
from evalwright.model.snapshot import evaluator_digests
from evalwright.run.stored_run import PLAN_LOST, has_lost_its_plan
from evalwright.run.used_files import file_digest_of
from evalwright.stores.documents import missing_key
from evalwright.stores.local_files.lines import unresolved_in

if TYPE_CHECKING:
    from evalwright.model.suite import Suite

__all__ = [
    "Runnable",
    "Trust",
    "acts",
    "judged_by_suite",
    "may_judge",
    "must_be_own",
    "runnable",
    "suite_here",
    "with_evaluators",
]


class Trust(NamedTuple):
    """What the user said about a stored run that is to be resumed: a suite of their own, or that it may be trusted."""

    suite: Suite | None = None
    run: bool = False
    plan: Plan | None = None
    """The plan that the suite gives for the same command line, once the cases were found to be the stored ones."""


class Runnable(NamedTuple):
    """A run that can be resumed: with what it stored, or with its suite if secrets are missing there."""

    suite: Suite | None = None
    foreign: bool = False
    """Nothing that was stored is executed, called or filled in, because another user may have written it."""
    plan: Plan | None = None
    """The plan that is used instead of the stored one."""
    unseen: bool = False
    """The cases were not compared with the seal, because no cell is left that would use them."""

    @property
    def secrets(self) -> Mapping[str, str]:
        return {} if self.suite is None else self.suite.secrets

    @property
    def environment(self) -> Mapping[str, str]:
        return {} if self.suite is None else self.suite.environment

    def plan_of(self, stored: Plan) -> Plan:
        """The stored plan with the secrets that are written in the suite's file."""
        if self.plan is not None:
            return self.plan
        if self.suite is None:
            return stored
        if self.foreign:
            return _planned_by(self.suite, stored)
        authored = {variant.name: variant.config for variant in self.suite.variants}
        variants = [
            msgspec.structs.replace(v, config={**authored.get(v.name, {}), "target": v.config.get("target")})
            if "target" in v.config
            else msgspec.structs.replace(v, config=authored.get(v.name, v.config))
            for v in stored.variants
        ]
        return msgspec.structs.replace(stored, variants=variants, mirrors=self.suite.mirrors)


def _planned_by(suite: Suite, stored: Plan) -> Plan:
    """The stored plan, with everything that is executed, called or written taken from a suite."""
    from evalwright.run.options import RunOptions
    from evalwright.run.plan import plan_of

    plan = plan_of(suite, RunOptions())
    return msgspec.structs.replace(
        stored,
        variants=plan.variants,
        evaluators=plan.evaluators,
        mirrors=plan.mirrors,
        exports=plan.exports,
        workspace=plan.workspace,
        import_paths=plan.import_paths,
        config_path=plan.config_path,
        dialect=plan.dialect,
        run=msgspec.structs.replace(stored.run, executor=plan.run.executor),
    )


def runnable(reader: RunReader, trust: Trust, *, idle: bool = False) -> Runnable:
    """How a run is to be resumed: with secrets from its suite's files if the environment lacks them.

    If a run is `idle`, its cases are not checked, which takes a second for a million.

    Raises InputError if there is no plan, if a secret is not available, and for another user's run without a suite of
    the user's own.
    """
    from evalwright.run.plan import config_hash

    plan = reader.plan
    if plan is None and has_lost_its_plan(reader):
        raise InputError(Problem(reader.location, PLAN_LOST))
    if plan is None:
        raise InputError(f"{reader.location} was not written by evalwright: it can be re-evaluated, not resumed")
    if trust.plan is not None:
        return Runnable(trust.suite, plan=trust.plan)
    unseen = idle and plan.seal != ""
    if not (trust.run or unseen or _is_own(reader, plan)):
        return Runnable(_same_suite(reader.location, plan, trust.suite or _suite_here(plan)), foreign=True)
    owners = [(v.name, v.config) for v in plan.variants] + [(m.type, m.config) for m in plan.mirrors]
    missing = [name for name in reader.unresolved if variable_of(name) not in os.environ]
    lacking = [(owner, name) for owner, config in owners for name in missing if _stands_in(name, config)]
    in_case = None if idle else _lacking_in_case(reader, os.environ)
    if not lacking and in_case is None:
        return Runnable(unseen=unseen)
    for suite in (trust.suite, _suite_of_origin(plan)):
        if suite is not None and config_hash(suite) == plan.config_hash:
            # the suite may have taken the secret from a variable that is no longer set
            in_case = in_case and _lacking_in_case(reader, {**os.environ, **suite.secrets})
            if in_case is None:
                return Runnable(suite, unseen=unseen)
    owner, name = in_case or (f"the configuration of {lacking[0][0]!r}", lacking[0][1])
    raise InputError(
        f"{owner} needs the secret {name}, which is never stored: "
        f"set the environment variable {name}, or keep {plan.config_path} as it was when the run started"
    )


def _lacking_in_case(reader: RunReader, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """A case and the name of a secret in it that `environ` lacks: it would be sent, and compared, as `${NAME}`."""
    lines: Callable[[], Iterable[bytes]] = getattr(reader, "case_lines", tuple)  # those of other stores are whole
    for case, name in unresolved_in(lines(), environ):
        if (variable := variable_of(name)) not in environ:
            return f"the case {case!r}", variable
    return None


def must_be_own(reader: RunReader, plan: Plan) -> None:
    """Raises InputError for another user's run, and for one whose cases differ from those that were sealed."""
    if not _is_own(reader, plan):
        raise _not_own(reader.location)


def may_judge(reader: RunReader, plan: Plan, suite: Suite | None, trusted: bool) -> bool:
    """Whether re-evaluation may use what the run stored: it is the user's own, or explicitly `trusted`.

    Raises InputError for another user's run whose evaluators would execute code, start programs or call models, unless
    a suite says how to judge instead.
    """
    if trusted or _is_own(reader, plan):
        return True
    if plan.evaluators_by_case or (suite is None and any(map(acts, plan.evaluators))):
        raise _not_own(reader.location)
    return False


def _is_own(reader: RunReader, plan: Plan) -> bool:
    """Whether the plan has the user's seal, and its cases are those that were sealed with it.

    Stores that do not provide the cases as stored have no folder or database that others could change.
    """
    if not plan.seal:
        return False
    lines: Callable[[], Iterable[bytes]] | None = getattr(reader, "case_lines", None)
    blocks = getattr(reader, "case_blocks", lines)
    if blocks is None:
        return True
    digest = hashlib.sha256()
    for block in blocks():
        digest.update(block)
    return digest.hexdigest() == plan.cases_sha256


def judged_by_suite(stored: Plan, add: str | None, suite: Suite | None) -> Plan:
    """Like `with_evaluators`, for another user's run: only evaluators of the suite judge, and nothing is exported.

    Without a suite, only evaluators that merely look at traces judge.
    """
    offered = stored.evaluators if suite is None else suite.evaluators
    if add is not None and add not in (known := sorted(spec.name for spec in offered)):
        raise InputError(f"no evaluator {add!r}{did_you_mean(add, known)} (there are: {', '.join(known)})")
    paths = [] if suite is None else import_folders(suite.source)
    unexported = msgspec.structs.replace(stored, exports=[], mirrors=[], import_paths=paths)
    return with_evaluators(unexported, add, suite)


def acts(spec: EvaluatorSpec) -> bool:
    """Whether an evaluator does more than look at a trace."""
    from evalwright.evaluators.build import declared

    says = declared("evaluators", spec.type)
    return says.imports_code or says.asks is not None or spec.type in ("code_judge", "command", "composite")


def suite_here(reader: RunReader) -> Suite | None:
    """The suite of a run that another user made, if it is unchanged, and in the project in which the user works."""
    plan = reader.plan
    return None if plan is None or _is_own(reader, plan) else _suite_here(plan)


def _suite_here(plan: Plan) -> Suite | None:
    if not plan.config_path or not Path(plan.config_path).is_relative_to(Path.cwd()):
        return None
    from evalwright.run.plan import config_hash

    suite = _suite_of_origin(plan)
    return suite if suite is not None and config_hash(suite) == plan.config_hash else None


def _same_suite(location: str, plan: Plan, suite: Suite | None) -> Suite:
    """The suite itself. Raises InputError for none, and for one with which the run was not made."""
    from evalwright.run.plan import config_hash

    if suite is None or plan.evaluators_by_case:  # cases are stored, and with them their own evaluators
        raise _not_own(location)
    if config_hash(suite) != plan.config_hash or _systems(suite.variants) != _systems(plan.variants):
        raise InputError(f"{location} was not made with {suite.source} as it is now; {_HOW}")
    return suite


def _systems(variants: Sequence[Variant]) -> list[Any]:
    return [(variant.name, variant.adapter, variant.config.get("target")) for variant in variants]


_HOW = "--trust-run (in Python: trust_run=True) uses what the run itself says"


def _not_own(location: str) -> InputError:
    why = "another account made it, it was changed since, or no key could be kept where it was made"
    if key := missing_key():
        why = f"there is no key in {key} to tell it by, which the first run of an account makes if it can be written"
    return InputError(
        f"{location} is not known to be a run of your own: {why}. Continuing would execute and call what it names, "
        f"with variables of your environment. Name your own suite with --suite FILE; {_HOW}"
    )


def _stands_in(name: str, config: Mapping[str, Any]) -> bool:
    return f"${{{name}}}" in msgspec.json.encode(config).decode()


def with_evaluators(plan: Plan, add: str | None, suite: Suite | None) -> Plan:
    """The plan with the evaluators for a re-evaluation. Raises InputError for an unknown name."""
    from evalwright.run.plan import score_rules

    if add is None:
        if suite is None:
            return plan
        warnings = [*dict.fromkeys([*plan.warnings, *map(str, suite.warnings)])]
        return msgspec.structs.replace(
            plan,
            evaluators=suite.evaluators,
            evaluator_digests=evaluator_digests(suite.evaluators, file_digest_of),
            score_rules=score_rules(suite.evaluators),
            pass_criteria=suite.pass_criteria,
            warnings=warnings,
        )
    offered = {spec.name: spec for spec in plan.evaluators}
    if suite is None and add not in offered:
        suite = _suite_of_origin(plan)
    if suite is not None:
        offered |= {spec.name: spec for spec in suite.evaluators}
    if add not in offered:
        known = sorted(offered)
        raise InputError(f"no evaluator {add!r}{did_you_mean(add, known)} (there are: {', '.join(known)})")
    others = [spec for spec in plan.evaluators if spec.name != add]
    position = next((i for i, spec in enumerate(plan.evaluators) if spec.name == add), len(others))
    evaluators: list[EvaluatorSpec] = [*others[:position], offered[add], *others[position:]]
    digests = {**plan.evaluator_digests, **evaluator_digests([offered[add]], file_digest_of)}
    rules = {**plan.score_rules, **score_rules([offered[add]])}
    return msgspec.structs.replace(plan, evaluators=evaluators, evaluator_digests=digests, score_rules=rules)


def _suite_of_origin(plan: Plan) -> Suite | None:
    """The suite file as it is now, if it still exists and is valid: a new evaluator may have been added to it."""
    from evalwright.formats.loading import load_suite

    try:
        return load_suite(Path(plan.config_path), plan.dialect, to_run=False)
    except (EvalwrightError, OSError):
        return None
