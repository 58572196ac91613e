"""How the members of a `composite` of an AgentEvals file are put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.evaluators.combined.aggregators import AGGREGATORS, MEMBER_RESULTS
from evalwright.files.key_paths import as_written
from evalwright.formats.agentv.message_files import Files
from evalwright.formats.agentv.notes import Notes
from evalwright.formats.agentv.prompts import missing_file, text_or_file
from evalwright.formats.agentv.vocabulary import NEWER_AGGREGATORS

__all__ = ["read_aggregator"]

DEFAULT_PROMPT = f"Judge the whole by the results of its parts:\n\n{{{{{MEMBER_RESULTS}}}}}\n"
_OF_JUDGE = ("prompt", "target", "temperature", "max_tokens")


def read_aggregator(
    written: Any, members: Sequence[Mapping[str, Any]], place: str, files: Files, report: Notes
) -> dict[str, Any]:
    """The aggregator's configuration, without the keys that nothing reads; empty if none is written."""
    if written is None:
        return {}
    if not isinstance(written, dict):
        report(place, f"aggregator: expected a mapping with a type, found {as_written(written)}")
        return {}
    kind = str(written.get("type", "")).replace("-", "_")
    kind = NEWER_AGGREGATORS.get(kind, kind)
    rule = {**written, "type": kind}
    if kind in AGGREGATORS:
        keys = AGGREGATORS[kind]
        known = {"type", *(_OF_JUDGE if keys is None else keys)}
        report.unknown_keys(place, written, known)
        rule = {key: value for key, value in rule.items() if key in known}
    names = [member["name"] for member in members]
    for name in rule["weights"] if isinstance(rule.get("weights"), dict) else ():
        if name not in names:
            report.warn(f"{place}.weights", f"weights: no member {name!r} (there are: {', '.join(names)})")
    if kind == "llm_judge":
        rule["prompt"] = _prompt(written.get("prompt", DEFAULT_PROMPT), f"{place}.prompt", files, report)
    return rule


def _prompt(written: Any, place: str, files: Files, report: Notes) -> str:
    if not isinstance(written, str) or not written.strip():
        report(place, f"prompt: expected a text or the name of a file, found {as_written(written)}")
        return ""
    path, text = (None, written) if "\n" in written else text_or_file(written, place, files, report)
    if path is None and (problem := missing_file(written, files)):
        report(place, problem)
    elif MEMBER_RESULTS not in (text or ""):
        report.warn(place, f"prompt: the judge sees no results of the members without {{{{{MEMBER_RESULTS}}}}}")
    return text or ""
