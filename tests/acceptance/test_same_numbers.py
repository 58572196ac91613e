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
from evalwright.model.suite import Suite
from evalwright.model.summary import GateOutcome, RunSummary
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


Table = dict[str, tuple[str, dict[str, int]]]
"""By variant, the pass rate as it is written and the cells by status."""
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


@dataclass
class Shown:
    """A finished run, as each program and report shows it."""

    shape: Shape
    run: Path
    code: int
    summary: RunSummary
    counted: Counter[tuple[str, str]]
    """Cells by variant and status, counted from the verdicts."""
    compared: dict[str, tuple[int, int]]
    """By variant, the passed and the judged trials that a comparison would see."""
    texts: dict[str, str]

    @property
    def rates(self) -> dict[str, str]:
        return {
            variant.name: f"{variant.pass_rate:.1%}" if variant.pass_rate_n and variant.pass_rate is not None else ""
            for variant in self.summary.variants
        }

    @property
    def expected(self) -> Table:
        return {
            name[:_NAME]: (self.rates[name], {status: self.counted[name, status] for status in STATUSES})
            for name in self.shape.answers
        }

    @property
    def total(self) -> Counter[str]:
        return Counter({status: sum(counts[status] for _, counts in self.expected.values()) for status in STATUSES})


@pytest.fixture(scope="module", params=SHAPES)
def shown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    shape, folder = SHAPES[request.param], tmp_path_factory.mktemp("run")
    outcome = run_suite(suite_of(shape, folder))
    run = outcome.run_dir
    reader, plan = open_run(run)
    with closing(reader):
        summary = folded_summary(reader, plan)
        counted = Counter((verdict.variant_name, verdict.status) for verdict in reader.verdicts(CaseVerdict))
        passes = {name: side.passes.values() for name, side in sides_of(reader, plan).items()}
        texts = {
            "terminal": "\n".join(run_lines(plan, summary, Paint(columns=None))),
            "narrow terminal": "\n".join(run_lines(plan, summary, Paint(columns=80))),
            "Markdown": Markdown().render(reader, summary),
            "HTML": HtmlDocument().render(reader, summary),
            "JUnit": JUnit().render(reader, summary),
        }
    write_pages([run], folder / "pages", "all", None, 1000)
    texts["bundle"] = (folder / "pages" / "runs" / run.name / "index.html").read_text()
    app = viewer(lambda: runs_at([run]), Access(None, ("127.0.0.1:7766",), 7766))
    client = TestClient(app, base_url="http://127.0.0.1:7766")
    texts |= {"viewer": client.get(f"/runs/{run.name}").text, "list of runs": client.get("/").text}
    compared = {
        name: (sum(case.total for case in cases), sum(case.judged for case in cases)) for name, cases in passes.items()
    }
    return Shown(shape, run, outcome.exit_code, summary, counted, compared, texts)


def suite_of(shape: Shape, folder: Path) -> Suite:
    asked = suite(folder, [], evaluators=shape.evaluators, stop_after_errors=0, **shape.settings)
    asked.variants = [
        Variant(name, "python_function", {"target": "agents:tabled", "answers": row})
        for name, row in shape.answers.items()
    ]
    asked.cases = [
        EvalCase(id=f"c{i}", input=i, metadata={"cents": 30 * i} if i % 2 else {})
        for i in range(max(map(len, shape.answers.values())))
    ]
    asked.gate = shape.gate
    return asked


def test_the_tables_of_variants_are_the_same(shown: Shown) -> None:
    tables = {
        "terminal": in_terminal(shown.texts["terminal"], shown.shape),
        "Markdown": in_markdown(shown.texts["Markdown"]),
        **{name: in_html(shown.texts[name]) for name in ("HTML", "viewer", "bundle")},
    }
    assert tables == dict.fromkeys(tables, shown.expected)


def test_a_narrow_terminal_is_wide_enough(shown: Shown) -> None:
    # Warnings stay in one line each, so that they can be searched for; a loaded machine has one about latencies.
    lines = [line for line in shown.texts["narrow terminal"].splitlines() if not line.startswith("warning: ")]
    assert max(map(width, lines)) <= 80


def test_a_comparison_sees_the_same_trials(shown: Shown) -> None:
    assert shown.compared == {
        name: (
            shown.counted[name, "pass"],
            sum(shown.counted[name, status] for status in ("pass", "borderline", "fail")),
        )
        for name in shown.shape.answers
    }


def test_junit_counts_the_same_cells(shown: Shown) -> None:
    total = shown.total
    assert in_junit(ElementTree.fromstring(shown.texts["JUnit"]), gated=shown.shape.gate is not None) == {
        "tests": total.total(),
        "failures": total["fail"] + total["borderline"],
        "errors": total["error"],
        "skipped": total["skip"],
    }


def test_pages_say_how_many_cells_there_are_and_the_best_rate(shown: Shown) -> None:
    cells = shown.total.total()
    for name in ("viewer", "bundle"):
        assert f'<p role="status">{cells} of {cells} cells</p>' in shown.texts[name]
    known = [rate for rate in shown.rates.values() if rate]
    listed = shown.texts["list of runs"]
    best = max(known, key=lambda rate: float(rate[:-1]), default="no verdicts")
    assert best in said(listed[listed.index('data-label="Pass rate"') :])


def test_github_is_told_the_same_numbers(shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step_summary, outputs = on_github(shown.run, tmp_path, monkeypatch)
    assert in_markdown(step_summary) == shown.expected
    total = shown.total
    least = min((variant.pass_rate or 0.0 for variant in shown.summary.variants if variant.pass_rate_n), default=None)
    wanted = {
        "passed": str(total["pass"]),
        "failed": str(total["fail"] + total["borderline"]),
        "errors": str(total["error"]),
        "exit_code": str(shown.shape.code),
        "pass_rate": "" if least is None else f"{least:.6g}",
    }
    assert {name: outputs[name] for name in wanted} == wanted


def test_the_exit_code_and_the_gate_are_told_alike(shown: Shown) -> None:
    assert shown.code == shown.shape.code
    gate = shown.summary.gate
    assert (gate is not None) == (shown.shape.gate is not None)
    if gate is not None:
        plain = {name: shown.texts[name] for name in ("terminal", "Markdown")}
        pages = {name: said(shown.texts[name]) for name in ("HTML", "viewer", "bundle")}
        assert [name for name, text in (plain | pages).items() if not tells(text, gate)] == []


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


def in_markdown(text: str) -> Table:
    table = text[text.index("## Variants") :].split("\n\n")[1].splitlines()
    titles, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    return {row[0].strip("` ")[:_NAME]: counts_of(titles, row) for row in rows}


def in_html(text: str) -> Table:
    _, table = re.split(r'<table class="list[^"]*" aria-label="Variants"', text, maxsplit=1)
    table = table.partition("</table>")[0]
    titles, *rows = [
        [said(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)]
        for row in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
    ]
    return {row[0][:_NAME]: counts_of(titles, row) for row in rows}


def in_terminal(text: str, shape: Shape) -> Table:
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
