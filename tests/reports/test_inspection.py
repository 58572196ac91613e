"""One cell in full."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from evalwright.model.trace import Metrics, Output, Span, SpanEvent, ToolCall, TraceMessage
from evalwright.registry import load
from evalwright.reports.inspection import cell_lines
from evalwright.reports.text import Paint, width
from evalwright.testing import MemoryStore, a_case, a_plan, a_result, a_trace, a_verdict
from reports.runs import summary, variant


def shown(**trace: object) -> str:
    return "\n".join(cell_lines(a_trace(**trace), [], "pass", Paint(), 200))


def test_what_a_reader_noted_about_a_recording_is_shown_and_cannot_act_on_the_terminal() -> None:
    assert "warnings    nothing reads the key 'x\\x1b'" in shown(extra={"warnings": ["nothing reads the key 'x\x1b'"]})


def test_long_names_that_differ_at_their_ends_stay_apart() -> None:
    lines = {
        shown(case_id="order-" * 30 + str(n), variant_name="model-" * 20 + str(n)).split("\n")[0] for n in range(3)
    }
    assert len(lines) == 3
    assert max(map(len, lines)) < 140


def test_an_answer_that_a_broken_stream_cut_off_says_so() -> None:
    lines = shown(extra={"stream_interrupted": "the service reports an error: overloaded"})
    assert "warnings    the stream was interrupted: the service reports an error: overloaded" in lines


def test_what_was_replaced_is_shown() -> None:
    assert "warnings    case.input.x: nan replaced" in shown(extra={"replaced": ["case.input.x: nan replaced"]})


def test_hits_and_misses_that_the_reason_does_not_tell_are_shown() -> None:
    row = a_result(reason="no price", hits=["a name"], misses=["no price", "no date"])
    found = "\n".join(cell_lines(a_trace(), [row], "pass", Paint(), 200))
    assert [found.count(text) for text in ("+ a name", "- no date", "no price")] == [1, 1, 1]


def test_borderline_is_neither_pass_nor_fail() -> None:
    row = a_result(evaluator="rubric", passed=False, score=0.7, detail={"verdict": "borderline"})
    assert "~ rubric 0.7" in "\n".join(cell_lines(a_trace(), [row], "borderline", Paint(), 200))


def test_judges_that_disagree_are_shown_with_their_votes() -> None:
    votes = [{"model": "a", "passed": True}, {"model": "b", "passed": False}, {"model": "c", "error": "?"}]
    row = a_result(evaluator="panel", detail={"votes": votes, "agreement": 1 / 3})
    found = "\n".join(cell_lines(a_trace(), [row], "fail", Paint(), 200))
    assert "votes ✓ a, ✗ b, ! c  33.3% agree with the result" in found
    agreed = a_result(evaluator="panel", detail={"votes": votes[:1] * 2, "agreement": 1.0})
    assert "votes" not in "\n".join(cell_lines(a_trace(), [agreed], "pass", Paint(), 200))


def test_texts_are_folded_at_words_beside_their_label_unless_they_are_to_be_copied() -> None:
    words = " ".join(f"word{number}" for number in range(60))
    trace = a_trace(input="x" * 70, output=Output(f"{words}\n  - nested {words}"))
    row = a_result(passed=False, reason=words)

    def lines(paint: Paint, limit: int | None = 10_000) -> list[str]:
        return cell_lines(trace, [row], "fail", paint, limit)

    narrow = lines(Paint(on=True, columns=60))
    assert [width(line) > 60 for line in narrow].count(True) == 1  # a word that is longer than the line
    assert " ".join("\n".join(narrow).split()) == " ".join("\n".join(lines(Paint(on=True))).split())
    assert next(line for line in narrow if "word8" in line).startswith(" " * 14 + "word")
    assert next(line for line in narrow if "- nested" in line).startswith(" " * 16 + "- nested")
    assert lines(Paint(columns=60), None) == lines(Paint(), None)
    assert lines(Paint(columns=60, whole=True)) == lines(Paint())


def test_json_without_spaces_is_folded_after_commas() -> None:
    settings = {f"name{number}": list(range(20)) for number in range(9)}
    lines = cell_lines(a_trace(input=settings), [], "pass", Paint(columns=60), 10_000)
    assert max(map(width, lines)) <= 60
    assert msgspec.json.encode(settings).decode() in "".join(line.strip() for line in lines)


MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def test_steps_are_shown_below_the_step_that_they_belong_to() -> None:
    spans = [
        Span("2", "retrieve", "1", "retriever", MOMENT, MOMENT + timedelta(milliseconds=3), error="no\x1bindex"),
        Span("1", "ask", None, "span", MOMENT - timedelta(seconds=1), MOMENT + timedelta(seconds=1)),
        Span("3", "ring", "4"),
        Span("4", "of two", "3"),
        Span("5", "orphan", "99"),
    ]
    lines = [line[14:] for line in shown(spans=spans).splitlines()[1:]]
    found = lines[next(number for number, line in enumerate(lines) if line.startswith("ask")) :]
    assert found == ["ask  2.00 s", "  retrieve  retriever 3 ms  no\\x1bindex", "orphan", "ring", "of two"]


def test_of_many_steps_the_first_are_shown_and_the_others_counted() -> None:
    assert "… (+30 steps)" in shown(spans=[Span(str(number), "step") for number in range(50)])


def test_a_latency_that_nobody_measured_is_not_shown() -> None:
    assert "ms" in shown(latency_ms=0)
    assert "ms" not in shown(latency_ms=None)


RECORDED = {
    "messages": [
        TraceMessage("user", "the first turn"),
        TraceMessage("assistant", None, "a thought", ToolCall("look", arguments={"id": "argument"}), None),
        TraceMessage("tool", "what look gave", name="look"),
    ],
    "spans": [
        Span(
            "1",
            "ask",
            input={"prompt": "the prompt\x1b"},
            output="the reply",
            attributes={"model": "the model"},
            events=[SpanEvent("the event", None, {"key": "of the event"})],
        )
    ],
    "extra": {"note": "an extra"},
    "metrics": Metrics(custom={"seen": "a metric"}),
}
TEXTS = (
    "the first turn", "a thought", "argument", "what look gave", "the prompt", "the reply", "the model", "the event",
    "of the event", "an extra", "a metric", "the judge wrote this",
)  # fmt: skip


def test_everything_that_was_recorded_can_be_shown() -> None:
    rows = [a_result(detail={"raw_reply": "the judge wrote this"})]
    full = "\n".join(cell_lines(a_trace(**RECORDED), rows, "pass", Paint(), None))
    assert [text for text in TEXTS if text not in full] == []
    assert "\x1b" not in full
    short = "\n".join(cell_lines(a_trace(**RECORDED), rows, "pass", Paint(), 200))
    assert "the prompt" not in short


@pytest.mark.parametrize("name", ["json", "html"])
def test_reports_hold_everything_that_was_recorded(name: str) -> None:
    trace = a_trace(case_id="c1", variant_name="v", **RECORDED)
    run = MemoryStore().create(a_plan(), [a_case()], {})
    run.append_trace(trace)
    run.append_results([a_result(case_id="c1", variant_name="v", detail={"raw_reply": "the judge wrote this"})])
    run.append_verdict(a_verdict(case_id="c1", variant_name="v", status="fail"))
    text = load("reports", name)().render(run, summary(variants=[variant("v", cells={"fail": 1})]))
    assert [recorded for recorded in TEXTS if recorded not in text] == []
