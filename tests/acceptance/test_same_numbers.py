"""One run has the same numbers everywhere: terminal, Markdown, HTML, JUnit, GitHub, viewer, bundle, comparison."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from starlette.testclient import TestClient

from evalwright.cli.bundling import write_pages
from evalwright.cli.github import show_on_github
from evalwright.cli.viewed_runs import runs_at
from evalwright.decisions.sides import sides_of
from evalwright.model.case import EvalCase
from evalwright.model.plan import EvaluatorSpec, PassCriteria, Variant
from evalwright.model.result import CaseVerdict
from evalwright.model.summary import GateOutcome
from evalwright.reports import numbers
from evalwright.reports.junit import JUnit
from evalwright.reports.markdown import Markdown
from evalwright.reports.terminal import run_lines
from evalwright.reports.text import Paint, width
from evalwright.run.outcomes import folded_summary
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from evalwright.viewer.access import Access
from evalwright.viewer.app import viewer
from evalwright.viewer.document import HtmlDocument
from run.suites import suite

_NAME = 20
"""Characters of a name that are not cut anywhere."""
STATUSES = ("pass", "borderline", "fail", "error", "skip")
DONE = EvaluatorSpec("done", "contains_text", {"all_of": ["done"]}, weight=3.0)
SHORT = EvaluatorSpec("short", "contains_text", {"all_of": ["done", "never"]})
CHEAP = {"field": "case.metadata.cents", "at_most": 50, "absent": "skip"}
MEAN = {"kind": "simple", "metric_key": "done", "aggregation": "avg_score", "op": "gte"}


@dataclass
class Shape:
    """A run: for each variant, what happens to each case, as in `agents:tabled`."""

    answers: dict[str, str]
    evaluators: list[EvaluatorSpec] = field(default_factory=lambda: [DONE])
    settings: dict[str, Any] = field(default_factory=dict)
    gate: dict[str, Any] | None = None
    code: int = 1


SHAPES = {
    "errors": Shape({"main": "1101e0ee"}, code=3),
    "only errors": Shape({"main": "eee"}, code=3),
    "variants": Shape({"old": "110011", "new": "0110e1", "a-long-name-of-a-variant-" * 4: "111111"}, code=3),
    "trials": Shape({"main": "10e1", "other": "0011"}, settings={"trials": 3}, code=3),
    "skips": Shape({"main": "111111"}, [EvaluatorSpec("cheap", "field_check", CHEAP)]),
    "all skipped": Shape({"main": "1"}, [EvaluatorSpec("cheap", "field_check", CHEAP)], code=0),
    "weights": Shape({"main": "1100"}, [DONE, SHORT], {"criteria": PassCriteria(rule="bands")}),
    "gate passed": Shape({"main": "1110"}, gate=MEAN | {"value": 0.5}, code=0),
    "gate failed": Shape({"main": "1110"}, gate=MEAN | {"value": 0.9}),
    "gate undecided": Shape({"main": "1110ee"}, gate=MEAN | {"value": 0.7}, code=3),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_run_has_the_same_numbers_everywhere(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = SHAPES[name]
    asked = suite(tmp_path, [], evaluators=shape.evaluators, stop_after_errors=0, **shape.settings)
    asked.variants = [
        Variant(name, "python_function", {"target": "agents:tabled", "answers": row})
        for name, row in shape.answers.items()
    ]
    asked.cases = [
        EvalCase(id=f"c{i}", input=i, metadata={"cents": 30 * i} if i % 2 else {})
        for i in range(max(map(len, shape.answers.values())))
    ]
    asked.gate = shape.gate
    outcome = run_suite(asked)
    assert outcome.exit_code == shape.code
    run = outcome.run_dir
    reader, plan = open_run(run)
    with closing(reader):
        summary = folded_summary(reader, plan)
        counted = Counter((one.variant_name, one.status) for one in reader.verdicts(CaseVerdict))
        rates = {
            one.name: f"{one.pass_rate:.1%}" if one.pass_rate_n and one.pass_rate is not None else ""
            for one in summary.variants
        }
        expected = {
            one[:_NAME]: (rates[one], {status: counted[one, status] for status in STATUSES}) for one in shape.answers
        }
        compared = {
            name: (sum(case.total for case in side.passes.values()), sum(case.judged for case in side.passes.values()))
            for name, side in sides_of(reader, plan).items()
        }
        wide = run_lines(plan, summary, Paint(columns=None))
        narrow = run_lines(plan, summary, Paint(columns=80))
        markdown = Markdown().render(reader, summary)
        document = HtmlDocument().render(reader, summary)
        junit = ElementTree.fromstring(JUnit().render(reader, summary))
    assert max(map(width, narrow)) <= 80
    assert compared == {
        name: (counted[name, "pass"], sum(counted[name, status] for status in ("pass", "borderline", "fail")))
        for name in shape.answers
    }
    write_pages([run], tmp_path / "pages", "all", None, 1000)
    bundled = (tmp_path / "pages" / "runs" / run.name / "index.html").read_text()
    app = viewer(lambda: runs_at([run]), Access(None, ("127.0.0.1:7766",), 7766))
    client = TestClient(app, base_url="http://127.0.0.1:7766")
    shown, listed = client.get(f"/runs/{run.name}").text, client.get("/").text

    tables = {
        "terminal": in_terminal("\n".join(wide), shape),
        "Markdown": in_markdown(markdown),
        "HTML": in_html(document),
        "viewer": in_html(shown),
        "bundle": in_html(bundled),
    }
    assert tables == dict.fromkeys(tables, expected)

    total = Counter({status: sum(counts[status] for _, counts in expected.values()) for status in STATUSES})
    cells = sum(total.values())
    assert in_junit(junit, gated=shape.gate is not None) == {
        "tests": cells,
        "failures": total["fail"] + total["borderline"],
        "errors": total["error"],
        "skipped": total["skip"],
    }
    for text in (shown, bundled):
        assert f'<p role="status">{cells} of {cells} cells</p>' in text
    assert (summary.gate is not None) == (shape.gate is not None)
    best = max((rate for rate in rates.values() if rate), key=lambda rate: float(rate[:-1]), default="no verdicts")
    assert best in said(listed[listed.index('data-label="Pass rate"') :])

    step_summary, outputs = on_github(run, tmp_path, monkeypatch)
    assert in_markdown(step_summary) == expected
    assert (outputs["passed"], outputs["failed"], outputs["errors"], outputs["exit_code"]) == (
        str(total["pass"]),
        str(total["fail"] + total["borderline"]),
        str(total["error"]),
        str(shape.code),
    )
    least = min((one.pass_rate or 0.0 for one in summary.variants if one.pass_rate_n), default=None)
    assert outputs["pass_rate"] == ("" if least is None else f"{least:.6g}")

    if summary.gate is not None:
        for text in ("\n".join(wide), markdown, said(document), said(shown), said(bundled)):
            assert tells(text, summary.gate)


def in_junit(junit: ElementTree.Element, *, gated: bool) -> dict[str, int]:
    """The numbers of cells: the gate counts as a test like these, and is left out."""
    [tests] = junit.iter("testsuite")
    gates = [one for one in tests.iter("testcase") if (one.get("classname"), one.get("name")) == ("run", "gate")]
    assert len(gates) == gated
    names = ("tests", "failures", "errors", "skipped")
    found = Counter({name: int(tests.get(name, "")) for name in names})
    for gate in gates:
        found -= Counter(tests=1, **{f"{part.tag}s".replace("skippeds", "skipped"): 1 for part in gate})
    return {name: found[name] for name in names}


def on_github(run: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, dict[str, str]]:
    """The summary of the step and its outputs."""
    files = {name: folder / name for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    for variable, file in files.items():
        monkeypatch.setenv(variable, str(file))
    show_on_github(run)
    outputs = re.findall(r"^(\w+)<<.*\n(.*)\n", files["GITHUB_OUTPUT"].read_text(), re.MULTILINE)
    return files["GITHUB_STEP_SUMMARY"].read_text(), dict(outputs)


def tells(text: str, gate: GateOutcome) -> bool:
    """Whether a report has the outcome of the gate and its condition."""
    word, _ = numbers.outcome(gate)
    [condition] = [numbers.condition(part) for part in gate.parts]
    plain = " ".join(text.replace("\\", "").replace("`", "").split())
    return re.search(rf"gate\W+{word}\b", text, re.IGNORECASE) is not None and condition in plain


def counts_of(titles: list[str], row: list[str]) -> tuple[str, dict[str, int]]:
    """The rate and the counts of a row; a column that is left out is 0."""
    named = dict(zip(titles, row, strict=False))
    rate = named.get("pass rate", "").strip()
    return rate if rate.endswith("%") else "", {status: int(named.get(status) or 0) for status in STATUSES}


def in_markdown(text: str) -> dict[str, tuple[str, dict[str, int]]]:
    table = text[text.index("## Variants") :].split("\n\n")[1].splitlines()
    titles, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    return {row[0].strip("` ")[:_NAME]: counts_of(titles, row) for row in rows}


def in_html(text: str) -> dict[str, tuple[str, dict[str, int]]]:
    table = text[text.index('<table class="list" aria-label="Variants"') :].partition("</table>")[0]
    titles, *rows = [
        [said(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)]
        for row in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
    ]
    return {row[0][:_NAME]: counts_of(titles, row) for row in rows}


def in_terminal(text: str, shape: Shape) -> dict[str, tuple[str, dict[str, int]]]:
    """Columns are at the places of their titles, numbers at the right."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line.split()[:1] == ["variant"])
    titles = [(found[0], found.end()) for found in re.finditer(r"\S+(?: \S+)*", lines[first])]
    read = {}
    for name, line in zip(shape.answers, lines[first + 1 :], strict=False):
        ends = {found.end(): found[0] for found in re.finditer(r"\S+(?: \S+)*", line)}
        assert line.split()[0].startswith(name[:_NAME])
        read[name[:_NAME]] = counts_of([title for title, _ in titles], [ends.get(end, "") for _, end in titles])
    return read


def said(text: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())
