"""One answer at a time, to be labelled by a person who does not see what the judge said."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from math import inf, isfinite, nan
from typing import Any, NamedTuple

import msgspec

from evalwright.errors import counted
from evalwright.model.trace import Trace
from evalwright.reports import numbers
from evalwright.viewer.labels import ORDERS, LabelFile, LabelOrder, StoredLabel, now
from evalwright.viewer.links import ServerLinks
from evalwright.viewer.pages import Page, PageNotFound, table_of_cells
from evalwright.viewer.pages.blocks import Blocks
from evalwright.viewer.pages.cell import expected_parts, input_parts
from evalwright.viewer.pages.conversation import ends, shown_messages, unsaid_calls
from evalwright.viewer.pages.evaluator_results import evaluator_results
from evalwright.viewer.query import BadQuery, single_values, unknown_value, whole_number
from evalwright.viewer.shelf import OpenRun
from evalwright.viewer.table import CellRow

__all__ = ["Labelling", "label_page", "store_label"]

_KEYS = ("evaluator", "order", "seed", "sample", "from", "key", "show", "replaced", "labelled")
_MOST = 10_000
_LONGEST_NOTE = 10_000
_ENOUGH = 10
"""The number of labels from which the agreement so far is shown, after every tenth."""
VERDICTS = ("pass", "fail", "unsure", "skip", "undo", "score")


class Labelling(NamedTuple):
    """The labeller, and the proof that the form is ours."""

    labeller: str
    form_token: str


class _State(NamedTuple):
    order: LabelOrder
    rows: list[CellRow]
    labels: dict[tuple[str, str, int], StoredLabel]
    start: int

    @property
    def done(self) -> int:
        return sum(_id(row) in self.labels for row in self.rows)

    def label_mark(self, row: CellRow) -> str:
        """What tells the label of an answer from a later one; empty if it has none."""
        label = self.labels.get(_id(row))
        return "" if label is None else f"{label.labelled_at} {label.verdict} {label.score}"


def _id(row: CellRow) -> tuple[str, str, int]:
    return row.case_key, row.variant, row.trial


def _state(run: OpenRun, form: Mapping[str, str], labeller: str) -> _State:
    """Raises BadQuery, PageNotFound, StillReading."""
    table = table_of_cells(run)
    judged = table.values("evaluator")
    names = [spec.name for spec in run.plan.evaluators if spec.name in judged] or judged
    if not names:
        raise PageNotFound("No evaluator has judged an answer of this run.", f"/runs/{run.id}")
    file = LabelFile(run.source.labels_path())
    order = LabelOrder(
        _one_of("evaluator", form.get("evaluator") or _most_in_need(run, names, file.evaluators()), names),
        _one_of("order", form.get("order") or "random", list(ORDERS)),
        whole_number("seed", form.get("seed") or str(_first_seed(run.id, labeller)), most=10**9),
        whole_number("sample", form.get("sample") or "50", 1, _MOST),
    )
    threshold = _threshold_of(run, order.evaluator)
    rows = run.cells_to_label(order, 0.5 if threshold is None else threshold)
    labels = file.newest(order.evaluator, labeller)
    attempts = {_id(row): row.attempt for row in rows}
    # a label of an answer that a retry replaced is none of the new one
    labels = {key: label for key, label in labels.items() if attempts.get(key, label.attempt) == label.attempt}
    return _State(order, rows, labels, whole_number("from", form.get("from") or "0", most=_MOST))


def _first_seed(run: str, labeller: str) -> int:
    """The seed of an address without one: another for each labeller, and the same whenever they come back, so that
    they go on with the sample that they began."""
    return int.from_bytes(sha256(f"{run}\0{labeller}".encode()).digest()[:4], "big") % 1_000_000


def _most_in_need(run: OpenRun, names: list[str], labelled: Collection[str]) -> str:
    """The first judge without labels, else the first judge, else the first evaluator."""
    judges = {
        evaluator.evaluator: evaluator.calibration
        for evaluator in run.summary.by_evaluator
        if evaluator.calibration is not None
    }
    labelled = {*labelled, *(name for name, known in judges.items() if known.labels)}
    return min(names, key=lambda name: (name not in judges, name in labelled))


def _one_of(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise unknown_value(name, value, known)
    return value


def _threshold_of(run: OpenRun, evaluator: str) -> float | None:
    return run.plan.lowest_passing(evaluator)


def _scores(run: OpenRun, evaluator: str) -> tuple[float, float] | None:
    """The scale of a judge that has only a rubric, 1 to 5 if it names none; None if it is not known."""
    spec = next((known_spec for known_spec in run.plan.evaluators if known_spec.name == evaluator), None)
    if spec is None or spec.type != "llm_judge" or spec.config.get("nl_assertions"):
        return None
    scale = spec.config.get("scale") or {}
    return scale.get("min", 1), scale.get("max", 5)


def _place_of(state: _State, key: str, elsewhere: str) -> int:
    """The place of the answer that is named. Raises PageNotFound, with the address of the sample."""
    for place, row in enumerate(state.rows):
        if row.key == key:
            return place
    raise PageNotFound("This answer is not among those that are labelled.", elsewhere)


def _next(state: _State) -> int | None:
    """The place of the next answer without a label."""
    places = range(len(state.rows))
    open_ones = [place for place in places if _id(state.rows[place]) not in state.labels]
    return next((place for place in open_ones if place >= state.start), next(iter(open_ones), None))


def label_page(run: OpenRun, pairs: Iterable[tuple[str, str]], labelling: Labelling, links: ServerLinks) -> Page:
    """Raises BadQuery, PageNotFound, StillReading."""
    values = single_values(pairs, _KEYS)
    for name in values.keys() & {"show", "replaced", "labelled"}:
        _one_of(name, values[name], ("1",))
    state = _state(run, values, labelling.labeller)
    order = state.order
    elsewhere = links.label(run.id, **_onward(order))
    place = _place_of(state, values["key"], elsewhere) if "key" in values else _next(state)
    spec = next((evaluator for evaluator in run.plan.evaluators if evaluator.name == order.evaluator), None)
    table = run.table
    context: dict[str, Any] = {
        "run": run,
        "order": order,
        "orders": ORDERS,
        "evaluators": [] if table is None else table.values("evaluator"),
        "done": state.done,
        "total": len(state.rows),
        "form_token": labelling.form_token,
        "place": place,
        "labels_path": run.source.labels_path(),
        "show": "show" in values,
        "replaced": "replaced" in values,
        "labelled": "labelled" in values,
        "guidelines": {} if spec is None else spec.config,
        "has_score": spec is not None and bool({"rubric", "scale"} & spec.config.keys()),
        "scores": _scores(run, order.evaluator),
        "agreement": _agreement_with_labels(run, state),
        "last": next(reversed(state.labels.values()), None),
    }
    if place is not None:
        row = state.rows[place]
        context |= {"label_mark": state.label_mark(row), **_answer(run, row, order.evaluator, links)}
    return Page("label.html", f"Label answers · {run.plan.name} · evalwright", context)


def _agreement_with_labels(run: OpenRun, state: _State) -> tuple[int, list[str]]:
    """The number of labels compared, and how often the evaluator agrees with them: those of this sample, after every
    tenth; none about answers that were chosen by their results, and none of a balanced sample, whose labels have
    weights.

    Not after each one: a change would reveal the evaluator's verdict on the previous answer.
    """
    table, evaluator = run.table, state.order.evaluator
    threshold = _threshold_of(run, evaluator)
    labelled = [(row, state.labels[_id(row)].verdict_at(threshold)) for row in state.rows if _id(row) in state.labels]
    if table is None or len(labelled) < _ENOUGH or state.order.by_results or state.order.balanced:
        return 0, []
    # imported only when there is something to count: it is slow
    from evalwright.decisions.judge_bias import share_by_unit

    first = {row.number: verdict for row, verdict in _oldest(labelled, state)}
    outcomes, cases = table.outcomes(evaluator, list(first)), {row.number: row.case_key for row, _ in labelled}
    rows_found = []
    for verdict, word in (("pass", "passed"), ("fail", "failed")):
        chosen = [number for number in first if first[number] == verdict and outcomes.get(number) in ("pass", "fail")]
        share = share_by_unit([outcomes[number] == verdict for number in chosen], [cases[number] for number in chosen])
        name = {"pass": "TPR", "fail": "TNR"}[verdict]
        ends = f" [{numbers.interval(share.ci95)}]" if share.ci95 else ""
        rows_found.append(f"{name} {numbers.share(share)}{ends}: of {counted(share.n, 'answer')} that you {word}")
    return len(first), rows_found


def _oldest(labelled: list[tuple[CellRow, str]], state: _State) -> list[tuple[CellRow, str]]:
    """As many tens as there are, in the order in which they were labelled."""
    places = {key: place for place, key in enumerate(state.labels)}
    ordered = sorted(labelled, key=lambda label: places[_id(label[0])])
    return ordered[: len(ordered) // _ENOUGH * _ENOUGH]


def _answer(run: OpenRun, row: CellRow, evaluator: str, links: ServerLinks) -> dict[str, Any]:
    """What a person needs for a label, without any evaluator's result; only the row if there is no trace to read."""
    records = run.records(row)
    if not records.trace:
        return {"row": row}
    trace = msgspec.convert(records.trace, Trace)
    blocks = Blocks(lambda part: links.whole(run.id, row.key, part))
    output = trace.output
    name = "structured" if output.final_answer is None else "final_answer"
    answer = output.structured if output.final_answer is None else output.final_answer
    judged = [result for result in records.results if result["evaluator"] == evaluator]
    messages, hidden = ends(trace.messages)
    return {
        "row": row,
        "input": input_parts(trace.input, blocks),
        "answer": None if answer is None else blocks.of(answer, f"trace/output/{name}"),
        "expected": expected_parts(records, blocks),
        "messages": list(shown_messages(messages, blocks)),
        "messages_hidden": hidden,
        "tool_calls": unsaid_calls(trace, blocks),
        "judged": evaluator_results(judged, run.plan, blocks),
    }


