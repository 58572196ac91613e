"""The HTML page of a run: everything in it, nothing from elsewhere, and nothing of the data acts."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.model.plan import EvaluatorSpec
from evalwright.model.result import CaseVerdict
from evalwright.model.summary import EvaluatorRate, EvaluatorRollup, GateOutcome, GatePart
from evalwright.model.trace import Output, Span, ToolCall, ToolResult, TraceError, TraceMessage
from evalwright.reports.html import HtmlPage
from evalwright.reports.html.elements import element
from evalwright.testing import a_case, a_result, a_trace, a_verdict
from reports.runs import ERRORED, FAILED, HOSTILE, MemoryStore, plan, stored, summary, variant

ATTACKS = [
    HOSTILE,
    '"><script>document.title="owned"</script>',
    "</title></style></pre><img src=x onerror=\"document.title='owned'\">",
    "' onmouseover='document.title=1' x='",
    "<svg/onload=document.title='owned'>",
    "&lt;script&gt;",
    "javascript:document.title='owned'",
    "\x00\u2028",
]


class Page(HTMLParser):
    """Tags, attributes and texts of a page, as a parser of HTML sees them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def rendered(*verdicts: CaseVerdict, **fields: Any) -> Page:
    return Page(HtmlPage().render(stored(*verdicts), summary(**fields)))


def cell(text: str, **fields: Any) -> Iterator[Any]:
    """Trace, result and verdict of a cell that says `text` wherever something may be said."""
    named = {"case_id": text, "variant_name": text, **fields}
    error = TraceError(text, text, text)
    yield a_trace(
        **named,
        input={text: [text]},
        output=Output(text, text, {text: text}),
        messages=[TraceMessage(text, text)],
        tool_calls=[ToolCall(text, text, {text: text})],
        tool_results=[ToolResult(text, text, text)],
        spans=[Span(text, text, kind=text, error=text)],
        error=error,
    )
    yield a_result(**named, evaluator=text, evaluator_type=text, reason=text, detail={text: text}, error=error)
    yield a_verdict(**named, status="error", error=error, reasons=[text])


def hostile_page(text: str) -> str:
    run = MemoryStore().create(plan(evaluators=[EvaluatorSpec(text, text)]), [a_case()], {})
    trace, result, verdict = cell(text)
    part = GatePart(text, False, 0.5, ">=", 0.9, 2)
    run.append_trace(trace)
    run.append_results([result])
    run.append_verdict(verdict)
    return HtmlPage().render(
        run,
        summary(
            run_id=text,
            config_path=text,
            variants=[variant(text, cells={"error": 1})],
            by_evaluator=[EvaluatorRollup(text, {text: EvaluatorRate(0.5, 0.5, 2, (0.1, 0.9), 2, 1, 1)})],
            gate=GateOutcome(False, [part], text, runs=[GateOutcome(False, [part], text)] * 2),
        ),
    )


PLAIN = Page(hostile_page("plain"))


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_of_the_data_becomes_an_element(attack: str) -> None:
    page = Page(hostile_page(attack))
    assert (page.tags, page.attributes) == (PLAIN.tags, PLAIN.attributes)


@given(st.text(), st.text())
def test_texts_and_attributes_come_back_as_one_harmless_text(text: str, value: str) -> None:
    page = Page(element("p", text, element("b", value), title=value))
    assert (page.tags, page.attributes) == ({"p", "b"}, {"title"})


def test_the_page_needs_nothing_from_elsewhere() -> None:
    assert PLAIN.tags.isdisjoint({"script", "link", "img", "iframe", "a", "form", "object", "embed"})
    assert PLAIN.attributes.isdisjoint({"src", "href", "srcset", "action", "style"})
    assert "default-src 'none'" in unescape(hostile_page("plain"))


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no Chromium")
def test_a_browser_runs_nothing_of_the_data(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_bytes(hostile_page("".join(ATTACKS)).replace("details>", "details open>").encode())
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    more = f"--disable-component-update --disable-sync --user-data-dir={tmp_path / 'profile'} --dump-dom"
    command = ["chromium", *flags.split(), *more.split(), page.as_uri()]
    seen = Page(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout)
    assert (seen.tags - {"tbody"}, "owned" in seen.text) == (PLAIN.tags - {"tbody"}, True)


def test_a_rate_carries_n_and_interval() -> None:
    assert "75.0% 55.1–88.0%24" in rendered().text


def test_the_comparison_says_how_sure_it_is() -> None:
    assert "new+8.3 pp [−5.0, +21.0]0.41224−172 ms1 c32 c1 c9" in rendered().text


def test_failures_and_errors_are_apart_with_their_reasons() -> None:
    page = rendered(FAILED, ERRORED, variants=[variant("new", cells={"fail": 1, "error": 1})])
    errors, _, failures = page.text.partition("Failures: 1")
    assert "Errors (no verdict): 1! error c7 · old" in errors
    assert "timeout: no answer" in errors
    assert "✗ fail c3 · new" in failures
    assert "says_hello: missing 'hello'" in failures


def test_a_cell_opens_to_everything_about_it() -> None:
    text = PLAIN.text.partition("Errors (no verdict)")[2]
    labels = ["input", "messages", "thinking", "answer", "structured", "tools", "steps", "error", "stack", "evaluators"]
    assert [
        label for label in labels if f"{label}plain" in text or f"{label}{{" in text or f"{label}!" in text
    ] == labels


def test_of_many_failures_the_first_are_shown_and_the_others_counted() -> None:
    verdicts = [a_verdict(case_id=f"c{i}", variant_name="new", status="fail") for i in range(250)]
    page = rendered(*verdicts, variants=[variant("new", cells={"fail": 250})])
    assert page.text.count("✗ fail") == 200
    assert "50 more cells" in page.text


def test_a_long_text_is_cut_and_what_is_left_out_counted() -> None:
    assert "… (+96,000 characters)" in hostile_page("x" * 100_000)


def test_a_partial_run_says_so() -> None:
    assert "Partial: 4 of 100 cells have not been run." in rendered(cells_missing=4).text


def test_of_several_attempts_only_the_last_is_shown() -> None:
    first = a_verdict(case_id="c3", variant_name="new", status="error", error=TraceError("timeout", "belated"))
    second = a_verdict(case_id="c3", variant_name="new", status="fail", attempt=2)
    page = rendered(first, second, variants=[variant("new", cells={"fail": 1})])
    assert ("belated" in page.text, page.text.count("c3 · new")) == (False, 1)
