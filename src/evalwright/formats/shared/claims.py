"""Gates with an error rate as suites write them: what a run must show against a baseline, or about its own rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from evalwright.decisions.terms import guard_of, margin_of
from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.files.key_paths import Place, as_written
from evalwright.files.numbers import is_number
from evalwright.formats.shared.gates import checked_gate, unread_gate_keys, written_gate
from evalwright.statistics.levels import LEAST_ALPHA

__all__ = ["CLAIMS", "CLAIM_KEYS", "checked_gates", "with_claimed_keys", "written_gates"]

ReportProblem = Callable[[Place, str], None]


class _Labelled(Protocol):
    """A case, as far as claims refer to it."""

    @property
    def metadata(self) -> Mapping[str, Any]: ...

    @property
    def tags(self) -> Sequence[str]: ...


C = TypeVar("C", bound=_Labelled)

CLAIMS = ("not_worse_than", "better_than", "at_least")
_SHARED = ("metric", "alpha", "on_undecided", "group")
_OF_PAIRS = (*_SHARED, "margin", "slices", "guards", "errors", "allow_changed")
CLAIM_KEYS = {"not_worse_than": _OF_PAIRS, "better_than": _OF_PAIRS, "at_least": (*_SHARED, "rule")}
_PASS_RATE = "pass_rate"


def checked_gates(
    raw: Any, metrics: Sequence[str], report: ReportProblem, *, rewards: bool = False
) -> dict[str, Any] | None:
    """A gate of either kind, or a list of both, all of which must pass, with the defaults filled in.

    None if something is wrong; each mistake is reported with its place. Claims are kept separate from the tree of
    conditions: `{kind: claims, claims: [...], conditions: tree or None}`.
    """
    place = ("gate",)
    if not isinstance(raw, list) and not _is_claim(raw):
        return _tree(raw, metrics, report, place, rewards=rewards)
    gates = raw if isinstance(raw, list) else [raw]
    if not gates:
        report(place, "expected at least one gate, found an empty list")
    claims, trees = [], []
    for i, gate in enumerate(gates):
        here = (*place, i) if isinstance(raw, list) else place
        if _is_claim(gate):
            claims.append(_Reading(gate, metrics, report, here).checked())
        else:
            trees.append(_tree(gate, metrics, report, here, rewards=False))
    conditions = {"kind": "logical", "operator": "and", "conditions": trees} if len(trees) > 1 else None
    if None in claims or None in trees or not gates:
        return None
    conditions = conditions or (trees[0] if trees else None)
    return {"kind": "claims", "claims": claims, "conditions": conditions} if claims else conditions


def _is_claim(raw: Any) -> bool:
    """Whether a gate is one with an error rate, which no condition of the tree resembles."""
    return isinstance(raw, Mapping) and "kind" not in raw and any(claim in raw for claim in CLAIMS)


def _misspelt_claim(raw: Any) -> str | None:
    """The key of a gate without a condition that is nearly a claim."""
    if not isinstance(raw, Mapping) or not raw.keys().isdisjoint(("kind", "op", "value")):
        return None
    return next((str(key) for key in raw if did_you_mean(str(key), CLAIMS)), None)


def _tree(
    raw: Any, metrics: Sequence[str], report: ReportProblem, place: Place, *, rewards: bool
) -> dict[str, Any] | None:
    if (slip := _misspelt_claim(raw)) is not None:
        report((*place, slip), f"nothing reads this key{did_you_mean(slip, CLAIMS)}")
        return None
    for where, message in unread_gate_keys(raw, place, rewards=rewards):
        report(where, message)
    return checked_gate(raw, metrics, report, place, rewards=rewards)


class _Reading:
    def __init__(self, raw: Mapping[str, Any], metrics: Sequence[str], report: ReportProblem, place: Place) -> None:
        self._raw, self._metrics, self._report, self._place = raw, metrics, report, place
        self._sound = True

    def checked(self) -> dict[str, Any] | None:
        claim = self._claim()
        return claim if self._sound else None

    def _mistake(self, message: str, *keys: str) -> None:
        self._sound = False
        self._report((*self._place, *keys), message)

    def _claim(self) -> dict[str, Any]:
        named = [claim for claim in CLAIMS if claim in self._raw]
        if len(named) > 1:
            self._mistake(
                f"expected one of {', '.join(CLAIMS)}, found {' and '.join(named)}: a list of gates takes each"
            )
        kind = named[0]
        for key in self._raw:
            if key not in (*CLAIMS, *CLAIM_KEYS[kind]):
                self._mistake(f"nothing reads this key of {kind}{did_you_mean(str(key), CLAIM_KEYS[kind])}", str(key))
        metric = self._one_of("metric", [_PASS_RATE, *self._metrics], _PASS_RATE)
        shared = {
            "claim": kind,
            "metric": metric,
            "alpha": self._alpha(),
            "on_undecided": self._one_of("on_undecided", ["fail", "pass"], "fail"),
            "group": self._text("group"),
        }
        if kind == "at_least":
            # a share of passed trials has these bounds; an evaluator's scores may have any range
            most = 1.0 if metric == _PASS_RATE else None
            least = self._number("at_least", None, 0, most, closed=True)
            return shared | {"at_least": least, "rule": self._one_of("rule", ["interval", "point"], "interval")}
        slices, loss = self._slices(metric)
        return shared | {
            "against": self._text(kind) or "",
            "margin": self._margin("margin", self._raw.get("margin"), metric),
            "errors": self._one_of("errors", ["exclude", "fail", "strict"], "exclude"),
            "allow_changed": self._flag("allow_changed"),
            "slices": slices,
            "slice_margin": loss,
            "guards": dict(self._guards()),
        }

    def _text(self, key: str) -> str | None:
        value = self._raw.get(key)
        if key in self._raw and (not isinstance(value, str) or not value.strip()):
            self._mistake(f"{key}: expected text, found {as_written(value)}", key)
            return None
        return value

    def _flag(self, key: str) -> bool:
        value = self._raw.get(key, False)
        if not isinstance(value, bool):
            self._mistake(f"{key}: expected true or false, found {as_written(value)}", key)
        return value is True

    def _one_of(self, key: str, known: Sequence[str], default: str) -> str:
        value = self._raw.get(key, default)
        if value not in known:
            near = did_you_mean(str(value), known)
            self._mistake(f"{key}: expected one of {', '.join(known)}, found {as_written(value)}{near}", key)
        return str(value)

    def _number(
        self, key: str, default: float | None, least: float, most: float | None, *, closed: bool = False
    ) -> float:
        value = self._raw.get(key, default)
        sound = is_number(value) and value == value
        if sound:
            inside = least <= value if closed else least < value
            sound = inside and (most is None or (value <= most if closed else value < most))
        if not sound:
            ends = f"from {least:g}" if most is None else f"between {least:g} and {most:g}"
            self._mistake(f"{key}: expected a number {ends}, found {as_written(value)}", key)
            return default or 0.0
        return float(value)

    def _alpha(self) -> float:
        number = self._number("alpha", 0.05, 0, 1)
        if 0 < number < LEAST_ALPHA:
            self._mistake(f"alpha: expected a number of at least {LEAST_ALPHA:g}, found {as_written(number)}", "alpha")
        return number

    def _margin(self, key: str, value: Any, metric: str, *inside: str) -> float | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            self._mistake(
                f"{key}: expected points or a fraction below 1, like 2pp or 0.02, found {as_written(value)}",
                *inside,
                key,
            )
            return None
        try:
            return margin_of(str(value), key, metric)
        except InputError as error:
            self._mistake(error.headline, *inside, key)
            return None

    def _slices(self, metric: str) -> tuple[list[str], float | None]:
        """The keys by which cases are sliced, and the loss that no slice may show; without `by`, every key."""
        slices = self._raw.get("slices")
        if slices is None:
            return [], None
        if not isinstance(slices, Mapping):
            return self._slice_keys(slices, "slices"), None
        for key in slices:
            if key not in ("by", "not_worse_than"):
                near = did_you_mean(str(key), ["by", "not_worse_than"])
                self._mistake(f"nothing reads this key{near} (by, not_worse_than)", "slices", str(key))
        loss = self._margin("not_worse_than", slices.get("not_worse_than"), metric, "slices")
        return self._slice_keys(slices.get("by", "*"), "slices", "by"), loss

    def _slice_keys(self, given: Any, *place: str) -> list[str]:
        keys = [part.strip() for part in given.split(",")] if isinstance(given, str) else given
        if not isinstance(keys, list) or not keys or not all(isinstance(key, str) and key for key in keys):
            self._mistake(f"expected keys like tag,metadata.lang, found {as_written(given)}", *place)
            return []
        return keys

    def _guards(self) -> Iterator[tuple[str, float]]:
        guards = self._raw.get("guards")
        if guards is None:
            return
        if not isinstance(guards, Mapping):
            self._mistake(f"guards: expected a mapping like {{cost: +10%}}, found {as_written(guards)}", "guards")
            return
        for name, limit in guards.items():
            guard = guard_of(str(name), str(limit), self._metrics)
            if isinstance(guard, str):
                self._mistake(guard, "guards", str(name))
            else:
                yield guard.name, guard.limit


def with_claimed_keys(gate: Mapping[str, Any] | None, path: str, cases: Iterable[C]) -> Iterator[C]:
    """The cases; after the last one, raises InputError unless every slice and group of a claim exists."""
    claims = gate["claims"] if gate is not None and gate["kind"] == "claims" else []
    slices = {key for claim in claims for key in claim.get("slices", ()) if key != "*"}
    groups = {claim["group"] for claim in claims if claim["group"] not in (None, "none")}
    tags, metadata = set[str](), set[str]()
    for case in cases:
        if slices or groups:
            metadata.update(case.metadata)
            tags.update(["tag"] if case.tags else [])
        yield case
    of_slices = tags | {f"metadata.{name}" for name in metadata}
    there = f"there are: {', '.join(sorted(of_slices))}" if of_slices else "there are neither tags nor metadata"
    problems = [
        Problem(path, f"no case has {key!r}{did_you_mean(key, of_slices)} ({there})", key="gate")
        for key in sorted(slices - of_slices)
    ]
    there = f"there are: {', '.join(sorted(metadata))}" if metadata else "there are none"
    for key in sorted(groups - metadata):
        near = did_you_mean(key.removeprefix("metadata."), metadata)
        problems.append(Problem(path, f"no case has {key!r} in its metadata{near} ({there})", key="gate"))
    if problems:
        raise InputError(problems)


def written_gates(gate: Mapping[str, Any]) -> Any:
    """A checked gate as its author would write it."""
    if gate["kind"] != "claims":
        return written_gate(gate)
    written = [_written_claim(claim) for claim in gate["claims"]]
    written += [] if gate["conditions"] is None else [written_gate(gate["conditions"])]
    return written if len(written) > 1 else written[0]


def _written_claim(claim: Mapping[str, Any]) -> dict[str, Any]:
    kind = claim["claim"]
    kept = {"on_undecided": "fail", "errors": "exclude", "allow_changed": False, "group": None, "rule": "interval"}
    written: dict[str, Any] = {kind: claim["at_least"] if kind == "at_least" else claim["against"]}
    written |= {key: claim[key] for key in ("metric", "alpha", "margin") if claim.get(key) is not None}
    written |= {key: claim[key] for key, usual in kept.items() if key in claim and claim[key] != usual}
    if claim.get("slices"):
        loss = claim["slice_margin"]
        written["slices"] = claim["slices"] if loss is None else {"by": claim["slices"], "not_worse_than": loss}
    if claim.get("guards"):
        written["guards"] = {name: _limit(name, limit) for name, limit in claim["guards"].items()}
    return written


def _limit(name: str, limit: float) -> str:
    return f"{100 * limit:+.10g}pp" if name.startswith("evaluator:") else f"{100 * (limit - 1):+.10g}%"