def store_label(run: OpenRun, form: Mapping[str, str], labelling: Labelling, links: ServerLinks) -> str:
    """Store a submitted form and return the address of the next answer. Raises BadQuery, PageNotFound,
    StillReading, StorageError."""
    state = _state(run, form, labelling.labeller)
    order, verdict = state.order, _one_of("verdict", form.get("verdict", ""), list(VERDICTS))
    file = LabelFile(run.source.labels_path())
    onward = _onward(order)
    if verdict == "undo":
        last = next(reversed(state.labels.values()), None)
        if last is None:
            return links.label(run.id, **onward)
        file.append(last._replace(verdict="", score="", note="", seen="", labelled_at=now()))
        key = next((row.key for row in state.rows if _id(row) == (last.case_id, last.variant, last.trial)), "")
        return links.label(run.id, key=key, **onward)
    place = _place_of(state, form.get("key", ""), links.label(run.id, **onward))
    row = state.rows[place]
    if form.get("attempt") != str(row.attempt):  # a retry replaced the answer after it was shown
        return links.label(run.id, **onward, key=row.key, replaced="1")
    if verdict != "skip" and form.get("label_mark", "") != state.label_mark(row):  # another window gave it one
        return links.label(run.id, **onward, key=row.key, labelled="1")
    if verdict != "skip":
        label = _label(row, verdict, form, order, labelling.labeller, _scores(run, order.evaluator))
        file.append(_with_stratum(label, run, row) if order.balanced else label)
    return links.label(run.id, **onward, **{"from": str(place + 1)})


