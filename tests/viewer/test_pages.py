"""The pages of runs without a browser: what they hold, in which order, and at which addresses."""

from __future__ import annotations

import csv
import io
import re
import shlex
import time
from collections.abc import Callable
from datetime import datetime
from html import unescape
from itertools import pairwise
from shutil import copytree
from typing import NamedTuple
from urllib.parse import quote

import pytest

from evalwright.cli.viewed_runs import StoredRun, runs_at
from evalwright.model.cell import cell_key
from evalwright.model.plan import EvaluatorSpec
from evalwright.run.baselines import promote
from evalwright.run.start import run_suite
from evalwright.viewer.trends import VariantRate, trend_of
from run.suites import suite
from viewer.reading import cases, found, page, seen
from viewer.runs import ATTACK, cut_short, made_run, scored_run, site, site_of, with_long_names


def test_runs_are_listed_with_their_numbers_and_damaged_ones_with_their_reason(run, client):
    broken = run.parent / "2020-01-01T00-00-00_broken"
    broken.mkdir()
    for name in ("traces.jsonl", "results.jsonl", "plan.json"):
        (broken / name).write_text("{")
    try:
        text = page(client, "/")
    finally:
        for path in broken.iterdir():
            path.unlink()
        broken.rmdir()
    assert "<h1>Runs</h1>" in text
    assert f'href="/runs/{run.name}">shop</a>' in text
    assert re.search(r'class="error">[^<]*plan.json', text)
    assert "2 of 2 runs" in text
    assert "no run matches" in page(client, "/?q=nothing").lower()


def test_a_run_has_its_summary_reasons_and_cells_in_the_order_of_the_suite(run, client):
    text = page(client, f"/runs/{run.name}")
    assert cases(text) == [name for n in range(6) for name in (f"case-{n}",) * 2] + [f"attack {ATTACK}"] * 2
    assert found(text) == "14 of 14 cells"
    counts = [int(n) for n in re.findall(r"<b>(\d+) ×</b>", text)]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) >= 7
    link = unescape(re.search(r'href="([^"]*)"><b>', text)[1])
    assert found(page(client, link)) == f"{counts[0]} of 14 cells"


def test_a_suite_that_has_only_scores_has_no_failures_and_its_runs_are_trials(tmp_path):
    run = scored_run(tmp_path, runs=2)
    with site(run.parent) as client:
        text = page(client, f"/runs/{run.name}")
    assert "Scores below 1 by reason" in seen(text)
    assert re.findall(r'<td data-label="Trial"[^>]*>(\d)', text) == ["1", "2", "1", "2"]


def test_nothing_passes_or_fails_in_a_suite_that_has_only_scores(tmp_path):
    run = scored_run(tmp_path)
    with site(run.parent) as client:
        pages = [client.get("/").text, page(client, f"/runs/{run.name}")]
        cell = client.get(f"/runs/{run.name}/cells?case=1").headers["location"]
        pages += [client.get(cell).text, page(client, f"/runs/{run.name}?group=status&evaluator=same")]
    texts = [seen(text) for text in pages]
    assert [re.findall(r"\b[Pp]ass\b(?! rate)|\b[Ff]ail(?:ed)?\b|✓|✗", text) for text in texts] == [[]] * 4
    assert "only scores" in texts[0]
    assert "· Score 1 0" in texts[1]
    assert "· Below 1 1" in texts[1]
    assert "· Below 1 same" in texts[2]


