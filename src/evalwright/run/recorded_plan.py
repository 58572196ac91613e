"""The evaluators of a plan as they have to judge stored traces, which have a mask in place of each secret."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from evalwright.evaluators.build import declared
from evalwright.files.masker import MASKED, with_texts_changed
from evalwright.model.plan import EvaluatorSpec, Plan
from evalwright.model.protocols import RunReader
from evalwright.registry import knows

__all__ = ["as_traces_record"]


def as_traces_record(plan: Plan, run: RunReader) -> Plan:
    """The plan with secrets masked in what its evaluators compare with; the plan itself if there are none.

    Otherwise one that looks for a secret would never find it. Judges and users' code call others with their
    configuration, which stays.
    """
    unset = [f"${{{name}}}" for name in run.unresolved]

    def mask(text: str) -> str:
        for placeholder in unset:  # of a secret that this environment does not have
            text = text.replace(placeholder, MASKED)
        return run.mask(text)

    evaluators = [_as_recorded(spec, mask) for spec in plan.evaluators]
    return plan if evaluators == plan.evaluators else msgspec.structs.replace(plan, evaluators=evaluators)


def _as_recorded(spec: EvaluatorSpec, mask: Callable[[str], str]) -> EvaluatorSpec:
    return msgspec.structs.replace(spec, config=_config(spec.type, spec.config, mask))


def _config(type_name: str, config: dict[str, Any], mask: Callable[[str], str]) -> dict[str, Any]:
    if type_name == "composite":
        return {**config, "evaluators": [_member(member, mask) for member in config.get("evaluators") or ()]}
    only_compares = knows("evaluators", type_name) and declared("evaluators", type_name).looks
    return with_texts_changed(config, mask) if only_compares else config


def _member(member: Any, mask: Callable[[str], str]) -> Any:
    """A member of a composite; in a plan that somebody edited it may be anything, which building it then reports."""
    if not isinstance(member, dict) or not isinstance(member.get("config"), dict):
        return member
    return {**member, "config": _config(str(member.get("type")), member["config"], mask)}
