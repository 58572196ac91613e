"""A configuration's settings for a run: `evaluateOptions`, and `commandLineOptions`, which take precedence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from evalwright.errors import InputError
from evalwright.files.key_paths import as_written
from evalwright.formats.promptfoo.numbering import own_repeat
from evalwright.formats.promptfoo.origin import Origin
from evalwright.formats.promptfoo.selection import mistaken_range
from evalwright.formats.promptfoo.shapes import COMMAND_LINE, RUNNING, what_fits
from evalwright.model.plan import RetryRule, RunSettings, Variant
from evalwright.model.snapshot import Case

__all__ = ["RunningOptions", "env_files"]

_FILTERS = {
    "filter_range": "filterRange", "filter_sample": "filterSample", "filter_sample_seed": "filterSampleSeed",
}  # fmt: skip
_WITHOUT_EFFECT = (
    "cache", "eventSource", "generateSuggestions", "interactiveProviders", "isRedteam",
    "showProgressBar", "silent", "silentErrors",
)  # fmt: skip
"""They concern promptfoo's own terminal, cache and server, as do all other `commandLineOptions`."""
_LIMITS = {"PROMPTFOO_EVAL_TIMEOUT_MS": "timeoutMs", "PROMPTFOO_MAX_EVAL_TIME_MS": "maxEvalTimeMs"}
"""Variables of the environment that set options which the configuration does not."""
_CONCURRENT = 4
_BACKOFF_SECONDS = 1.0


def env_files(raw: Mapping[str, Any]) -> list[str]:
    """The files with variables that a configuration names; a text may name several, with commas between them."""
    named = raw.get("commandLineOptions", {}).get("envPath", ())
    texts = [named] if isinstance(named, str) else named if isinstance(named, list) else ()
    return [name.strip() for text in texts for name in str(text).split(",")]


class RunningOptions:
    """The options of a configuration; those on the command line take precedence, those of the `environment` do not.

    Raises InputError for a variable of the environment that is no number.
    """

    def __init__(self, raw: Mapping[str, Any], origin: Origin, environment: Mapping[str, str]) -> None:
        self._given: dict[str, Any] = {
            key: _milliseconds(name, environment[name]) for name, key in _LIMITS.items() if environment.get(name)
        }
        for key in ("evaluateOptions", "commandLineOptions"):
            self._given |= _options(raw.get(key, {}), key, origin.at(key))

    def filters(self) -> dict[str, Any]:
        """The filters, under the names of the command-line options."""
        return {name: self._given[key] for name, key in _FILTERS.items() if key in self._given}

    def settings(
        self, options: Mapping[str, Any], in_turn: bool, cases: Iterable[Case]
    ) -> tuple[RunSettings, dict[str, int]]:
        """The settings of a run, and the `repeat` of tests without their own, if others have one.

        Calls that should be delayed are made one after the other, as by promptfoo.
        """
        most = options.get("max_concurrency") or self._given.get("maxConcurrency", _CONCURRENT)
        repeat = options.get("repeat") or self._given.get("repeat", 1)
        own = {own_repeat(case) for case in cases}
        trials = max((repeats or repeat for repeats in own), default=repeat)
        most = 1 if in_turn or self._given.get("delay") else most
        retry = RetryRule()
        if (more := options.get("max_retries")) is not None:
            retry = RetryRule(more + 1, ["http_5xx"], _BACKOFF_SECONDS, once=more == 0)
        settings = RunSettings(max_concurrency=most, trials=trials, retry=retry, evaluator_timeout_seconds=600.0)
        return settings, {"repeat": repeat} if own - {None} else {}

    def limited(self, variant: Variant) -> Variant:
        """The variant with the time limits and the delay that the options set for all calls."""
        if limit := self._given.get("timeoutMs"):
            variant = msgspec.structs.replace(variant, timeout_seconds=limit / 1000)
        if whole := self._given.get("maxEvalTimeMs"):
            variant = msgspec.structs.replace(variant, config={**variant.config, "max_seconds": whole / 1000})
        if delay := self._given.get("delay"):
            provider = {"delay": delay, **variant.config["provider"]}
            variant = msgspec.structs.replace(variant, config={**variant.config, "provider": provider})
        return variant


def _milliseconds(name: str, written: str) -> int:
    if not written.strip().isdecimal():
        raise InputError(f"{name}: expected milliseconds, found {as_written(written)}")
    return int(written)


def _options(written: dict[str, Any], key: str, origin: Origin) -> dict[str, Any]:
    for name in written:
        if name in _WITHOUT_EFFECT or (name not in COMMAND_LINE and key == "commandLineOptions"):
            origin.at(name).warn("this key has no effect here", unread=True)
        elif name not in RUNNING and key == "evaluateOptions":
            origin.at(name).warn_unread(RUNNING)
    options = {**what_fits(written, COMMAND_LINE, origin)}
    if "filterRange" in options and (mistake := mistaken_range(str(options["filterRange"]))):
        origin.at("filterRange").report(f"filterRange: {mistake}")
        del options["filterRange"]
    return options