def test_a_reason_that_is_the_same_in_all_cells_keeps_its_numbers(client, run):
    shown = re.findall(r"<b>2 ×</b> ([^<]*)</a>", page(client, f"/runs/{run.name}"))
    assert [text for text in shown if "no order 4" in text]


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("?statos=fail", 400, "unknown key 'statos'; did you mean"),
        ("?status=purple", 400, "'purple', expected one of: pass"),
        ("?latency_min=fast", 400, "expected a number"),
        ("?evaluator=nobody", 400, "expected one of: says, polite"),
        ("?tag=t7", 400, "'tag' is 't7', expected one of"),
        ("?after=-1", 400, "whole number"),
        ("?column=colour", 400, "expected one of: input, variant, trial"),
        ("/cells/0000000000000000", 404, "14 cells"),
        ("?error=timeout", 400, "'error' is 'timeout', expected adapter_error"),
        ("?reason=0123", 400, "'reason' is '0123', which no cell has"),
        ("?case=case-9", 400, "'case' is 'case-9', which no cell has"),
        ("?meta.=x", 400, "'meta.': no case has metadata of this name (there are: "),
        ("?column=meta.town", 400, "'meta.town': no case has metadata of this name"),
        ("?verdict=pass", 400, "'verdict' is given without 'evaluator'"),
        ("?latency_min=1&latency_min=2", 400, "'latency_min' is given twice, as '1' and as '2'"),
        ("?after=14", 400, "'after' is 14, but there are only 14 rows"),
        ("?after=5&group=tag", 400, "'after' is given with 'group'"),
        ("/cells.csv?tag=t7", 400, "'tag' is 't7', expected one of"),
        ("?trial=2", 400, "'trial' is '2', expected one of: 0, 1"),
        ("/cells/KEY?tag=t7", 400, "'tag' is 't7', expected one of"),
        ("/cells/KEY.json?part=trace", 400, "unknown key 'part' (there are none)"),
        ("/cells/KEY/whole?part=trace&x=1", 400, "unknown key 'x' (there are: part)"),
        ("/trials?case=case-1&case=case-2", 400, "'case' is given twice"),
        ("/label?show=2", 400, "'show' is '2', expected 1"),
        ("/label?sample=0", 400, "expected a whole number from 1 to 10,000"),
        ("/label?key=0123", 404, "not among those that are labelled"),
        ("/cells?case=nope", 404, "no case 'nope'"),
        (
            "/cells?case=case-1&trial=7",
            404,
            "no such cell of the case 'case-1' (there are: agent trial 0, agent trial 1)",
        ),
        ("/cells?variant=agent", 400, "expected the id of a case"),
        ("/plan.json", 404, "no such page"),
    ],
)
def test_bad_addresses_say_what_is_there(run, client, path, status, said):
    path = path.replace("KEY", cell_key("case-1", "agent", 0))
    assert said in seen(page(client, f"/runs/{run.name}{path}", status)).replace("’", "'")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("eval=nobody", "'eval' is 'nobody', expected shop"),
        ("after=100", "'after' is 100, but there"),
        ("q=a&q=b", "'q' is given twice"),
    ],
)
def test_a_filter_of_the_runs_that_leaves_none_by_mistake_is_named(client, query, said):
    assert said in seen(page(client, f"/?{query}", 400))


def test_an_unknown_run_is_a_page_that_lists_the_others(run, client):
    assert run.name in page(client, "/runs/nope", 404)


def test_a_run_without_results_offers_no_labelling(tmp_path):
    run = run_suite(suite(tmp_path, ["word"], target="agents:broken")).run_dir
    with site(run.parent) as client:
        assert "Label answers" not in page(client, f"/runs/{run.name}")


def test_cells_as_csv_hold_no_formula(run, client):
    lines = client.get(f"/runs/{run.name}/cells.csv?status=fail").text.splitlines()
    assert len(lines) == 6
    assert lines[0].startswith("case,variant,trial,status")
    assert client.get(f"/runs/{run.name}/cells.csv").headers["content-disposition"].startswith("attachment")


def test_texts_that_a_spreadsheet_would_compute_are_inert_in_csv(tmp_path):
    texts = ["=1+1", "+1", "-1", "@SUM(1)", "\uff1d1+1", "\uff0b1", "\uff0d1", "\uff201", "1=1"]
    made = run_suite(suite(tmp_path, texts))
    with site(tmp_path / "runs") as client:
        rows = [*csv.DictReader(io.StringIO(client.get(f"/runs/{made.run_dir.name}/cells.csv").text))]
    assert [row["answer"] for row in rows] == [*(f"'{text}" for text in texts[:-1]), "1=1"]


def test_csv_has_no_character_at_which_readers_end_and_names_of_several_words_stay_apart(tmp_path):
    checks = [EvaluatorSpec(name, "contains_text", {"all_of": ["never"]}) for name in ("is polite", "is short")]
    made = run_suite(suite(tmp_path, ["a\0b"], evaluators=checks))
    with site(tmp_path / "runs") as client:
        text = client.get(f"/runs/{made.run_dir.name}/cells.csv").text
    [row] = csv.DictReader(io.StringIO(text))
    assert (row["answer"], row["failed"]) == ("a\N{REPLACEMENT CHARACTER}b", "is polite, is short")


def test_a_row_stays_short_whatever_names_are_in_it_and_ties_are_in_the_order_of_the_suite(tmp_path):
    made, long_id, names = with_long_names(tmp_path)
    with site(tmp_path / "runs") as client:
        text = page(client, f"/runs/{made.name}")
        assert re.findall(r"<b>1 ×</b> (check \d of seven)", text) == names
        row = seen(text[text.index('<th scope="row"><a') :])
        assert f"{'a' * 59}…{'z' * 60} {', '.join(names[:5])} and 2 more word word" in row
        assert f"{' word' * 16}…" in row
        whole = page(client, f"/runs/{made.name}/cells/{cell_key(long_id, 'main', 0)}")
    heading = re.search(r"<h1([^>]*)>(.*)</h1>", whole)
    assert heading[2] == long_id.replace("\u202e", "⟦U+202E⟧")
    assert 'tabindex="0"' in heading[1], "a long heading is a box that the keyboard scrolls"


