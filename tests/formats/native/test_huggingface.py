"""Datasets as Hugging Face keeps them on disk: saved ones, repositories, and the cache, none of them downloaded."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright.errors import Problem
from evalwright.formats.loading import load_suite
from formats.suites import refusal

pyarrow = pytest.importorskip("pyarrow")

LABEL = {"_type": "ClassLabel", "names": ["neg", "pos"]}
ROWS = {"q": ["x", "y"], "label": [1, 0]}
FEATURES = {"q": {"dtype": "string", "_type": "Value"}, "label": LABEL}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_CACHE", "HF_DATASETS_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))


def arrow(file: Path, rows: dict[str, list[Any]], features: dict[str, Any] | None = None) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    table = pyarrow.table(rows)
    if features is not None:
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    with pyarrow.OSFile(str(file), "wb") as sink, pyarrow.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)


def saved(folder: Path, rows: dict[str, list[Any]] = ROWS, features: dict[str, Any] = FEATURES) -> None:
    arrow(folder / "data-00000-of-00001.arrow", rows)
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}))


def cases(folder: Path, **dataset: Any) -> Iterator[Any]:
    suite = {
        "eval": {"name": "data"},
        "systems": [{"name": "s", "adapter": "replay"}],
        "evaluators": [{"name": "e", "type": "answered"}],
        "output": {"type": "local_files", "path": "runs"},
        "dataset": {"type": "huggingface", **dataset},
    }
    (folder / "eval.yaml").write_text(json.dumps(suite))
    return iter(load_suite(folder / "eval.yaml").cases)


def inputs(folder: Path, **dataset: Any) -> list[Any]:
    return [case.input for case in cases(folder, **dataset)]


def wrong(folder: Path, **dataset: Any) -> Problem:
    (problem,) = refusal(lambda: list(cases(folder, **dataset))).problems
    return problem


def test_labels_have_their_names_however_deep_they_are(tmp_path):
    rows = {"label": [1], "none": [-1], "l": [[0, 1]], "s": [{"k": 1}], "old": [{"k": [1, 0]}], "new": [[{"k": 0}]]}
    features = {
        "label": LABEL, "none": LABEL, "l": {"_type": "List", "feature": LABEL}, "s": {"k": LABEL},
        "old": {"_type": "Sequence", "feature": {"k": LABEL}}, "new": [{"k": LABEL}],
    }  # fmt: skip
    saved(tmp_path / "d", rows, features)
    assert inputs(tmp_path, path="d") == [
        {
            "label": "pos", "none": None, "l": ["neg", "pos"], "s": {"k": "pos"},
            "old": {"k": ["pos", "neg"]}, "new": [{"k": "neg"}],
        }
    ]  # fmt: skip


def test_of_images_there_is_a_reference(tmp_path):
    rows = {"i": [{"bytes": b"12345", "path": "a.png"}], "b": [b"raw"]}
    saved(tmp_path / "d", rows, {"i": {"_type": "Image"}, "b": {"dtype": "binary", "_type": "Value"}})
    reference = {"type": "image", "path": "a.png", "size": 5}
    assert inputs(tmp_path, path="d", map={"input.i": "i"}) == [{"i": reference}]
    assert "'b' contains bytes" in wrong(tmp_path, path="d").message


def test_a_split_is_named_where_there_are_several(tmp_path):
    for split in ("train", "test"):
        saved(tmp_path / "d" / split, {"q": [split]})
    (tmp_path / "d" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert inputs(tmp_path, path="d", split="test") == [{"q": "test"}]
    assert (wrong(tmp_path, path="d").key, "train, test" in wrong(tmp_path, path="d").message) == (
        "dataset.split",
        True,
    )
    assert 'did you mean "test"' in wrong(tmp_path, path="d", split="tets").message


def test_a_repositorys_files_are_split_by_their_names(tmp_path):
    repository = tmp_path / "d"
    (repository / "dev").mkdir(parents=True)
    (repository / "train.csv").write_text("q\n007\n")
    (repository / "my-test_set.json").write_text('{"q": 1}\n{"q": 2}\n')
    (repository / "dev" / "0.json").write_text('[{"q": 3}]')
    arrow(repository / ".hidden.arrow", {"q": ["hidden"]})
    by_name = {split: inputs(tmp_path, path="d", split=split) for split in ("train", "test", "validation")}
    assert by_name == {"train": [{"q": "007"}], "test": [{"q": 1}, {"q": 2}], "validation": [{"q": 3}]}


def test_a_readme_says_what_the_subsets_of_a_repository_are(tmp_path):
    repository = tmp_path / "d"
    arrow(repository / "x" / "1.arrow", ROWS, FEATURES)
    arrow(repository / "y" / "1.arrow", {"q": ["other"]})
    arrow(tmp_path / "out.arrow", ROWS)
    configs = [
        {"config_name": "one", "data_files": [{"split": "test", "path": "x/*.arrow"}]},
        {"config_name": "two", "data_dir": "y", "data_files": "*.arrow"},
        {"config_name": "out", "data_dir": "/", "data_files": ["../*.arrow", "/etc/*"]},
    ]
    (repository / "README.md").write_text(f"---\n{json.dumps({'configs': configs})}\n---\n# A dataset\n")
    assert inputs(tmp_path, path="d", subset="one")[0] == {"q": "x", "label": "pos"}
    assert inputs(tmp_path, path="d", subset="two", split="train") == [{"q": "other"}]
    assert "say which of one, two" in wrong(tmp_path, path="d").message
    assert "no subset 'out'" in wrong(tmp_path, path="d", subset="out").message


def test_a_name_is_looked_up_in_the_cache_only(tmp_path):
    message = wrong(tmp_path, name="org/data").message
    assert "hf download org/data --repo-type dataset" in message
    snapshot = tmp_path / "hf" / "hub" / "datasets--org--data" / "snapshots" / "abc"
    arrow(snapshot / "test.arrow", {"q": ["fetched"]})
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("abc")
    assert inputs(tmp_path, name="org/data") == [{"q": "fetched"}]
    prepared = tmp_path / "hf" / "datasets" / "org___data" / "default" / "0.0.0" / "123"
    for shard in ("0", "1"):
        arrow(prepared / f"data-test-0000{shard}-of-00002.arrow", {"q": [shard]})
    (prepared / "dataset_info.json").write_text("{}")
    assert inputs(tmp_path, name="org/data", split="test") == [{"q": "0"}, {"q": "1"}]
    (prepared / "data-test-00001-of-00002.arrow").unlink()
    assert "1 of the 2 files" in wrong(tmp_path, name="org/data").message
    shutil.rmtree(prepared)
    assert inputs(tmp_path, name="org/data") == [{"q": "fetched"}]


@pytest.mark.parametrize(
    ("dataset", "key", "fact"),
    [
        ({}, "path", "expected either"),
        ({"path": "d", "name": "a/b"}, "path", "expected either"),
        ({"path": "nowhere"}, "path", "'nowhere'"),
        ({"path": "d", "split": "test"}, "split", "without splits"),
        ({"path": "d", "split": 3}, "split", "expected text"),
        ({"name": "../../etc"}, "name", "'org/name'"),
        ({"name": "a/.."}, "name", "'org/name'"),
        ({"path": "/"}, "path", "lies outside"),
    ],
)
def test_what_names_no_dataset_is_refused(tmp_path, dataset, key, fact):
    saved(tmp_path / "d")
    problem = wrong(tmp_path, **dataset)
    assert (problem.key, fact in problem.message) == (f"dataset.{key}", True), str(problem)


@pytest.mark.parametrize("name", ["../secret.arrow", "absent.arrow"])
def test_a_saved_dataset_names_only_files_beside_its_state(tmp_path, name):
    saved(tmp_path / "d")
    arrow(tmp_path / "secret.arrow", ROWS)
    (tmp_path / "d" / "state.json").write_text(json.dumps({"_data_files": [{"filename": name}]}))
    assert wrong(tmp_path, path="d").file.endswith("state.json")


def test_a_split_of_which_files_are_missing_is_refused(tmp_path):
    for number in (0, 2):
        arrow(tmp_path / f"repo/data/train-0000{number}-of-00003.arrow", ROWS)
    (problem,) = refused(tmp_path, path="repo")
    assert problem.message == "has 2 of the 3 files of train"


def test_files_of_a_split_with_other_columns_are_refused(tmp_path):
    arrow(tmp_path / "repo/train-00000-of-00002.arrow", {"q": ["x"]})
    arrow(tmp_path / "repo/train-00001-of-00002.arrow", {"question": ["x"]})
    (problem,) = refused(tmp_path, path="repo")
    assert problem.message == "expected the columns of the first file (q), found question"


def test_a_saved_dataset_whose_rows_are_chosen_by_indices_is_refused(tmp_path):
    saved(tmp_path / "old")
    state = json.loads((tmp_path / "old/state.json").read_text())
    (tmp_path / "old/state.json").write_text(json.dumps({**state, "_indices_data_files": [{"filename": "i.arrow"}]}))
    (problem,) = refused(tmp_path, path="old")
    assert "flatten_indices()" in problem.message


def refused(folder: Path, **dataset: Any) -> tuple[Problem, ...]:
    return refusal(lambda: list(cases(folder, **dataset))).problems
