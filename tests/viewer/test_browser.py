"""The viewer in a real Chromium: keys, script, policy, phones, dark pages, what axe finds, attacks."""

from __future__ import annotations

import os
import re
import shutil
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import uvicorn

from evalwright.cli.bundling import write_pages
from evalwright.cli.report_context import opened_context
from evalwright.cli.viewed_runs import StoredRun, runs_at
from evalwright.model.cell import cell_key
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from evalwright.viewer.access import Access
from evalwright.viewer.app import viewer
from evalwright.viewer.document import HtmlDocument
from run.suites import suite
from viewer.runs import ATTACK, cut_short, made_run, with_long_names

CHROMIUM = os.environ.get("EVALWRIGHT_CHROMIUM") or shutil.which("chromium")
REQUIRED = os.environ.get("EVALWRIGHT_BROWSER_TESTS") == "required"
pytestmark = [
    pytest.mark.slow("a real browser"),
    pytest.mark.skipif(
        not (CHROMIUM or REQUIRED), reason="no chromium: apt-get install --no-install-recommends chromium"
    ),
]
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
TOKEN = "b" * 32
SNAPSHOTS = Path(__file__).parent / "snapshots"
"""What assistive programs are told of each page; `EVALWRIGHT_WRITE=1` writes them anew."""
CHANGING = (
    (r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d_shop(-\d+)?", "RUN"),
    (r"/(?:[^/\s\"]+/)+(?=RUN|eval\.yaml)", "FOLDER/"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?Z?", "TIME"),
    (r"[−+±]?[\d,.]+ (ms|s|min)\b", "DURATION"),
)
"""What differs from run to run of the tests, and what stands for it."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browsed")
    return made_run(folder, trials=1), made_run(folder, trials=1, lost=1)


@pytest.fixture(scope="module")
def origin(runs):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        access = Access(TOKEN, (f"127.0.0.1:{port}",), port)
        app = viewer(lambda: runs_at([runs[0].parent]), access, labeller="ann")
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{port}"
        server.should_exit = server.force_exit = True
        thread.join()


@pytest.fixture(scope="module")
def browser(origin):
    """Opened after the runs are made: while it is open, this thread has an event loop that runs."""
    del origin
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        opened = play.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield opened
        opened.close()


@pytest.fixture
def live(runs):
    """A run that is being written."""
    run = runs[0].with_name("2020-01-01T00-00-00_live")
    shutil.copytree(runs[0], run)
    cut_short(run)
    yield run
    shutil.rmtree(run)


@pytest.fixture
def visit(browser, origin):
    """Opens pages; afterwards no error may be in the console, and no other host may have been asked."""
    asked: list[str] = []
    said: list[str] = []
    contexts = []

    def opened(path: str, **settings: object):
        context = browser.new_context(viewport=settings.pop("viewport", {"width": 1280, "height": 900}), **settings)
        contexts.append(context)
        context.set_default_timeout(20_000)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: (said.append("dialog"), dialog.dismiss()))
        page.goto(f"{origin}{path}{'&' if '?' in path else '?'}token={TOKEN}")
        when_read(page)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert said == []
    assert [url for url in asked if not url.startswith((origin, "data:", "file:"))] == []


def when_read(page) -> None:
    """Pages of what is still being read or compared load themselves again."""
    from playwright.sync_api import expect

    expect(page.locator("[data-refresh]")).to_have_count(0, timeout=60_000)
    page.wait_for_load_state("load")


def violations(page, rules=TAGS):
    """What axe finds on a page."""
    import axe_playwright_python

    page.evaluate((Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text() + ";0")
    found = page.evaluate("rules => axe.run(document, {runOnly: rules, preload: false})", rules)["violations"]
    return [(one["id"], one["nodes"][0]["target"]) for one in found]


def press(page, *keys: str) -> None:
    for key in keys:
        page.wait_for_load_state("load")
        page.keyboard.press(key)


def test_rows_do_not_move_under_the_pointer_when_their_run_ends(visit, live):
    from playwright.sync_api import expect

    page = visit(f"/runs/{live.name}")
    page.get_by_role("table", name="Cells").hover()
    page.evaluate("window.notLoadedAgain = true")
    (live / ".lock").unlink()
    button = page.get_by_role("button", name="Show the run as it ended")
    expect(button).to_be_visible()
    expect(page.get_by_role("region", name="Summary").get_by_text("interrupted", exact=True)).to_be_visible()
    assert page.evaluate("window.notLoadedAgain")
    button.click()
    expect(page.get_by_text("Resume with:")).to_be_visible()


def test_a_new_run_does_not_move_the_others_under_the_pointer(visit, runs):
    from playwright.sync_api import expect

    page = visit("/")
    page.get_by_role("table", name="Runs").hover()
    new = runs[0].with_name("2030-01-01T00-00-00_new")
    shutil.copytree(runs[0], new)
    try:
        for _ in range(2):  # the page asks by itself
            with page.expect_response(lambda answer: answer.url == page.url):
                pass
        link = page.get_by_role("row", name=new.name)
        expect(link).to_have_count(0)
        page.mouse.move(1, 1)
        expect(link).to_have_count(1)
    finally:
        shutil.rmtree(new)


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


def test_chosen_columns_and_marked_words_go_along_to_a_cell_and_back(visit, runs):
    from playwright.sync_api import expect

    page = visit(f"/runs/{runs[0].name}")
    header = page.get_by_role("table", name="Cells").get_by_role("columnheader")
    page.get_by_text("Columns", exact=True).first.click()
    page.get_by_role("checkbox", name="Tokens").check()
    expect(header.last).to_have_text("Tokens")
    page.get_by_role("checkbox", name="Answer").uncheck()
    expect(header).not_to_contain_text(["Answer"])
    page.get_by_role("searchbox", name="Search cells").fill("where")
    expect(page).to_have_url(re.compile("q=where.*column=tokens"))
    assert violations(page) == []
    page.get_by_role("rowheader").get_by_role("link", name="case-1").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("case-1")
    words = "() => [...(CSS.highlights.get('found') || [])].map((range) => range.toString())"
    assert set(page.evaluate(words)) == {"Where"}
    press(page, "b")
    expect(header.last).to_have_text("Tokens")
    page.get_by_role("checkbox", name="Tokens").uncheck()
    page.get_by_role("checkbox", name="Answer").check()
    expect(page).to_have_url(re.compile(r"\?q=where$"))


def test_a_link_within_a_page_of_the_server_does_not_load_it_again(visit, runs):
    page = visit(f"/runs/{runs[0].name}?q=order")
    page.evaluate("() => { window.loaded_once = true; location.hash = 'main'; }")
    page.evaluate("() => { location.hash = 'results'; }")
    page.wait_for_timeout(300)  # a reload would begin at once
    assert page.evaluate("() => window.loaded_once")


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


def test_from_a_failed_run_to_the_judges_prompt_by_keys(visit, runs):
    from playwright.sync_api import expect

    page = visit(f"/runs/{runs[0].name}")
    page.get_by_role("heading", level=1).click()
    press(page, "j", "j", "k", "Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("case-0")
    press(page, "j")
    expect(page.get_by_role("heading", level=1)).to_have_text("case-1")
    press(page, "b")
    page.get_by_role("region", name="Failures by reason").get_by_role("link", name="polite").click()
    page.get_by_role("rowheader").get_by_role("link", name="case-3").click()
    expect(page.get_by_text("is polite").first).to_be_visible()
    press(page, "b")
    expect(page.get_by_role("table", name="Cells")).to_be_visible()
    press(page, "/")
    expect(page.get_by_role("searchbox", name="Search cells")).to_be_focused()
    page.keyboard.type("j?")
    expect(page.get_by_role("searchbox", name="Search cells")).to_have_value("j?")
    press(page, "Escape", "?")
    help = page.get_by_role("dialog", name="Keyboard")
    expect(help).to_be_visible()
    help.get_by_role("checkbox", name="Keyboard shortcuts").uncheck()
    help.get_by_role("button", name="Close").click()
    press(page, "?")
    expect(help).to_be_hidden()
    page.get_by_role("button", name="Keys").click()
    expect(help).to_be_visible()


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


def test_filters_answer_at_once_and_back_restores_them(visit, runs):
    from playwright.sync_api import expect

    page = visit(f"/runs/{runs[0].name}")
    page.get_by_role("group", name="Status").get_by_role("checkbox", name="Fail", exact=True).check()
    expect(page.get_by_role("status").filter(has_text="2 of 7 cells")).to_be_visible()
    page.get_by_role("searchbox", name="Search cells").fill("order 3")
    expect(page.get_by_role("status").filter(has_text="1 of 7 cells")).to_be_visible()
    page.get_by_role("rowheader").get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("case-3")
    page.go_back()
    expect(page.get_by_role("searchbox", name="Search cells")).to_have_value("order 3")
    expect(page.get_by_role("status").filter(has_text="1 of 7 cells")).to_be_visible()


def test_two_runs_are_chosen_and_compared(visit, runs):
    from playwright.sync_api import expect

    page = visit("/")
    for run in runs:
        page.get_by_role("checkbox", name=f"Select {run.name}", exact=True).check()
    page.get_by_role("button", name="Compare selected").click()
    page.get_by_role("table", name="Changed cells").get_by_role("link", name="case-1").click()
    difference = page.get_by_role("region", name="Answer diff")
    expect(difference.get_by_role("insertion")).to_have_text("lost")
    expect(difference.get_by_role("deletion")).to_have_text("ready")


def test_answers_are_labelled_without_the_mouse(visit, runs):
    from playwright.sync_api import expect

    page = visit(f"/runs/{runs[1].name}/label?evaluator=says&order=suite")
    bar = page.get_by_role("progressbar", name="Labelled")
    for key, done in (("p", 1), ("f", 2), ("z", 1), ("u", 2), ("s", 2)):
        press(page, key)
        expect(bar).to_have_attribute("aria-valuetext", f"{done} of 6")
    expect(page.get_by_role("button", name="Show the judge's verdict")).to_be_visible()
    assert len((runs[1] / "labels.csv").read_text().splitlines()) == 5


@pytest.fixture(scope="module")
def written(runs, tmp_path_factory):
    """Pages as files, and the run as one file."""
    folder = tmp_path_factory.mktemp("written")
    write_pages([runs[1]], folder / "pages", "all", runs[0], 100)
    with opened_context(runs[1], runs[0]) as context, closing(open_run(runs[1])[0]) as reader:
        text = HtmlDocument().render(reader, StoredRun(runs[1]).summary(), context)
    (folder / "run.html").write_text(text.replace("<details id", "<details open id"))
    run = folder / "pages" / "runs" / runs[1].name
    cell = run / "cells" / f"{cell_key('case-3', 'agent', 0)}.html"
    pages = [folder / "pages" / "index.html", run / "index.html", cell, folder / "pages" / "compare" / "index.html"]
    return [path.as_uri() for path in [*pages, folder / "run.html"]]


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


@pytest.mark.parametrize("name", ["runs", "run", "cell", "compare", "compared-cell", "trials", "label"])
def test_a_page_tells_assistive_programs_what_it_told(visit, runs, name):
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