def test_a_run_is_compared_with_the_one_of_its_eval_before_and_a_baseline_is_marked(tmp_path):
    runs = [made_run(tmp_path, "shop", 1, 2), made_run(tmp_path, "other", 1, 2), made_run(tmp_path, "shop", 1, 9)]
    promote(runs[0], "shop")
    with site(tmp_path / "runs") as client:
        text = until(lambda: page(client, "/"), "0 worse, 1 better")
        rows = re.findall(r"<tr>.*?</tr>", text, re.DOTALL)
        shown = {run.name: next(seen(row) for row in rows if f'value="{run.name}"' in row) for run in runs}
        assert "baseline" in seen(page(client, f"/runs/{runs[0].name}"))
        assert "baseline" not in seen(page(client, f"/runs/{runs[2].name}"))
    assert re.search(r"\+\d+\.\d pp", shown[runs[2].name])
    assert [" pp" in shown[run.name] for run in runs] == [False, False, True]
    assert ["baseline" in shown[run.name] for run in runs] == [True, False, False]
    assert f'href="/compare?a={runs[0].name}&amp;b={runs[2].name}"' in text
    assert "Pass rate over time: shop" in text


class _Rated(NamedTuple):
    id: str
    rates: list[VariantRate]
    started: datetime | None = None


def test_a_trend_has_a_line_for_each_variant_and_room_for_their_names():
    runs = [_Rated(str(n), [VariantRate(name, 0.99 - n / 99, None) for name in "abcdefgh"]) for n in range(3)]
    newest = _Rated("new", [VariantRate("a", 0.9, (0.8, 1.0)), VariantRate("z", 0.1, None)])
    trend = trend_of([newest, *runs])
    assert [line.name for line in trend.lines] == [*"azbcdefg"]
    assert [len(line.points) for line in trend.lines] == [4, 1, *[3] * 6]
    labels = sorted(line.label_y for line in trend.lines)
    assert min(y - x for x, y in pairwise(labels)) >= 12.9
    assert 0 < labels[0] < labels[-1] < trend.height
    assert [rate and rate.rate for rate in trend.runs[-1][1]] == [0.9, 0.1, *[None] * 6]
    assert trend_of([newest]) is None


def until(look: Callable[[], str], wanted: str) -> str:
    """What is seen once it holds a text; fails after a minute."""
    last = time.monotonic() + 60
    while wanted not in (text := look()):
        assert time.monotonic() < last, text
        time.sleep(0.01)
    return text


def test_a_run_is_found_as_soon_as_it_is_there(tmp_path, run):
    later = copytree(run, tmp_path / "elsewhere" / f"{run.name}-later")
    folder = copytree(run, tmp_path / "runs" / run.name).parent
    with site(folder) as client:
        page(client, "/")  # keeps what a request needs for the first time
        page(client, f"/runs/{later.name}", 404)
        later.rename(folder / later.name)
        page(client, f"/runs/{later.name}")


def test_runs_of_one_id_are_all_there_and_compared_with_each_other(tmp_path):
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
    run = made_run(tmp_path / "before", trials=1, lost=2)
    other = made_run(tmp_path / "after", trials=1, lost=1).rename(tmp_path / "after" / run.name)
    with site_of(lambda: runs_at([run, other, run.parent])) as client:
        text = page(client, "/")
        assert "2 of 2 runs" in seen(text)
        assert f'href="/runs/{run.name}~2"' in text
        compared = page(client, f"/compare?a={run.name}&b={run.name}~2")
    assert cases(compared)[:2] == ["case-1", "case-2"]


def test_commands_are_safe_to_paste_whatever_a_folder_is_called(tmp_path):
    run = made_run(tmp_path, trials=1)
    odd = run.rename(run.with_name("2026_x; touch $(y) 'z'"))
    cut_short(odd)
    (odd / ".lock").unlink()
    with site(odd.parent) as client:
        text = unescape(page(client, f"/runs/{quote(odd.name)}"))
    command = re.findall(r"<code>(evalwright resume [^<]*)</code>", text)[0]
    assert shlex.split(command) == ["evalwright", "resume", str(odd)]


class _Removed(StoredRun):
    """A run whose folder is removed between two steps of a page."""

    def open(self):
        raise FileNotFoundError(2, "No such file or directory", str(self.path))


def test_a_run_that_is_removed_meanwhile_cannot_be_read(run):
    with site_of(lambda: [_Removed(run)]) as client:
        assert "No such file" in page(client, "/")
        assert "No such file" in page(client, f"/runs/{run.name}", 404)


def test_a_run_says_that_its_results_are_missing_unless_it_is_being_written(tmp_path):
    run = run_suite(suite(tmp_path, ["a", "b"])).run_dir
    (run / "results.jsonl").write_text("")
    note = "results: those of 2 finished cells are missing; re-evaluate restores them"
    with site(run.parent) as client:
        assert note in page(client, f"/runs/{run.name}")
        (run / "results.jsonl").unlink()
        assert "it has no results.jsonl" in seen(page(client, "/"))
        (run / "results.jsonl").write_text("")
        cut_short(run)
        assert note not in page(client, f"/runs/{run.name}")
