"""Pages that were written as files, in a real Chromium: search, filters, Markdown and attacks."""

from __future__ import annotations

import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor

from evalwright.cli.bundling import write_pages
from evalwright.model.cell import cell_key
from evalwright.run.start import run_suite
from run.suites import suite
from viewer.browser.pages import IN_CHROMIUM, violations
from viewer.runs import ATTACK, made_run, scored_run, with_long_names

pytestmark = IN_CHROMIUM


MARKDOWN = """## Your *order*

Both **parts** of `order_7` are here,
<img src=x onerror="window.__xss=1"> and [a link](https://example.com/x) with ![a picture](https://example.com/y.png)

- first
  1. nested
- second

```python
answer = **kept**
```

| part | price |
|------|-------|
| lamp | 3     |

> quoted
"""


def test_markdown_is_rendered_when_asked_for(visit, tmp_path):
    from playwright.sync_api import expect

    with ThreadPoolExecutor() as apart:
        run = apart.submit(run_suite, suite(tmp_path, [MARKDOWN, "plain, 2 * 3 * 4", MARKDOWN])).result().run_dir
    write_pages([run], tmp_path / "pages", "all", None, 100)
    page = visit("/")
    cells = tmp_path / "pages" / "runs" / run.name / "cells"
    first, plain, last = ((cells / f"{cell_key(case, 'main', 0)}.html").as_uri() for case in ("c0", "c1", "c2"))
    page.goto(first)
    button, answer = page.get_by_role("button", name="Rendered"), page.get_by_role("group", name="Answer text")
    expect(answer).to_have_text(MARKDOWN)
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(answer.get_by_role("list")).to_have_count(2)
    expect(answer.get_by_role("strong")).to_have_text(["Your order", "parts"])
    expect(answer.get_by_role("code")).to_have_text(["order_7", "answer = **kept**"])
    expect(answer.get_by_role("row")).to_have_text(["partprice", "lamp3"])
    expect(answer.get_by_role("blockquote")).to_have_text("quoted")
    expect(answer).to_contain_text('<img src=x onerror="window.__xss=1"> and [a link](https://example.com/x)')
    assert page.evaluate("document.querySelectorAll('main img, main .rendered a').length") == 0
    assert violations(page) == []
    page.goto(plain)
    expect(button).to_be_hidden()
    expect(answer).to_have_text("plain, 2 * 3 * 4")
    page.goto(last)
    expect(answer.get_by_role("blockquote")).to_have_text("quoted")
    button.click()
    expect(answer).to_have_text(MARKDOWN)


def test_a_search_in_a_bundle_has_an_address(visit, runs, tmp_path):
    from playwright.sync_api import expect

    write_pages([runs[0]], tmp_path / "pages", "all", None, 100)
    page = visit("/")
    page.goto((tmp_path / "pages" / "runs" / runs[0].name / "index.html").as_uri())
    names = page.get_by_role("table", name="Cells").get_by_role("rowheader")
    all_of_them = names.count()
    page.get_by_role("checkbox", name="Error").check()
    expect(names).to_have_text(["case-4"])
    page.get_by_role("searchbox", name="Search cells").fill("nowhere")
    page.keyboard.press("Enter")
    expect(names).to_have_count(0)
    page.reload()
    expect(page.get_by_role("searchbox", name="Search cells")).to_have_value("nowhere")
    expect(names).to_have_count(0)
    page.go_back()
    expect(page.get_by_role("searchbox", name="Search cells")).to_have_value("")
    expect(names).to_have_text(["case-4"])
    page.go_back()
    expect(names).to_have_count(all_of_them)


def test_a_filter_in_a_bundle_says_how_many_of_its_cells_are_shown(visit, tmp_path):
    from playwright.sync_api import expect

    with ThreadPoolExecutor() as apart:  # in this thread the browser's own loop is running
        run = apart.submit(made_run, tmp_path, trials=40).result()
    write_pages([run], tmp_path / "pages", "all", None, 1000)
    page = visit("/")
    page.goto((tmp_path / "pages" / "runs" / run.name / "index.html").as_uri())
    following = page.get_by_role("link", name="Next page")
    expect(following.first).to_be_visible()
    page.get_by_role("searchbox", name="Search cells").fill("case")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("240 of 280 cells, the first 200 shown")
    expect(page.get_by_role("table", name="Cells").get_by_role("rowheader")).to_have_count(200)
    expect(following.first).not_to_be_visible()


