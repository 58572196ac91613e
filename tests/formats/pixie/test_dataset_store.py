"""Datasets in a folder: nothing of them gets lost."""

import json
import subprocess
import sys

import pytest

from evalwright.pixie import DatasetStore, Evaluable

APPEND = """\
import sys
from evalwright.pixie import DatasetStore, Evaluable
for number in range(10):
    DatasetStore(sys.argv[1]).append("many", Evaluable(eval_input=f"{sys.argv[2]}-{number}"))
"""


@pytest.mark.slow("starts several interpreters")
def test_processes_that_save_at_the_same_time_lose_nothing(tmp_path):
    store = DatasetStore(tmp_path)
    store.create("many")
    savers = [subprocess.Popen([sys.executable, "-c", APPEND, str(tmp_path), str(who)]) for who in range(4)]
    assert [saver.wait(60) for saver in savers] == [0] * 4
    saved = [item.eval_input[0].value for item in store.get("many").items]
    assert sorted(saved) == sorted(f"{who}-{number}" for who in range(4) for number in range(10))
    assert [path.name for path in tmp_path.iterdir()] == ["many.json"]


def test_what_others_wrote_beside_the_items_is_kept(tmp_path):
    item = {"eval_input": "q", "eval_output": "a", "reviewed_by": "me"}
    (tmp_path / "d.json").write_text(json.dumps({"name": "d", "runnable": "app.py:run", "items": [item]}))
    DatasetStore(tmp_path).append("d", Evaluable(eval_input="r"))
    written = json.loads((tmp_path / "d.json").read_text())
    assert (written["runnable"], written["items"][0], len(written["items"])) == ("app.py:run", item, 2)


def test_a_file_of_entries_is_not_turned_into_one_of_items(tmp_path):
    text = json.dumps({"runnable": "app.py:run", "entries": []})
    (tmp_path / "d.json").write_text(text)
    with pytest.raises(ValueError, match="list of items"):
        DatasetStore(tmp_path).append("d", Evaluable(eval_input="q"))
    assert (tmp_path / "d.json").read_text() == text


def test_datasets_of_every_spelling_are_listed_and_broken_ones_left_out(tmp_path):
    entries = [{"input_data": {"x": 1}, "description": "d"}]
    files = {"a": {"entries": entries}, "b": {"name": "B", "items": []}, "c": {"items": {}}, "d": [], "e": {}}
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    assert [(row["name"], row["row_count"]) for row in DatasetStore(tmp_path).list_details()] == [("a", 1), ("B", 0)]