def _onward(order: LabelOrder) -> dict[str, str]:
    """The sample, as addresses have it."""
    return {
        "evaluator": order.evaluator,
        "order": order.order,
        "seed": str(order.seed),
        "sample": str(order.sample),
    }


def _with_stratum(label: StoredLabel, run: OpenRun, row: CellRow) -> StoredLabel:
    """The label with what its weight is computed from. Raises PageNotFound if the answer has lost its verdict."""
    strata = {} if run.table is None else run.table.strata(label.evaluator)
    for (variant, outcome), keys in strata.items():
        if variant == row.variant and row.key in keys:
            return label._replace(stratum=outcome, stratum_size=str(len(keys)))
    raise PageNotFound("The evaluator has no verdict on this answer any more.", f"/runs/{run.id}")


def _score(text: str, scores: tuple[float, float] | None) -> str:
    """A score in its stored form. Raises BadQuery."""
    low, high = scores or (-inf, inf)
    expected = f"a number from {low:g} to {high:g}" if scores else "a number"
    try:
        value = float(text)
    except ValueError:
        value = nan
    if not isfinite(value) or not low <= value <= high:
        raise BadQuery(f"'score' is {text[:100]!r}, expected {expected}")
    return repr(value).removesuffix(".0")


def _label(
    row: CellRow,
    verdict: str,
    form: Mapping[str, str],
    order: LabelOrder,
    labeller: str,
    scores: tuple[float, float] | None,
) -> StoredLabel:
    score = form.get("score", "").strip()
    if score or verdict == "score":
        score = _score(score, scores)
    note = form.get("note", "")[:_LONGEST_NOTE].replace("\r\n", "\n").replace("\0", "")
    shown = "" if verdict == "score" else verdict
    seen = "1" if form.get("seen") == "1" else ""
    answer = (row.case_key, row.variant, row.trial, row.attempt)
    return StoredLabel(*answer, order.evaluator, shown, score, note, labeller, seen, now(), order.order)
