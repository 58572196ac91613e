"""A run as one HTML file: everything in it, nothing from elsewhere, and nothing of the data acts."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tracemalloc
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.cli import main
from evalwright.errors import InputError
from evalwright.model.cell import cell_key
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.result import CaseVerdict
from evalwright.model.summary import EvaluatorRate, EvaluatorRollup, GateOutcome, GatePart
from evalwright.model.trace import Output, Span, ToolCall, ToolResult, TraceError, TraceMessage
from evalwright.reports.pictures.elements import element
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from evalwright.testing import a_case, a_result, a_trace, a_verdict
from evalwright.viewer.document import HtmlDocument
from reports.runs import ERRORED, FAILED, HOSTILE, MemoryStore, plan, stored, summary, variant
from run.suites import suite
from viewer.reading import seen
from viewer.runs import made_run, scored_run

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
        self.addresses: list[str] = []
        self.text = ""
        self.feed(page)
        self.said = " ".join(self.text.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data


def rendered(*verdicts: CaseVerdict, **fields: Any) -> Page:
    return Page(HtmlDocument().render(stored(*verdicts), summary(**fields)))


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
    return HtmlDocument().render(
        run,
        summary(
            run_id=text,
            config_path=text,
            variants=[variant(text, cells={"error": 1})],
            by_evaluator=[EvaluatorRollup(text, {text: EvaluatorRate(0.5, 0.5, 2, (0.1, 0.9), 2, 1, 1)})],
            gate=GateOutcome(False, [part], text, runs=[GateOutcome(False, [part], text)] * 2),
        ),
    )


def test_traces_are_in_memory_one_at_a_time(tmp_path):
    run = run_suite(suite(tmp_path, ["word " * 200_000] * 8)).run_dir
    with closing(open_run(run)[0]) as reader:
        found = reader.summary()
        tracemalloc.start()
        page = HtmlDocument().render(reader, found)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    size = (run / "traces.jsonl").stat().st_size
    assert "word word" in page
    assert most < size


@pytest.fixture(scope="module")
def plain() -> Page:
    return Page(hostile_page("plain"))


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_of_the_data_becomes_an_element(attack: str, plain: Page) -> None:
    page = Page(hostile_page(attack))
    assert (page.tags, page.attributes) == (plain.tags, plain.attributes)


@given(st.text(), st.text())
def test_texts_and_attributes_come_back_as_one_harmless_text(text: str, value: str) -> None:
    page = Page(element("p", text, element("b", value), title=value))
    assert (page.tags, page.attributes) == ({"p", "b"}, {"title"})


def test_the_page_needs_nothing_from_elsewhere(plain: Page) -> None:
    assert plain.tags.isdisjoint({"script", "link", "iframe", "form", "object", "embed"})
    assert plain.attributes.isdisjoint({"srcset", "action", "style", "onclick"})
    assert [address for address in plain.addresses if not address.startswith(("#", "data:image/svg+xml;base64,"))] == []
    page = unescape(hostile_page("plain"))
    style = page.partition("<style>")[2].partition("</style>")[0]
    digest = b64encode(sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}';" in page


@pytest.mark.slow("a real browser")
@pytest.mark.skipif(shutil.which("chromium") is None, reason="no Chromium")
def test_a_browser_runs_nothing_of_the_data(tmp_path: Path, plain: Page) -> None:
    page = tmp_path / "page.html"
    page.write_bytes(hostile_page("".join(ATTACKS)).replace("details>", "details open>").encode())
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    more = f"--disable-component-update --disable-sync --user-data-dir={tmp_path / 'profile'} --dump-dom"
    command = ["chromium", *flags.split(), *more.split(), page.as_uri()]
    seen = Page(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout)
    assert (seen.tags - {"tbody"}, "owned" in seen.text) == (plain.tags - {"tbody"}, True)


def test_a_rate_carries_n_and_interval() -> None:
    assert "75.0% 55.1–88.0%24" in rendered().said.replace("%55", "% 55")


def test_the_comparison_says_how_sure_it_is() -> None:
    assert "new+8.3 pp [−5.0, +21.0]0.41224−172 ms1 c32 c1 c9" in rendered().text


def test_failures_and_errors_are_apart_with_their_reasons() -> None:
    page = rendered(FAILED, ERRORED, variants=[variant("new", cells={"fail": 1, "error": 1})])
    errors, _, failures = page.said.partition("Failures: 1")
    assert "Errors (no verdict): 1 ! Error c7 · oldtimeout: no answer" in errors
    assert "✗ Fail c3 · new" in failures
    assert "says_hello: missing 'hello'" in failures


def test_a_cell_opens_to_everything_about_it(plain: Page) -> None:
    text = plain.text.partition("Errors (no verdict)")[2]
    parts = [
        "errorplain: plain", "stackplain", 'inputplain["plain"]', "answerplain", "thinkingplain",
        'structured{"plain": "plain"}', "evaluators! Error plainplain: plain", 'details{"plain": "plain"}',
        "messages1 plainplain", 'toolscalls plain{"plain": "plain"}returnedplain', "stepsplain plain",
    ]  # fmt: skip
    assert [part for part in parts if part not in text] == []


def test_of_many_failures_the_first_are_shown_and_the_others_counted() -> None:
    verdicts = [a_verdict(case_id=f"c{i}", variant_name="new", status="fail") for i in range(550)]
    page = rendered(*verdicts, variants=[variant("new", cells={"fail": 550})])
    assert "500 of them are shown in full" in page.said
    assert "Other cells: 50" in page.said
    assert page.said.count("✗ Fail") == 550


def test_a_long_reason_ends_with_a_mark_wherever_it_is_cut() -> None:
    verdict = a_verdict(case_id="c1", variant_name="new", status="fail", reasons=["boom " * 300])
    page = rendered(verdict, variants=[variant("new", cells={"fail": 1})])
    assert page.said.count("boom boom…") == 2


def test_a_long_text_is_cut_and_what_is_left_out_counted() -> None:
    assert "… (+80,000 characters)" in hostile_page("x" * 100_000)


def exit_of(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


@pytest.mark.slow("two runs, and what changed between them")
def test_changed_cells_come_first_and_each_leads_to_its_place(tmp_path: Path) -> None:
    before = made_run(tmp_path, trials=1)
    after = made_run(tmp_path, trials=1, lost=1)
    out = tmp_path / "x.html"
    assert exit_of("report", str(after), "--format", "html", "--compare", str(before), "--out", str(out)) == 0
    text = out.read_text()
    ids, page = set(re.findall(r' id="([0-9a-f]{16})"', text)), Page(text)
    cases = [json.loads(line)["id"] for line in (after / "cases.jsonl").read_text().splitlines()]
    assert ids == {cell_key(name, "agent", 0) for name in cases}
    changed = [cell_key(name, "agent", 0) for name in ("case-1", "case-2")]
    assert [address for address in page.addresses if address.startswith("#")] == [f"#{key}" for key in changed]
    assert page.said.index("case-1agentworse") < page.said.index("case-2agentbetter") < page.said.index("Failures:")
    assert "Reasons of failures and errors" in page.said
    assert [said for said in ("because of the reply", "is polite", "needle-3") if said not in page.said] == []


def test_a_folder_gets_pages_and_a_large_run_the_command_for_them(tmp_path: Path) -> None:
    run = made_run(tmp_path, trials=1)
    assert exit_of("report", str(run), "--format", "html", "--out", f"{tmp_path}/pages/") == 0
    assert len([*(tmp_path / "pages" / "runs" / run.name / "cells").glob("*.html")]) == 7
    assert exit_of("report", str(run), "--format", "junit", "--out", f"{tmp_path}/pages/") == 2
    with pytest.raises(InputError, match=r"20,001 cells do not fit .*evalwright view RUN --bundle DIR"):
        HtmlDocument.check(summary(cells_total=20_001), "RUN")
    HtmlDocument.check(summary(cells_total=20_000), "RUN")


def test_a_partial_run_says_so() -> None:
    assert "Partial: 4 of 100 cells have not been run." in rendered(cells_missing=4).text
    assert "Partial: 1 of 97 cells has not been run." in rendered(cells_missing=1).text


def test_of_several_attempts_only_the_last_is_shown() -> None:
    first = a_verdict(case_id="c3", variant_name="new", status="error", error=TraceError("timeout", "belated"))
    second = a_verdict(case_id="c3", variant_name="new", status="fail", attempt=2)
    page = rendered(first, second, variants=[variant("new", cells={"fail": 1})])
    assert ("belated" in page.text, page.text.count("c3 · new")) == (False, 1)


def test_cases_that_belong_together_are_told_beside_their_interval() -> None:
    told = summary(native={"conversations": 1, "cases_in_conversations": 2})
    assert "2 cases of 1 conversation: not independent" in Page(HtmlDocument().render(stored(), told)).said
    assert "not independent" not in Page(HtmlDocument().render(stored(), summary())).said


def test_one_case_is_counted_as_one(tmp_path: Path) -> None:
    run = run_suite(suite(tmp_path, ["hi"])).run_dir
    with pytest.raises(SystemExit, match="0"):
        main(["report", str(run), "--format", "html", "--out", str(tmp_path / "page.html")])
    assert ">1 case, 1 cell<" in (tmp_path / "page.html").read_text()


def test_nothing_passes_or_fails_in_a_document_of_a_suite_that_has_only_scores(tmp_path, capsys):
    run = scored_run(tmp_path)
    with pytest.raises(SystemExit, match="0"):
        main(["report", str(run), "--format", "html"])
    text = re.sub(r"<style>.*?</style>", "", capsys.readouterr().out)
    titles = re.findall(r"<h2>([^<]*)</h2>", text)
    assert re.findall(r"\b[Pp]ass\b|\b[Ff]ail(?:ed|ures)?\b|✓|✗", seen(text)) == []
    assert {"Scores below 1 by reason", "Scores of 1 and skipped"} <= set(titles)


def test_inspect_says_of_a_suite_that_has_only_scores_what_its_pages_say(tmp_path, capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["inspect", str(scored_run(tmp_path))])
    lines = capsys.readouterr().out.split("\n")
    assert [line.partition("  ")[0] for line in lines if "· agent" in line] == ["· score 1", "· below 1"]
    assert [line.split()[1:4] for line in lines if "evaluators" in line] == [["·", "same", "1"], ["·", "same", "0"]]
