"""The order in which runs are listed."""

from __future__ import annotations

import json
import re
from html import unescape
from shutil import copytree

from evalwright.model.cell import cell_key
from viewer.reading import page
from viewer.runs import made_run, site


def _renamed_runs(folder, starts):
    """A run under each of these names, started on that day of November."""
    (folder / "first").mkdir()
    run = made_run(folder / "first", trials=1, tagged=False, count=1)
    runs = folder / "runs"
    for name, day in starts.items():
        plan = json.loads((copytree(run, runs / name) / "plan.json").read_text())
        (runs / name / "plan.json").write_text(json.dumps(plan | {"started_at": f"2026-11-{day:02}T10:00:00Z"}))
    return runs


def _listed(text):
    return re.findall(r'aria-label="Select ([^"]*)"', text)


def test_runs_are_listed_by_their_start_also_renamed_ones(tmp_path):
    starts = {"a": 3, "z": 1, "2026-11-02T10-00-00_shop": 2, "2026-11-04T10-00-00_shop": 4}
    with site(_renamed_runs(tmp_path, starts)) as client:
        newest_first = ["2026-11-04T10-00-00_shop", "a", "2026-11-02T10-00-00_shop", "z"]
        assert _listed(client.get("/").text) == newest_first
        assert _listed(client.get("/?sort=started").text) == newest_first[::-1]
        older_first = client.get("/compare?run=a&run=z").headers["location"]
    assert older_first == "/compare?a=z&b=a"


def test_runs_are_sorted_by_a_number_and_those_without_it_are_the_last(tmp_path):
    runs = _renamed_runs(tmp_path, {"a": 1, "b": 2, "c": 3})
    for name, more in (("a", 2), ("b", 3), ("c", 1)):
        text = (runs / name / "summary.yaml").read_text()
        (runs / name / "summary.yaml").write_text(re.sub(r"(?m)^(cells_total): \d+", rf"\1: {more}", text))
    (runs / "b" / "plan.json").write_text("{")
    with site(runs) as client:
        assert _listed(client.get("/?sort=-cells").text) == ["a", "c", "b"]
        assert "'sort' is 'size', expected one of" in unescape(client.get("/?sort=size").text)


def test_a_run_of_an_impossible_time_hides_no_other(tmp_path):
    runs = _renamed_runs(tmp_path, {"a": 1, "b": 2, "c": 3, "d": 4})
    for file in ("b/plan.json", "c/summary.yaml"):
        text = (runs / file).read_text()
        (runs / file).write_text(re.sub(r"""(started_at\W+)\d[^"']*""", r"\g<1>0001-01-01T00:00:00+14:00", text))
    text = (runs / "d" / "summary.yaml").read_text()
    (runs / "d" / "summary.yaml").write_text(re.sub(r"(finished_at: '[^Z']*)Z", r"\1", text))
    with site(runs) as client:
        text = client.get("/").text
    assert _listed(text) == ["d", "c", "a", "b"]
    assert "is out of range in UTC" in unescape(text)


def test_a_case_is_followed_from_run_to_run(tmp_path):
    """The first question about a failure: was it there before?"""
    (tmp_path / "first").mkdir()
    run = made_run(tmp_path / "first", tagged=False, count=3)
    runs = tmp_path / "runs"
    for day in (1, 2, 3):
        name = f"2026-11-0{day}T10-00-00_shop"
        plan = json.loads((copytree(run, runs / name) / "plan.json").read_text())
        (runs / name / "plan.json").write_text(json.dumps(plan | {"started_at": f"2026-11-0{day}T10:00:00Z"}))
    with site(runs) as client:
        path, seen_runs = f"/runs/{name}/cells/{cell_key('case-2', 'agent', 1)}", []
        while link := re.search(r'href="([^"]*)">Compare with the run before', page(client, path)):
            compared = page(client, unescape(link[1]))
            assert "case-2" in compared
            path = re.search(r'href="(/runs/[^"]*/cells/[^"?]*)', compared)[1]
            seen_runs.append(path.split("/")[2])
    assert seen_runs == ["2026-11-02T10-00-00_shop", "2026-11-01T10-00-00_shop"]
