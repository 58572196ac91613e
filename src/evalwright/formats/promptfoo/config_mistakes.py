"""Mistakes that only the whole configuration shows: in its keys, comparisons and derived metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.files.key_paths import as_written
from evalwright.formats.promptfoo.arithmetic import mistake_in
from evalwright.formats.promptfoo.kinds import COMPARISONS
from evalwright.formats.promptfoo.origin import Origin
from evalwright.formats.promptfoo.shapes import CONFIG, DERIVED, warn_of_others, what_fits
from evalwright.formats.promptfoo.sources import SCRIPTS, Sources, in_file, split_function
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case

__all__ = ["check_comparisons", "check_derived", "check_keys"]

_WITHOUT_EFFECT = (
    "$schema", "tags", "sharing", "outputPath", "metadata", "tracing", "writeLatestResults",
)  # fmt: skip
_RED_TEAM = ("redteam", "plugins", "strategies")
"""Keys of promptfoo's red team, which makes tests of its own."""


def check_keys(raw: Mapping[str, Any], sources: Sources, origin: Origin) -> None:
    """Report keys of the whole configuration that cannot be used, and warn of those that have no effect."""
    for key in _RED_TEAM:
        if key in raw and (raw.get("tests") or raw.get("scenarios")):
            origin.at(key).warn("promptfoo's red team is not run: only the tests of this file are", unread=True)
        elif key in raw:
            origin.at(key).report(
                f"{key!r} is of promptfoo's red team, which is not supported, and there are no other tests:"
                " expected the key tests"
            )
    for key in raw:
        if key == "assert":
            origin.at(key).warn("a list of assertions up here is never read: write defaultTest.assert")
        elif key in _WITHOUT_EFFECT:
            hint = "; use --out" if key == "outputPath" else ""
            origin.at(key).warn(f"this key has no effect here{hint}", unread=True)
        elif key not in (*CONFIG, *_RED_TEAM) and not key.startswith("x-") and not origin.findings.lends(key):
            origin.at(key).warn_unread(CONFIG)
    for i, named in enumerate(raw.get("extensions", ())):
        place = origin.at("extensions", i)
        if not (in_file(named) and split_function(named)[0].endswith(SCRIPTS)):
            place.report(
                f"expected file://FILE:FUNCTION with a file of Python or JavaScript, found {as_written(named)}"
            )
        sources.code(named, place)


def check_comparisons(cases: Sequence[Case], variants: Sequence[Variant], origin: Origin) -> None:
    """Report assertions that compare columns if there is nothing to compare, each once however many tests have
    it."""
    kinds = {frozenset(str(spec.called) for spec in case.evaluators or ()) for case in cases}
    for kind in sorted(COMPARISONS & frozenset().union(*kinds)):
        if len(variants) == 1:
            origin.report(f"{kind} compares the outputs of several prompts or providers: there is one column")
    if any("max-score" in group and group <= COMPARISONS for group in kinds):
        origin.report("max-score needs another assertion in the same test, whose score it uses")


def check_derived(raw: Mapping[str, Any], origin: Origin) -> None:
    """Report derived metrics that cannot be calculated."""
    for i, metric in enumerate(raw.get("derivedMetrics", ())):
        place = origin.at("derivedMetrics", i)
        if isinstance(metric, dict):
            warn_of_others(metric, DERIVED, place)
            metric = what_fits(metric, DERIVED, place)
        if not isinstance(metric, dict) or not {"name", "value"} <= metric.keys():
            place.report(f"expected a mapping with name and value, found {as_written(metric)}")
        elif (mistake := mistake_in(str(metric.get("value")))) is not None:
            place.at("value").report(mistake)
