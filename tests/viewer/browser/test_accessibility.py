"""Pages for everyone, in a real Chromium: what axe finds, small screens, dark pages, print, assistive programs."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from evalwright.model.cell import cell_key
from viewer.browser.pages import IN_CHROMIUM, TAGS, violations, when_read

pytestmark = IN_CHROMIUM


SNAPSHOTS = Path(__file__).parent / "snapshots"
"""What assistive programs are told of each page; `EVALWRIGHT_WRITE=1` writes them anew."""


CHANGING = (
    (r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d_shop(-\d+)?", "RUN"),
    (r"/(?:[^/\s\"]+/)+(?=RUN|eval\.yaml)", "FOLDER/"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?Z?", "TIME"),
    (r"[−+±]?[\d,.]+ (ms|s|min)\b", "DURATION"),
)
"""What differs from run to run of the tests, and what stands for it."""


def test_a_text_is_read_from_the_side_from_which_it_is_written(visit, runs):
    page = visit(f"/runs/{runs[0].name}")
    page.get_by_role("rowheader").get_by_role("link", name="case-1").click()
    answer = page.locator("pre:not(.json)").first
    answer.evaluate("text => { text.textContent = 'שלום!'; }")
    right = """text => {
      const range = document.createRange();
      range.selectNodeContents(text);
      const box = text.getBoundingClientRect();
      return range.getBoundingClientRect().left - box.left > box.right - range.getBoundingClientRect().right;
    }"""
    assert answer.evaluate(right)
    answer.evaluate("text => { text.textContent = 'Hello!'; }")
    assert not answer.evaluate(right)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_usable_by_everyone(live, visit, runs, written, scheme):
    a, b = (run.name for run in runs)
    cell = cell_key("case-3", "agent", 0)
    paths = ["/", f"/runs/{a}", f"/runs/{a}?group=status", f"/runs/{a}/cells/{cell}", f"/compare?a={a}&b={b}"]
    paths += [f"/compare/cells/{cell}?a={a}&b={b}", f"/compare?b={b}", f"/runs/{a}/label"]
    paths += [f"/runs/{a}/trials?case=case-2&variant=agent", f"/runs/{live.name}"]
    page = visit("/", color_scheme=scheme)
    start = "/".join(page.url.split("/", 3)[:3])
    for path in [*(start + path for path in paths), *written]:
        page.goto(path)
        when_read(page)
        rules = TAGS if scheme == "light" else {"type": "rule", "values": ["color-contrast"]}  # what colours change
        assert violations(page, rules) == [], path
        assert page.get_by_role("heading", level=1).count() == 1


@pytest.mark.parametrize("width", [320, 800])
def test_a_small_screen_does_not_scroll_sideways_and_the_theme_stays(visit, runs, written, live, width):
    a, b = (run.name for run in runs)
    cell = cell_key("case-3", "agent", 0)
    page = visit("/", viewport={"width": width, "height": 640})
    start = page.url.rstrip("/")
    paths = ("/", f"/runs/{a}", f"/runs/{a}/cells/{cell}", f"/compare?a={a}&b={b}", f"/runs/{a}/label")
    for path in [*(start + path for path in paths), *written]:
        page.goto(path)
        when_read(page)
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        for name in page.locator(".more-filters .check").all():
            name.evaluate("label => label.append('W'.repeat(300))")  # as names of metadata may be
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    page.goto(start)
    colour = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(colour)
    page.get_by_role("button", name="Theme").click()
    chosen = page.evaluate(colour)
    assert chosen != before
    page.reload()
    assert page.evaluate(colour) == chosen


@pytest.mark.parametrize("width", [360, 800, 1100])
def test_the_numbers_of_a_report_are_seen_without_scrolling_sideways(visit, written, width):
    page = visit("/", viewport={"width": width, "height": 640})
    cut = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.getAttribute('aria-label'))"
    for path in written:
        page.goto(path)
        assert page.locator(".wide").evaluate_all(cut) == [], path


@pytest.mark.parametrize("name", ["runs", "run", "cell", "compare", "compared-cell", "trials", "label"])
def test_the_accessibility_tree_of_a_page_is_the_kept_one(visit, runs, name):
    a, b = (run.name for run in runs)
    cell = cell_key("case-3", "agent", 0)
    paths = {
        "runs": "/",
        "run": f"/runs/{a}",
        "cell": f"/runs/{a}/cells/{cell}",
        "compare": f"/compare?a={a}&b={b}",
        "compared-cell": f"/compare/cells/{cell}?a={a}&b={b}",
        "trials": f"/runs/{a}/trials?case=case-2&variant=agent",
        "label": f"/runs/{a}/label?seed=1",
    }
    body = visit(paths[name]).locator("body")
    while name == "runs" and "worse" not in body.inner_text():  # counted in the background
        body.page.reload()
    found = body.aria_snapshot() + "\n"
    for pattern, stands_for in CHANGING:
        found = re.sub(pattern, stands_for, found)
    kept = SNAPSHOTS / f"{name}.yaml"
    if os.environ.get("EVALWRIGHT_WRITE"):
        kept.write_text(found)
    assert found == kept.read_text()


def test_marks_are_readable_in_forced_colours(visit, runs):
    path = f"/runs/{runs[0].name}/cells/{cell_key('case-2', 'agent', 0)}"
    page = visit(path, color_scheme="dark", forced_colors="active")
    page.locator("pre").first.evaluate("text => { text.innerHTML = '<mark class=bad>forbidden</mark>'; }")
    assert violations(page, ["color-contrast"]) == []


def test_a_page_is_printed_whole_and_light(visit, runs):
    page = visit(f"/runs/{runs[0].name}", color_scheme="dark", viewport={"width": 700, "height": 900})
    page.emulate_media(media="print")
    assert violations(page, ["color-contrast"]) == []
    colours = "names => names.map(name => getComputedStyle(document.documentElement).getPropertyValue(name))"
    names = ["--ground", "--bar", "--mark", "--good", "--bad"]
    printed = page.evaluate(colours, names)
    page.emulate_media(media="screen", color_scheme="light")
    assert printed == page.evaluate(colours, names)
    page.emulate_media(media="print", color_scheme="dark")
    clipped = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.getAttribute('aria-label'))"
    assert page.locator(".wide").evaluate_all(clipped) == []
