"""Gates as suites write them, checked and with every default filled in; and gates as their authors would write them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from evalwright.errors import did_you_mean
from evalwright.files.key_paths import Place, as_written
from evalwright.files.numbers import finite_number_in, is_number
from evalwright.scoring.gate import AGGREGATIONS, OPERATORS

__all__ = [
    "GATE_KEYS",
    "GATE_KINDS",
    "GATE_OF_RUNS",
    "as_share",
    "checked_gate",
    "fractions",
    "is_beyond",
    "pass_thresholds",
    "unread_gate_keys",
    "values_out_of_reach",
    "written_gate",
]

ReportProblem = Callable[[Place, str], None]

GATE_KINDS = ("simple", "weighted_average", "logical")
_SIMPLE = ("kind", "metric_key", "aggregation", "op", "value", "pass_threshold")
GATE_KEYS = {
    None: (*_SIMPLE, "metric", "pass_op", "pass_value"),
    "simple": _SIMPLE,
    "weighted_average": ("kind", "aggregation", "weights", "op", "value", "pass_threshold"),
    "logical": ("kind", "operator", "conditions"),
    "reward": ("kind", "metric_key"),
}
"""The keys that are read of a gate, by its kind."""
GATE_OF_RUNS = ("max_error_rate",)
"""The keys that are read of any gate besides its condition, if Letta's totals apply."""


def checked_gate(
    raw: Any, metrics: Sequence[str], report: ReportProblem, place: Place = ("gate",), *, rewards: bool = False
) -> dict[str, Any] | None:
    """The gate with its defaults; None if something is wrong with it. Each mistake is reported with its place.

    A gate without `kind` has the older form of Letta suites, unless it has keys of the newer one. With `rewards`, the
    kind `reward` may stand for a mere number without a condition, and `max_error_rate` may accompany any gate.
    """
    if not isinstance(raw, Mapping):
        report(place, f"expected a mapping, found {as_written(raw)}")
        return None
    return _Reading(metrics, report).gate(raw, place, rewards=rewards)


def unread_gate_keys(raw: Any, place: Place = ("gate",), *, rewards: bool = False) -> Iterator[tuple[Place, str]]:
    """The keys of a written gate and its conditions that nothing reads, each with the nearest known key."""
    kind = raw.get("kind") if isinstance(raw, Mapping) else ""
    known = GATE_KEYS.get(kind) if kind is None or isinstance(kind, str) else None
    if known is None:
        return  # reported as a mistake of its own
    known = (*known, *GATE_OF_RUNS) if rewards else known
    for key in raw:
        if key not in known:
            yield (*place, str(key)), f"nothing reads this key{did_you_mean(str(key), known)}"
    conditions = raw.get("conditions") if kind == "logical" else None
    for i, condition in enumerate(conditions if isinstance(conditions, list) else ()):
        yield from unread_gate_keys(condition, (*place, "conditions", i))


def fractions(gate: Mapping[str, Any] | None, place: Place = ("gate",)) -> Iterator[tuple[Place, str]]:
    """Where a checked gate compares an accuracy, which is a percentage, with something that looks like a fraction."""
    if gate is not None and gate["kind"] == "claims":
        gate = gate["conditions"]
    if gate is None or gate["kind"] == "reward":
        return
    for i, condition in enumerate(gate.get("conditions", ())):
        yield from fractions(condition, (*place, "conditions", i))
    if gate.get("aggregation") == "accuracy" and 0 < gate["value"] <= 1:
        message = f"accuracy is a percentage from 0 to 100: {gate['value']:g} is reached by almost any run"
        yield (*place, "value"), message


def values_out_of_reach(gate: Any, place: Place = ("gate",)) -> Iterator[tuple[Place, str]]:
    """Values in a gate or a list of them, as written, that every score reaches, or none."""
    if isinstance(gate, list):
        for i, part in enumerate(gate):
            yield from values_out_of_reach(part, (*place, i))
    if not isinstance(gate, dict):
        return
    yield from values_out_of_reach(gate.get("conditions"), (*place, "conditions"))
    if gate.get("at_least") == 0:
        yield (*place, "at_least"), "every rate is at least 0: say from which rate the gate passes"
    value, of = gate.get("value"), gate.get("aggregation", gate.get("metric", "avg_score"))
    if of != "accuracy" and is_beyond(value):
        yield (*place, "value"), f"{of} usually ranges from 0 to 1{as_share(value)}; accuracy is a percentage"
    elif is_beyond(value) and is_beyond(value / 100):
        yield (*place, "value"), "accuracy is a percentage from 0 to 100"
    elif isinstance(value, (int, float)) and value == 0 and gate.get("op", "gte") == "gte":
        yield (*place, "value"), f"{of} is always at least 0: say from which value the gate passes"
    elif value in (1, 100) and value == (100 if of == "accuracy" else 1) and gate.get("op") == "lte":
        yield (*place, "value"), f"{of} is always at most {value:g}: say up to which value the gate passes"


