"""Posts the summary of a run to Slack, Discord or Linear."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from evalwright.errors import InputError, Problem, counted, shorten
from evalwright.files.key_paths import as_written
from evalwright.model.summary import ComparisonReport, GateOutcome, RunSummary, VariantSummary
from evalwright.targets.http.config import endpoint_mistakes, header_mistakes

__all__ = ["Webhook"]

_TIMEOUT = 10.0
_MOST_CASES = 5
_LONGEST = 1900
"""Characters of a message; Discord accepts up to 2,000."""


class Webhook:
    """A message to Slack, Discord or Linear when the run ends.

    Keys: `platform` (slack, discord or linear), `url` ("" turns it off), `headers`, `timeout_seconds`.
    """

    config_keys: tuple[str, ...] = ("platform", "url", "headers", "timeout_seconds")

    def __init__(self, config: dict[str, Any]) -> None:
        problems = [Problem("", message, key=key) for key, message in _mistakes(config)]
        if problems:
            raise InputError(problems)
        self._body = _BODIES[config["platform"]]
        self._url: str = config["url"]
        self._headers: dict[str, str] = config.get("headers") or {}
        self._timeout = float(config.get("timeout_seconds", _TIMEOUT))

    def summary(self, summary: RunSummary) -> None:
        """Post the summary. Raises RuntimeError without the address, which is a secret."""
        if not self._url:
            return
        import httpx

        try:
            status = self._post(self._body(summary))
        except httpx.HTTPError as error:
            raise RuntimeError(f"{type(error).__name__}: the webhook could not be reached") from None
        if not 200 <= status < 300:
            raise RuntimeError(f"the webhook answered with HTTP status {status}")

    def _post(self, body: dict[str, Any]) -> int:
        """The status of the answer; its body is not read, however long it is."""
        import httpx

        with httpx.stream("POST", self._url, json=body, headers=self._headers, timeout=self._timeout) as response:
            return response.status_code


def _mistakes(config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    platform = config.get("platform")
    if not isinstance(platform, str) or platform not in _BODIES:
        yield "platform", f"'platform' must be one of {', '.join(_BODIES)}, found {as_written(platform)}"
    url = config.get("url")
    if not isinstance(url, str):
        yield "url", "'url' must be a string; an empty one turns the webhook off"
    elif url:
        yield from (("url", message.replace("'endpoint'", "'url'")) for _, message in endpoint_mistakes(url))
    yield from header_mistakes(config.get("headers"))
    limit = config.get("timeout_seconds", _TIMEOUT)
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not limit > 0:
        yield "timeout_seconds", f"'timeout_seconds' must be a number above 0, found {as_written(limit)}"


def _text(summary: RunSummary) -> str:
    lines = [f"evalwright: {summary.run_id}", *map(_variant, summary.variants)]
    if summary.gate is not None:
        lines.append(f"gate {_outcome(summary.gate)}")
    if summary.comparison is not None:
        lines += _comparison(summary.comparison)
    return shorten("\n".join(lines), _LONGEST)


def _outcome(gate: GateOutcome) -> str:
    if gate.tolerated:
        return "UNDECIDED, let pass"
    return "undecided" if gate.undecided else "passed" if gate.passed else "failed"


def _variant(v: VariantSummary) -> str:
    errors = f", {counted(v.cells['error'], 'error')}" if v.cells.get("error") else ""
    rate = "no case judged" if v.pass_rate is None else f"{v.pass_rate:.1%}"
    return f"{v.name}: {v.cases_passed}/{v.cases_total} passed ({rate}){errors}"


def _comparison(comparison: ComparisonReport) -> list[str]:
    regressed = [case for delta in comparison.deltas for case in delta.regressions]
    changed = counted((comparison.regressions_count or 0) + (comparison.improvements_count or 0), "changed case")
    counts = f"{changed}, {comparison.regressions_count or 0:,} worse, {comparison.improvements_count or 0:,} better"
    lines = [f"against {comparison.baseline}: {counts}"]
    if regressed:
        more = len(regressed) - _MOST_CASES
        lines.append("worse: " + ", ".join(regressed[:_MOST_CASES]) + (f" and {more} more" if more > 0 else ""))
    return lines


def _slack(summary: RunSummary) -> dict[str, Any]:
    text = _text(summary).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    section = {"type": "section", "text": {"type": "mrkdwn", "text": text}}
    return {"text": text.partition("\n")[0], "blocks": [section]}


def _discord(summary: RunSummary) -> dict[str, Any]:
    return {"content": _text(summary), "allowed_mentions": {"parse": []}}


def _linear(summary: RunSummary) -> dict[str, Any]:
    return {"title": f"evalwright: {summary.run_id}", "description": _text(summary)}


_BODIES: dict[str, Callable[[RunSummary], dict[str, Any]]] = {"slack": _slack, "discord": _discord, "linear": _linear}
