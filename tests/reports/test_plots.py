"""Plots: well-formed, described, escaped, and the same numbers as text."""

from __future__ import annotations

import re
from base64 import b64decode
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from evalwright.model.summary import ComparisonReport, VariantDelta
from evalwright.registry import load
from evalwright.reports.intervals import ForestRow, forest_lines, interval_line, spark
from evalwright.reports.pictures.plots import forest_svg, power_svg
from reports.runs import HOSTILE, stored, summary

SVG = "{http://www.w3.org/2000/svg}"
ROWS = [
    ForestRow("pass rate", 0.018, -0.033, 0.069, strong=True),
    ForestRow("lang=es <script>", -0.112, -0.2, -0.03),
    ForestRow(HOSTILE, 0.05, 0.01, 0.1),
]


def test_a_forest_is_an_accessible_picture_without_script() -> None:
    root = ElementTree.fromstring(forest_svg("B − A", ROWS, margin=0.02))
    assert (root.tag, root.get("role"), root[0].text) == (f"{SVG}svg", "img", "B − A")
    assert "pass rate: +1.8 [−3.3, +6.9]" in (root[1].text or "")
    assert root.findall(f".//{SVG}script") == []
    sides = [line.get("class") for line in root.findall(f"{SVG}line") if line.get("stroke-width")]
    assert sides == ["open", "fail", "pass"]
    texts = [text.text or "" for text in root.findall(f"{SVG}text")]
    assert "lang=es <script>" in texts
    assert "−11.2 [−20.0, −3.0]" in texts


def test_the_numbers_of_an_interval_show_on_which_side_of_the_margin_it_ends() -> None:
    rows = [ForestRow("just better", 0.01, -0.0196, 0.05), ForestRow("just worse", 0.01, -0.0204, 0.05)]
    text = ElementTree.fromstring(forest_svg("", rows, margin=0.02))[1].text or ""
    assert "just better: +1.0 [−1.96, +5.0]; just worse: +1.0 [−2.04, +5.0]" in text


def test_intervals_stand_where_their_numbers_are() -> None:
    root = ElementTree.fromstring(forest_svg("", ROWS, margin=0.02))
    lines = root.findall(f"{SVG}line")
    zero = next(float(line.get("x1", 0)) for line in lines if line.get("class") == "zero")
    low, high = ([float(line.get(end, 0)) for line in lines if line.get("class") == "fail"] for end in ("x1", "x2"))
    assert low[0] < high[0] < zero


def test_no_text_of_a_forest_lies_on_another_or_on_an_interval() -> None:
    letter = 8.0  # at most, in the fonts that systems use at this size
    for rows in ([ForestRow("a", 0.3, 0.01, 0.6)], [*ROWS[:2], ForestRow("w" * 60, -0.4, -0.9, 0.001)]):
        root = ElementTree.fromstring(forest_svg("", rows))
        width = float(root.get("width", 0))
        texts = [(float(one.get("x", 0)), one.get("text-anchor"), one.text or "") for one in root.findall(f"{SVG}text")]
        starts = [float(line.get("x1", 0)) for line in root.findall(f"{SVG}line") if line.get("stroke-width")]
        ends = [float(line.get("x2", 0)) for line in root.findall(f"{SVG}line") if line.get("stroke-width")]
        assert max(letter * len(text) for _, anchor, text in texts if anchor is None) < min(starts)
        assert max(ends) < width - max(letter * len(text) for x, anchor, text in texts if x == width)
        below = [
            (x, {"start": 0, "middle": 0.5, "end": 1}[anchor], letter * len(text))
            for x, anchor, text in texts
            if anchor and x < width
        ]
        spans = sorted((x - share * long, x - share * long + long) for x, share, long in below)
        assert all(before[1] < after[0] for before, after in pairwise(spans))
        assert any(text == "0.0 pp" for _, _, text in texts)


def test_power_curves_have_names_and_numbers_for_all_readers() -> None:
    curves = [("1 trial", [(100, 0.3), (400, 0.8)]), ("3 trials", [(50, 0.4), (200, 0.8)])]
    root = ElementTree.fromstring(power_svg("Power", curves, 0.8))
    assert "1 trial: 100 cases 30%, 400 cases 80%" in (root[1].text or "")
    assert len(root.findall(f"{SVG}polyline")) == 2


def test_as_text_a_forest_fits_the_columns() -> None:
    lines = forest_lines(ROWS[:2])
    assert [len(line) for line in lines] == [80, 80]
    assert lines[1].endswith("−11.2 [−20.0, −3.0]")
    assert lines[1].index("●") < lines[1].index("│")
    line = interval_line(ROWS[0], 78, margin=0.02)
    assert len(line) == 78
    assert line.index("┆") < line.index("│")
    drawn_in = interval_line(ForestRow("a guarded interval", 1.0, -0.2, 0.9), 78)
    assert drawn_in.index("─") < drawn_in.rindex("─") < drawn_in.index("●")
    assert spark([0, 0.5, 1]) == "▁▅█"


def test_reports_draw_variants_against_their_baseline() -> None:
    deltas = [
        VariantDelta(HOSTILE, 0.1, None, [], ["a"], 30, (0.02, 0.2), 0.01),
        VariantDelta("new", -0.1, None, ["b"], [], 30, (-0.2, 0.05), 0.2),
        VariantDelta("gone", None, None, [], [], 0),
    ]
    made = summary(comparison=ComparisonReport("old", deltas))
    page = load("reports", "html")().render(stored(), made)
    (picture,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    assert b'class="plot"' in b64decode(picture)
    text = load("reports", "markdown")().render(stored(), made)
    fenced = text.partition("```text\n")[2].partition("```")[0]
    assert len(fenced.splitlines()) == 2
    assert "−10.0 [−20.0, +5.0]" in fenced


@pytest.mark.parametrize(("points", "ends"), [(True, ("−100.0", "5.0")), (False, ("−1.050", "0.050"))])
def test_no_scale_goes_beyond_all_cases(points, ends):
    line = interval_line(ForestRow("all lost", -1.0, -1.0, -0.8), 78, points=points)
    assert (line.split()[0], line.split()[-1].lstrip("+")) == ends