def is_beyond(value: Any) -> TypeGuard[float]:
    """Whether a value is a number outside the range that scores usually have."""
    return is_number(value) and not 0 <= value <= 1


def as_share(value: float) -> str:
    """What a percentage given instead of a share most likely means."""
    return f"; did you mean {value / 100:g}?" if 1 < value <= 100 else ""


def pass_thresholds(gate: Mapping[str, Any]) -> dict[str, float]:
    """The score from which a single result counts as passed, by evaluator, if the gate names one."""
    if gate["kind"] == "logical":
        return {key: value for c in reversed(gate["conditions"]) for key, value in pass_thresholds(c).items()}
    if "pass_threshold" not in gate:
        return {}
    keys = gate["weights"] if gate["kind"] == "weighted_average" else [gate["metric_key"]]
    return dict.fromkeys(keys, gate["pass_threshold"])


class _Reading:
    def __init__(self, metrics: Sequence[str], report: ReportProblem) -> None:
        self._metrics, self._report = metrics, report
        self._sound = True

    def _mistake(self, place: Place, message: str) -> None:
        self._sound = False
        self._report(place, message)

    def gate(self, raw: Mapping[str, Any], place: Place, *, rewards: bool) -> dict[str, Any] | None:
        if rewards and raw.get("kind") == "reward":
            gate: dict[str, Any] = {"kind": "reward", "metric_key": str(raw.get("metric_key"))}
        else:
            gate = self._gate_of_kind(raw, place, nested=False)
        if rewards and raw.get("max_error_rate") is not None:
            gate["max_error_rate"] = self._number_at(raw, place, "max_error_rate")
        return gate if self._sound else None

    def _gate_of_kind(self, raw: Mapping[str, Any], place: Place, *, nested: bool) -> dict[str, Any]:
        kind = raw.get("kind")
        if kind is None:
            newer = nested or "aggregation" in raw or "pass_threshold" in raw
            return self._simple(raw, place, nested=nested) if newer else self._legacy(raw, place)
        if kind == "simple":
            return self._simple(raw, place, nested=nested)
        if kind == "weighted_average":
            return self._weighted_gate(raw, place)
        if kind == "logical":
            return self._logical(raw, place)
        self._mistake(
            (*place, "kind"), f"unknown kind {kind!r}{did_you_mean(str(kind), GATE_KINDS)} ({', '.join(GATE_KINDS)})"
        )
        return {}

    def _simple(self, raw: Mapping[str, Any], place: Place, *, nested: bool) -> dict[str, Any]:
        gate = {
            "kind": "simple",
            "metric_key": self._metric(raw, place, named=nested or "kind" in raw),
            "aggregation": self._choice(raw, place, "aggregation", AGGREGATIONS, None if nested else "avg_score"),
            **self._comparison(raw, place),
        }
        return gate | self._threshold_of(raw, place)

    def _weighted_gate(self, raw: Mapping[str, Any], place: Place) -> dict[str, Any]:
        gate = {
            "kind": "weighted_average",
            "aggregation": self._choice(raw, place, "aggregation", AGGREGATIONS, None),
            "weights": self._weights(raw.get("weights"), (*place, "weights")),
            **self._comparison(raw, place),
        }
        return gate | self._threshold_of(raw, place)

    def _weights(self, raw: Any, place: Place) -> dict[str, float]:
        if not isinstance(raw, Mapping) or not raw:
            self._mistake(place, "weights: expected a mapping from graders to weights, with at least one")
            return {}
        weights = {str(key): finite_number_in(value) for key, value in raw.items()}
        for key, value in raw.items():
            if key not in self._metrics:
                self._report_unknown((*place, str(key)), key)
            weight = weights[str(key)]
            if weight is None or weight < 0:
                self._mistake(
                    (*place, str(key)), f"weights: expected a number that is not negative, found {as_written(value)}"
                )
        if all(weight == 0 for weight in weights.values()):
            self._mistake(place, "weights: at least one must be more than 0")
        return {key: weight or 0.0 for key, weight in weights.items()}

    def _logical(self, raw: Mapping[str, Any], place: Place) -> dict[str, Any]:
        conditions = raw.get("conditions")
        if not isinstance(conditions, list) or not conditions:
            self._mistake((*place, "conditions"), "conditions: expected a list with at least one condition")
            conditions = []
        read = []
        for i, condition in enumerate(conditions):
            inside = (*place, "conditions", i)
            if isinstance(condition, Mapping):
                read.append(self._gate_of_kind(condition, inside, nested=True))
            else:
                self._mistake(inside, f"expected a mapping, found {as_written(condition)}")
        return {
            "kind": "logical",
            "operator": self._choice(raw, place, "operator", ("and", "or"), None),
            "conditions": read,
        }

    def _legacy(self, raw: Mapping[str, Any], place: Place) -> dict[str, Any]:
        comparison = self._comparison(raw, place)
        aggregation = self._choice(raw, place, "metric", ("avg_score", "accuracy"), "avg_score")
        pass_op = self._choice(raw, place, "pass_op", tuple(OPERATORS), comparison["op"] or "gte")
        pass_value = comparison["value"]
        if raw.get("pass_value") is not None:
            pass_value = self._number_at(raw, place, "pass_value")
        elif aggregation == "accuracy":
            pass_op, pass_value = "gte", 1.0
        return {
            "kind": "legacy",
            "metric_key": self._metric(raw, place, named=False),
            "aggregation": aggregation,
            **comparison,
            "pass_op": pass_op,
            "pass_value": pass_value,
        }

    def _metric(self, raw: Mapping[str, Any], place: Place, *, named: bool) -> str:
        """The grader of a condition; the first one if none is named, unless one of several has to be."""
        key = raw.get("metric_key")
        if key is None and self._metrics and (not named or len(self._metrics) == 1):
            return self._metrics[0]
        if key is None and self._metrics:
            expected = f"expected one of {', '.join(self._metrics)}"
            self._mistake((*place, "metric_key"), f"metric_key: it is missing, {expected}")
        elif key not in self._metrics:
            self._report_unknown((*place, "metric_key"), key)
        return str(key)

    def _report_unknown(self, place: Place, key: Any) -> None:
        known = ", ".join(self._metrics)
        self._mistake(place, f"no grader {key!r}{did_you_mean(str(key), self._metrics)} (there are: {known})")

    def _comparison(self, raw: Mapping[str, Any], place: Place) -> dict[str, Any]:
        return {
            "op": self._choice(raw, place, "op", tuple(OPERATORS), None),
            "value": self._number_at(raw, place, "value"),
        }

    def _threshold_of(self, raw: Mapping[str, Any], place: Place) -> dict[str, float]:
        if raw.get("pass_threshold") is None:
            return {}
        return {"pass_threshold": self._number_at(raw, place, "pass_threshold")}

    def _number_at(self, raw: Mapping[str, Any], place: Place, key: str) -> float:
        number = finite_number_in(raw.get(key))
        if number is None:
            what = f"found {as_written(raw[key])}" if key in raw else "it is missing"
            self._mistake((*place, key), f"{key}: expected a finite number, {what}")
        return number or 0.0

    def _choice(
        self, raw: Mapping[str, Any], place: Place, key: str, known: Collection[str], default: str | None
    ) -> str:
        value = raw.get(key, default)
        if value in known:
            return str(value)
        what = f"found {as_written(value)}{did_you_mean(str(value), known)}" if key in raw else "it is missing"
        self._mistake((*place, key), f"{key}: expected one of {', '.join(known)}, {what}")
        return ""


def written_gate(gate: Mapping[str, Any]) -> dict[str, Any]:
    """A checked gate as written; one of the older form has no `kind`, and its aggregation is in `metric`."""
    if gate["kind"] != "legacy":
        return dict(gate)
    return {"metric" if key == "aggregation" else key: value for key, value in gate.items() if key != "kind"}
