"""Reading runs in a real Chromium: keys, filters, columns, labels, and pages of runs that go on."""

from __future__ import annotations

import re
import shutil

from viewer.browser.pages import IN_CHROMIUM, press, violations

pytestmark = IN_CHROMIUM


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


def test_what_an_evaluator_said_is_chosen_without_a_new_page(visit, runs):
    from playwright.sync_api import expect

    page = visit(f"/runs/{runs[0].name}")
    verdict = page.get_by_role("combobox", name="Its verdict")
    expect(verdict).to_be_hidden()
    page.get_by_role("combobox", name="Evaluator").select_option("says")
    expect(page.get_by_role("status").filter(has_text="1 of 7 cells")).to_be_visible()
    verdict.select_option("passed")
    expect(page.get_by_role("status").filter(has_text="5 of 7 cells")).to_be_visible()
    page.get_by_text("More", exact=True).click()
    page.get_by_label("Latency (ms) from").press_sequentially("1e")
    page.keyboard.press("Tab")
    page.get_by_role("checkbox", name="Trials disagree").check()
    expect(page).to_have_url(re.compile(r"\?evaluator=says&verdict=pass&flaky=1$"))  # and not to a page of errors


def test_the_list_of_runs_is_sorted_at_once(visit, runs):
    from playwright.sync_api import expect

    page = visit("/")
    page.get_by_role("combobox", name="Sort by").select_option("oldest first")
    expect(page.get_by_role("table", name="Runs").get_by_role("rowheader").first).to_contain_text(runs[0].name)
    expect(page).to_have_url(re.compile(r"\?sort=started$"))
    page.get_by_role("searchbox", name="Filter runs").fill(runs[1].name)
    expect(page.get_by_role("status")).to_have_text("1 of 2 runs")


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
        expect(page.locator("main")).to_have_css("outline-style", "none")  # where the keys go on, not what they act on
    expect(page.get_by_role("button", name="Show the judge's verdict")).to_be_visible()
    assert len((runs[1] / "labels.csv").read_text().splitlines()) == 5
