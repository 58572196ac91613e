"""pixie's result file, made from a stored run."""

import json

import pytest

import warm

ENTRIES = [
    {
        "description": f"double {x}",
        "entry_kwargs": {"x": x},
        "eval_input": [{"name": "x", "value": x}],
        "expectation": expected,
    }
    for x, expected in ((1, 2), (2, 5))
]


@pytest.fixture
def called(tmp_path):
    (tmp_path / "app.py").write_text("def double(kwargs):\n    return kwargs['x'] * 2\n")
    for name in ("doubles", "others"):
        stored = {"name": name, "runnable": "app.py:double", "evaluators": ["ExactMatch"], "entries": ENTRIES}
        (tmp_path / f"{name}.json").write_text(json.dumps(stored))
    return lambda *words: warm.run(["-m", "evalwright", *words], cwd=tmp_path)


def test_an_export_has_the_entries_that_the_originals_command_writes(called, tmp_path):
    assert called("pixie", "test", "doubles.json").returncode == 1
    (run,) = (tmp_path / "pixie_qa" / "runs").glob("*_doubles")
    assert called("export", str(run), "--out", "out").returncode == 0
    (live,) = (tmp_path / "pixie_qa" / "results").glob("*/result.json")
    later = json.loads((tmp_path / "out" / "result.json").read_text())
    assert later["datasets"] == json.loads(live.read_text())["datasets"]
    assert later["meta"].keys() == {"testId", "command", "startedAt", "endedAt"}


def test_datasets_that_ran_together_are_kept_apart(called, tmp_path):
    run = called("run", ".", "--format", "pixie", "--quiet", "--trials", "2").stdout.splitlines()[-1]
    done = called("export", run, "--out", "out")
    datasets = json.loads((tmp_path / "out" / "result.json").read_text())["datasets"]
    assert [(dataset["dataset"], len(dataset["entries"])) for dataset in datasets] == [("doubles", 4), ("others", 4)]
    assert "warning: 2 trials" in done.stderr
