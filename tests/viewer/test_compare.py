"""Two runs side by side, and the trials of a case."""

from __future__ import annotations

import re
import threading
from base64 import b64decode
from html import unescape
from pathlib import Path

import pytest

from evalwright.cli.viewed_runs import runs_at
from evalwright.model.cell import cell_key
from evalwright.model.plan import EvaluatorSpec
from evalwright.run.calibration import calibrate_run
from evalwright.run.start import run_suite
from evalwright.viewer.worddiff import Change, abridged, changed_calls, changes
from run.suites import suite
from viewer.reading import cases, found, page, seen
from viewer.runs import ATTACK, cut_short, made_run, site, site_of, with_outputs


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two runs in one folder: in the second, case 1 is lost and case 2 is ready."""
    folder = tmp_path_factory.mktemp("pair")
    before = made_run(folder, trials=1)
    after = made_run(folder, trials=1, lost=1)
    with site(before.parent) as client:
        yield before.parent, before.name, after.name, client


def test_changed_cases_come_worst_first_and_errors_are_neither(pair):
    _, a, b, client = pair
    answer = client.get(f"/compare?run={b}&run={a}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/compare?a={a}&b={b}")
    text = page(client, f"/compare?a={a}&b={b}")
    assert cases(text) == ["case-1", "case-2", "case-4"]
    assert found(text) == "3 of 7 cases"
    summary = seen(text[text.index('id="summary"') : text.index('id="changed"')])
    for part in ("1 worse", "1 better", "4 unchanged", "1 not comparable"):
        assert part in summary
    assert "Reason A B Gained by Lost by" in seen(text[text.index('id="reasons"') : text.index('id="changed"')])
    picture = b64decode(re.search(r'class="plot" src="data:image/svg[^,]*,([^"]*)" alt="[^"]*0.0 pp', text)[1]).decode()
    assert "pass rate" in picture  # and each slice by a tag below it
    assert "tag=other" in picture
    intervals = seen(text[text.index('aria-label="Intervals"') : text.index('id="by-tag"')])
    assert re.search(r"pass rate 0\.0 pp \[−[\d.]+, \+[\d.]+\] polite 0\.0 pp .* tag=", intervals)
    assert cases(page(client, f"/compare?a={a}&b={b}&change=better")) == ["case-2"]
    assert len(cases(page(client, f"/compare?a={a}&b={b}&unchanged=1"))) == 7
    assert cases(page(client, f"/compare?a={b}&b={a}"))[0] == "case-2"
    for query, wanted in {
        "tag=t1": ["case-1"],
        "evaluator=says": ["case-1", "case-2"],
        "status=error": ["case-4"],
        "q=lost&change=better": ["case-2"],
        "meta.suburb=s2": ["case-2"],
        "unchanged=1&tag=t1": ["case-1", "case-3", "case-5"],
        "cost_max=0.002": ["case-1"],
    }.items():
        narrowed = page(client, f"/compare?a={a}&b={b}&{query}")
        assert cases(narrowed) == wanted, query
        assert found(narrowed) == f"{len(wanted)} of 7 cases"
    assert "unknown key" in page(client, f"/compare?a={a}&b={b}&sort=cost", 400)
    assert "expected one of: pass" in page(client, f"/compare?a={a}&b={b}&status=odd", 400)
    assert "expected one of: worse" in page(client, f"/compare?a={a}&b={b}&change=odd", 400)
    assert "no variant" in page(client, f"/compare?a={a}&b={b}&va=nobody", 404)
    assert "<h1>Compare</h1>" in page(client, f"/compare?b={b}")


def test_long_ids_of_cases_that_gained_a_reason_are_shortened(tmp_path):
    def answered_by(system: str) -> Path:
        asked = suite(
            tmp_path, ["word"], system, evaluators=[EvaluatorSpec("says", "contains_text", {"all_of": ["word"]})]
        )
        asked.cases[0].id = "a" * 2500
        return run_suite(asked).run_dir

    before, after = answered_by("agents:echo"), answered_by("agents:silent")
    with site(before.parent) as client:
        text = page(client, f"/compare?a={before.name}&b={after.name}")
    assert "Gained by" in text
    assert "a" * 200 not in text


def test_what_labels_say_about_a_judge_is_among_the_warnings(tmp_path):
    before = made_run(tmp_path, trials=1)
    after = made_run(tmp_path, trials=1, lost=1)
    (tmp_path / "labels.csv").write_text("case_id,evaluator,verdict\ncase-0,polite,pass\ncase-3,polite,fail\n")
    with site(before.parent) as client:
        opinion = "judge polite uncalibrated: verdict is about the judge's opinion"
        assert opinion in unescape(page(client, f"/compare?a={before.name}&b={after.name}"))
        for run in (before, after):
            calibrate_run(run, tmp_path / "labels.csv")
        assert opinion not in unescape(page(client, f"/compare?a={before.name}&b={after.name}"))


class _Held:
    """A run that grows all the time, and that cannot be compared until it is let go."""

    def __init__(self, source, let_go):
        self._source, self._let_go, self._asked = source, let_go, 0

    def __getattr__(self, name):
        return getattr(self._source, name)

    def stamp(self):
        self._asked += 1
        return str(self._asked)

    def is_written(self):
        return False

    def open(self):
        if threading.current_thread().name.startswith("comparison"):
            self._let_go.wait(60)
        return self._source.open()


def test_a_comparison_that_is_being_made_says_so_and_goes_on_by_itself(pair):
    folder, a, b, _ = pair
    key = cell_key("case-1", "agent", 0)
    paths = f"/compare?a={a}&b={b}&change=worse", f"/compare/cells/{key}?a={a}&b={b}"
    let_go, before = threading.Event(), set(threading.enumerate())
    listed = [_Held(source, let_go) for source in runs_at([folder])]
    with site_of(lambda: listed) as held:
        try:
            for path in paths:
                text = held.get(path).text
                assert "comparing …" in seen(text)
                assert "data-refresh" in text
                assert '<noscript><meta http-equiv="refresh" content="1"></noscript>' in text
            begun = [one.name for one in set(threading.enumerate()) - before]
            assert sum(name.startswith("comparison") for name in begun) == 1  # not anew for each page
        finally:
            let_go.set()
        assert cases(page(held, paths[0])) == ["case-1"]
        assert "<del>ready</del><ins>lost</ins>" in page(held, paths[1])


def test_a_changed_case_shows_which_words_changed(pair):
    _, a, b, client = pair
    key = cell_key("case-1", "agent", 0)
    text = page(client, f"/compare/cells/{key}?a={a}&b={b}")
    assert "<del>ready</del><ins>lost</ins>" in text
    assert "says ✓ Pass → ✗ Fail" in seen(text)
    following = unescape(re.search(r'href="([^"]*)"[^>]*>Next changed cell', text)[1])
    assert "<h1>case-2</h1>" in page(client, following)
    side = page(client, f"/compare/cells/{key}?a={a}&b={b}&view=side")
    assert side.count("<pre") > text.count("<pre")
    assert unescape(re.search(r'href="([^"]*)"[^>]*>Next changed cell', side)[1]) == f"{following}&view=side"


def test_the_next_changed_case_is_the_next_one_of_the_list(pair):
    _, a, b, client = pair
    chosen = f"/compare?a={a}&b={b}&change=better&change=not+comparable&tag=t0"
    listed = page(client, chosen)
    assert cases(listed) == ["case-2", "case-4"]
    first = page(client, unescape(re.search(r'href="([^"]*)">case-2</a>', listed)[1]))
    assert unescape(re.search(r'href="([^"]*)"[^>]*>Back to comparison', first)[1]) == f"{chosen}#changed"
    last = page(client, unescape(re.search(r'href="([^"]*)"[^>]*>Next changed cell', first)[1]))
    assert "<h1>case-4</h1>" in last
    assert "Next changed cell" not in last


def test_what_narrows_a_list_or_turns_its_page_leads_to_the_list(pair):
    _, a, b, client = pair
    lists = {
        f"/compare?a={a}&b={b}": "changed",
        f"/runs/{a}": "cells-title",
        f"/runs/{a}?group=status": "cells-title",
        f"/runs/{a}?status=fail": "cells-title",
    }
    for path, place in lists.items():
        text = page(client, path)
        assert f'id="{place}"' in text
        links = [unescape(link) for link in re.findall(r'href="([^"]*)"', text)]
        narrowing = [link for link in links if re.search(r"[?&](change|reason|status)=", link) and ".csv" not in link]
        assert narrowing
        assert all(link.endswith(f"#{place}") for link in narrowing if "/cells/" not in link), path
    assert f'href="/runs/{a}#cells-title">Clear filters' in text


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("tag=t7", "'tag' is 't7', expected one of"),
        ("meta.town=x", "no case has metadata of this name"),
        ("verdict=pass", "'verdict' is given without 'evaluator'"),
        ("unchanged=yes", "'unchanged' is 'yes', expected 1"),
        ("after=3", "'after' is 3, but there are only 3 rows"),
    ],
)
def test_a_filter_that_leaves_no_case_by_mistake_is_named(pair, query, said):
    _, a, b, client = pair
    assert said in seen(page(client, f"/compare?a={a}&b={b}&{query}", 400))


def test_of_several_trials_the_ones_that_changed_are_shown(pair):
    """Case 5 passes in A; in B its second trial is lost, and case 4 has no verdict in either."""
    folder, a, _, client = pair
    b = made_run(folder.parent, trials=2).name
    table = seen(page(client, f"/compare?a={a}&b={b}"))
    assert "case-5 ✓ Pass 1/2 passed" in table
    assert "case-4 ! Error ! Error" in table
    text = page(client, f"/compare/cells/{cell_key('case-5', 'agent', 0)}?a={a}&b={b}")
    assert "<del>ready</del><ins>lost</ins>" in text
    assert "1/2 passed Whole cell of B Trial 2 is shown. 1 ✓ Pass 2 ✗ Fail" in seen(text)
    chosen = re.findall("<option selected>([^<]*)", page(client, f"/compare?b={b}"))
    assert chosen == [pair[2], b]  # without an A the run of the same eval before


def test_trials_are_compared_with_the_first(run, client):
    text = page(client, f"/runs/{run.name}/trials?case=case-5&variant=agent")
    assert "<del>ready</del><ins>lost</ins>" in text
    assert "×2" in page(client, f"/runs/{run.name}/cells/{cell_key('case-2', 'agent', 0)}")


@pytest.mark.parametrize(
    "output",
    [
        lambda trial: {"final_answer": f"{'the same beginning ' * 50}, ending {trial}"},
        lambda trial: {"structured": {"number": trial}},
    ],
    ids=["text", "structured"],
)
def test_trials_are_together_only_if_their_whole_answers_are_the_same(tmp_path, output):
    run = made_run(tmp_path, trials=2)
    with_outputs(run, "case-2", output)
    with site(run.parent) as client:
        text = page(client, f"/runs/{run.name}/cells/{cell_key('case-2', 'agent', 0)}")
        assert "×2" not in text[text.index('id="trials"') :]
        assert page(client, f"/runs/{run.name}/trials?case=case-2&variant=agent").count("<h2") == 2


def test_long_answers_leave_pages_of_comparisons_small(tmp_path):
    """Every line differs between the runs, and one word between the trials."""
    runs = [made_run(tmp_path, trials=2, lost=lost) for lost in (1, 2)]
    for place, run in enumerate(runs):
        lines = [f"<line {number}> of {place}\n" for number in range(4_000)]
        with_outputs(run, "case-2", lambda trial, lines=lines: {"final_answer": f"{''.join(lines)} end {trial}"})
    a, b = (run.name for run in runs)
    key = cell_key("case-2", "agent", 0)
    with site(runs[0].parent) as client:
        for path in (
            f"/runs/{a}/trials?case=case-2&variant=agent",
            f"/compare/cells/{key}?a={a}&b={b}",
            f"/compare/cells/{key}?a={a}&b={b}&view=side",
        ):
            text = page(client, path)
            assert len(text.encode()) <= 100_000
            assert re.search(r"… [\d,]+ characters …", text)


def test_of_an_abridged_difference_every_character_is_shown_or_counted():
    change = changes("a " * 5000 + "was " * 3000 + "b " * 5000, "a " * 5000 + "is " * 3000 + "b " * 5000)
    shown = abridged(change, 3000)
    counted = sum(int(piece.text.split()[0].replace(",", "")) for piece in shown if piece.kind == "left out")
    kept = sum(len(piece.text) for piece in shown if piece.kind != "left out")
    assert kept + counted == sum(len(one.text) for one in change)
    assert kept <= 3000 + 600
    assert abridged(change, 100_000) == change


def test_differences_say_how_to_come_from_one_text_to_the_other():
    pairs = [
        ("", ""),
        ("same", "same"),
        ("", "all new"),
        ("The order is ready.", "The order is lost!"),
        ("word " * 3000 + "x " * 500, "word " * 2000 + "y\n" * 900),
        ("".join(f"line {n}\n" for n in range(9000)), "".join(f"line {n * 2}\n" for n in range(9000))),
        ("a b " * 200_000, "b a " * 200_000),
    ]
    for before, after in pairs:
        difference = changes(before, after)
        assert "".join(piece.text for piece in difference if piece.kind != "added") == before
        assert "".join(piece.text for piece in difference if piece.kind != "removed") == after
    assert [change.kind for change in changes("The order is ready.", "The order is lost.")] == [
        "same", "removed", "added", "same",
    ]  # fmt: skip
    assert [one.text for one in changes("It has shipped today.", "It was lost again.")] == [
        "It ", "has shipped today", "was lost again", ".",
    ]  # fmt: skip


def test_a_tool_call_is_compared_with_calls_of_the_same_name_only():
    before = ['find_customer(email="a@b.c")\n', 'find_order(number="3")\n']
    after = ['find_order(number="3")\n', 'refund(number="3")\n']
    assert changed_calls(before, after) == [
        Change("removed", before[0]), Change("same", before[1]), Change("added", after[1]),
    ]  # fmt: skip
    other = ['find_order(number="4")\n', 'notify("3")\n']
    calls = changed_calls(before, other)
    assert [call.text for call in calls if call.kind == "removed"] == [before[0], "3"]
    assert [call.text for call in calls if call.kind == "added"] == ["4", other[1]]
    many = [f'find_order(number="{"x " * 500}{n}")\n' for n in range(300)]
    calls = changed_calls(many, many[::-1])
    assert "".join(call.text for call in calls if call.kind != "added") == "".join(many)
    assert "".join(call.text for call in calls if call.kind != "removed") == "".join(many[::-1])


def test_what_lost_the_larger_share_of_its_trials_comes_first(tmp_path):
    """Case 5 loses one of two trials, the attack behind it in the suite both."""
    a, b = (made_run(tmp_path, trials=trials, lost=lost).name for trials, lost in ((1, 2), (2, 6)))
    with site(tmp_path / "runs") as client:
        text = page(client, f"/compare?a={a}&b={b}")
        following = unescape(re.search(r'href="([^"]*)">attack', text)[1])
        after = unescape(re.search(r'href="([^"]*)"[^>]*>Next changed cell', page(client, following))[1])
        assert "<h1>case-5</h1>" in page(client, after)
    assert cases(text)[:2] == [f"attack {ATTACK}", "case-5"]


def test_cases_without_tags_are_decided_without_slices(tmp_path):
    a, b = (made_run(tmp_path, trials=1, lost=lost, tagged=False).name for lost in (2, 1))
    with site(tmp_path / "runs") as client:
        text = page(client, f"/compare?a={a}&b={b}")
    summary = seen(text[text.index('id="summary"') : text.index('id="changed"')])
    assert "slices" not in summary
    assert "Reasons of failures and errors" in summary
    assert "By tag" not in summary
    assert 'class="plot"' in text


def test_each_variant_is_named_with_the_change_of_the_cases_in_both_runs(tmp_path):
    """A passes 4 of 6 cases and B 2 of 3, of which A passes all."""
    names = ("agent", "hasty")
    a, b = (made_run(tmp_path, trials=1, lost=lost, variants=names, count=n).name for lost, n in ((2, 6), (0, 2)))
    with site(tmp_path / "runs") as client:
        text = page(client, f"/compare?a={a}&b={b}")
    change = re.search(r'<nav aria-label="Variants">.*?</nav>', text, re.DOTALL)
    assert seen(change[0]) == "Pass rate, paired agent −33.3 pp hasty −33.3 pp"
    assert "−33.3 pp [" in seen(text[text.index('id="summary"') :])


def test_an_evaluator_that_failed_more_of_the_trials_changed(tmp_path):
    a, b = (made_run(tmp_path, lost=lost).name for lost in (2, 5))
    with site(tmp_path / "runs") as client:
        text = seen(page(client, f"/compare?a={a}&b={b}"))
    assert "worse case-5 1/2 passed 0/2 passed says" in text


def test_a_run_that_has_only_begun_is_compared(tmp_path):
    before, after = made_run(tmp_path, trials=1), made_run(tmp_path, trials=1)
    cut_short(after)
    for name in ("traces", "results", "verdicts"):
        (after / f"{name}.jsonl").write_bytes(b"")
    with site(tmp_path / "runs") as client:
        assert "no case was judged in both runs" in seen(page(client, f"/compare?a={before.name}&b={after.name}"))
