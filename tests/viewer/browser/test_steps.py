"""The steps of an agent in a real Chromium: numbers that are read at each width, and texts that use the whole page."""

from __future__ import annotations

import json
import shutil

import pytest

from evalwright.model.cell import cell_key
from viewer.browser.pages import IN_CHROMIUM, when_read

pytestmark = IN_CHROMIUM

SAID = "The search found nothing at all. " * 40
ADDRESS = f"cells/{cell_key('case-1', 'agent', 0)}"


@pytest.fixture
def stepped(runs):
    """A run with 30 steps in its second cell, of which one failed."""
    run = runs[0].with_name("2020-01-01T00-00-00_steps")
    shutil.copytree(runs[0], run)
    lines = [json.loads(line) for line in (run / "traces.jsonl").read_text().splitlines()]
    attributes = {"input_tokens": 123_456, "output_tokens": 9_876, "cost_usd": 12.3456}
    for trace in lines:
        if trace["case_id"] == "case-1":
            step = {**trace["spans"][0], "kind": "retriever", "output": SAID, "attributes": attributes}
            trace["spans"] = [{**step, "id": f"s{n}", "name": f"tools.search_orders_{n}"} for n in range(30)]
            trace["spans"][20] |= {"status": "error", "error": "no answer"}
    (run / "traces.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    yield run
    shutil.rmtree(run)


@pytest.mark.parametrize("width", [800, 1000, 1280])
def test_no_number_of_a_step_covers_another(visit, stepped, width):
    page = visit(f"/runs/{stepped.name}/{ADDRESS}", viewport={"width": width, "height": 640})
    steps = page.get_by_role("table", name="Steps")
    cut = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent)"
    assert steps.locator("td, th").evaluate_all(cut) == []
    if width > 800:
        return
    steps.get_by_text("tools.search_orders_3", exact=True).click()
    text = steps.get_by_role("group", name="tools.search_orders_3 output")
    assert text.bounding_box()["width"] > 700
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_step_that_failed_is_one_link_away(visit, stepped):
    from playwright.sync_api import expect

    page = visit(f"/runs/{stepped.name}/{ADDRESS}")
    page.get_by_role("navigation", name="Sections").get_by_role("link", name="Spans, 1 failed").click()
    page.get_by_role("link", name="tools.search_orders_20").click()
    step = page.get_by_role("table", name="Steps").get_by_text("tools.search_orders_20", exact=True)
    expect(step).to_be_in_viewport()


def test_tables_stay_tables_on_paper(visit, stepped, written):
    page = visit("/", viewport={"width": 703, "height": 1000})  # A4 without its margins
    start = page.url.rstrip("/")
    page.emulate_media(media="print")
    for path in (f"{start}/runs/{stepped.name}", f"{start}/runs/{stepped.name}/{ADDRESS}", written[-1]):
        page.goto(path)
        when_read(page)
        for table in page.locator("table.list:not(.many):visible, table.spans").all():
            assert table.locator("tbody tr").first.evaluate("row => getComputedStyle(row).display") == "table-row"
        assert page.evaluate("document.documentElement.scrollWidth") <= 703, path