def test_rows_of_a_search_in_a_bundle_are_those_of_its_pages(visit, tmp_path):
    """Long names, names with spaces and invisible characters included."""
    from playwright.sync_api import expect

    with ThreadPoolExecutor() as apart:
        run, _, names = apart.submit(with_long_names, tmp_path).result()
    write_pages([run], tmp_path / "pages", "all", None, 1000)
    page = visit("/")
    page.goto((tmp_path / "pages" / "runs" / run.name / "index.html").as_uri())
    row = page.get_by_role("table", name="Cells").get_by_role("row").nth(1)
    before = row.inner_text()
    assert ", ".join(names[:5]) + " and 2 more" in before
    page.get_by_role("searchbox", name="Search cells").fill("aaa")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("q=aaa"))
    expect(row).to_have_text(re.compile("Fail"))
    after = row.inner_text()
    assert after.partition(" and 2 more")[0].split() == before.partition(" and 2 more")[0].split()
    assert "word…" in after


def test_a_search_in_a_bundle_goes_with_the_typing(visit, runs, tmp_path):
    from playwright.sync_api import expect

    write_pages([runs[0]], tmp_path / "pages", "all", None, 100)
    page = visit("/")
    page.goto((tmp_path / "pages" / "runs" / runs[0].name / "index.html").as_uri())
    page.get_by_role("searchbox", name="Search cells").press_sequentially("attack")
    expect(page.get_by_role("status")).to_have_text("1 of 7 cells")


def test_a_filter_in_a_bundle_writes_numbers_as_its_pages_do(visit, runs, tmp_path):
    from playwright.sync_api import expect

    run = tmp_path / "run"
    shutil.copytree(runs[0], run)
    traces = [json.loads(line) for line in (run / "traces.jsonl").read_text().splitlines()]
    measures = [(12, 0.0005), (999, 0.00004), (3214, 1234.5), (45_000, 0.0), (725_000, 0.25), (59_960, 2e-13)]
    for trace, (latency, cost) in zip(traces, measures, strict=False):
        trace["latency_ms"], trace["metrics"] = latency, {"latency_ms": latency, "cost_usd": cost}
    (run / "traces.jsonl").write_text("".join(f"{json.dumps(trace)}\n" for trace in traces))
    write_pages([run], tmp_path / "pages", "all", None, 100)
    page = visit("/")
    page.goto(next((tmp_path / "pages" / "runs").glob("*/index.html")).as_uri())
    cells = page.get_by_role("table", name="Cells").locator("td[data-label=Latency], td[data-label=Cost]")
    before = cells.all_inner_texts()
    assert {"12 min 05 s", "$1,234.50", "$0.00050"} <= {*before}
    page.get_by_role("checkbox", name="Skip").check()
    expect(cells).to_have_count(0)
    page.get_by_role("checkbox", name="Skip").uncheck()
    expect(cells).to_have_text(before)


def test_attacks_stay_text_also_from_files(visit, runs, tmp_path):
    run = runs[0].name
    key = cell_key(f"attack {ATTACK}", "agent", 0)
    page = visit(f"/runs/{run}")
    for path in (f"/runs/{run}?group=tag", f"/runs/{run}/cells/{key}", f"/runs/{run}/label?order=suite"):
        page.goto("/".join(page.url.split("/", 3)[:3]) + path)
        assert page.evaluate("window.__xss") is None
    write_pages([runs[0]], tmp_path / "pages", "all", None, 100)
    page.goto((tmp_path / "pages" / "runs" / run / "index.html").as_uri())
    page.get_by_role("searchbox", name="Search cells").fill("attack")
    page.get_by_role("button", name="Apply").click()
    page.get_by_role("rowheader").get_by_role("link").click()
    assert page.get_by_role("heading", level=1).inner_text() == f"attack {ATTACK}"
    assert page.evaluate("window.__xss") is None


def test_the_filter_says_of_scores_what_the_pages_say(visit, tmp_path):
    from playwright.sync_api import expect

    with ThreadPoolExecutor() as apart:
        run = apart.submit(scored_run, tmp_path).result()
    write_pages([run], tmp_path / "pages", "all", None, 100)
    page = visit("/")
    page.goto((tmp_path / "pages" / "runs" / run.name / "index.html").as_uri())
    rows = page.get_by_role("table", name="Cells").get_by_role("row")
    expect(rows).to_have_count(3)
    written = rows.nth(2).inner_text()
    page.get_by_role("checkbox", name="Below 1").check()
    expect(rows).to_have_count(2)
    assert rows.nth(1).inner_text() == written
