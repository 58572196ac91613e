"""The examples for schedulers: each is run as its scheduler would run it, with three tasks."""

import json
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from string import Template
from types import SimpleNamespace

import pytest
import yaml

import warm
from acceptance.projects import project

PAGE = (Path(__file__).parents[2] / "docs" / "many-machines.md").read_text()
TASKS = 3


@pytest.fixture
def suite(tmp_path):
    """A suite of which one case fails; what is below / in the examples is below the folder here."""
    return project(tmp_path, {"a": "thanks", "b": "thanks", "c": "thanks", "d": "no", "e": "thanks"})


def example(title: str, suite) -> str:
    text = re.search(rf"^## {title}\n.*?^```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1]
    text = text.replace("/runs/", f"{suite.folder}/runs/").replace("/suite/", f"{suite.folder}/")
    return re.sub(r"\b(16|32)\b", str(TASKS), text)


def run(suite, command: list[str], **environment: str):
    assert command[0] == "evalwright"
    return suite.evalwright(*command[1:], **environment)


def must_be_the_whole_run(suite, command: str, **environment: str) -> None:
    """The merge ends as the run on one machine would, and the shards have nothing left to do."""
    ended = run(suite, shlex.split(command), **environment)
    assert ended.code == 1, ended.err
    summary = yaml.safe_load((suite.folder / ended.last_line / "summary.yaml").read_text())
    assert (summary["cells_total"], summary["variants"][0]["cells"]["fail"]) == (5, 1)


def merging(text: str) -> str:
    return re.search(r"evalwright merge .*?(?=\"?$)", text, re.MULTILINE)[0].partition("   ")[0]


@pytest.mark.slow("three runs and a merge")
def test_kubernetes(suite):
    text = example("Kubernetes", suite)
    spec = yaml.safe_load(text)["spec"]
    [container] = spec["template"]["spec"]["containers"]
    for index in [0, 1, 2, 2]:  # the last pod is started again, as after an eviction
        command = [word.replace("$(JOB_COMPLETION_INDEX)", str(index)) for word in container["command"]]
        assert run(suite, command, JOB_COMPLETION_INDEX=str(index)).code == 0
    assert spec["completions"] == TASKS
    must_be_the_whole_run(suite, merging(text))


@pytest.mark.slow("three runs and a merge")
def test_slurm(suite):
    text = example("Slurm", suite)
    first, last = map(int, re.search(r"--array=(\d+)-(\d+)", text).groups())
    task = re.search(r"^srun (.*)$", text, re.MULTILINE)[1]
    array = {"SLURM_ARRAY_TASK_MIN": str(first), "SLURM_ARRAY_TASK_COUNT": str(last - first + 1)}
    for number in range(first, last + 1):
        known = {**array, "SCRATCH": str(suite.folder), "SLURM_ARRAY_TASK_ID": str(number)}
        assert run(suite, shlex.split(Template(task).substitute(known)), **known).code == 0
    must_be_the_whole_run(suite, Template(merging(text)).substitute(SCRATCH=suite.folder))


@pytest.mark.slow("runs the shards of a workflow")
def test_github(suite):
    text = example("GitHub Actions", suite)
    jobs = yaml.safe_load(text)["jobs"]
    [shard] = [step["run"] for step in jobs["shard"]["steps"] if "evalwright run" in step.get("run", "")]
    for k in jobs["shard"]["strategy"]["matrix"]["k"]:
        assert run(suite, shlex.split(shard.replace("${{ matrix.k }}", str(k)))).code == 0
        (suite.folder / "out").rename(suite.folder / f"artifact-{k}")  # uploaded, and nothing is left here
    for k in jobs["shard"]["strategy"]["matrix"]["k"]:
        (suite.folder / "out").mkdir(exist_ok=True)
        (suite.folder / f"artifact-{k}").rename(suite.folder / "out" / f"shard-{k}")
    must_be_the_whole_run(suite, jobs["gate"]["steps"][-1]["run"])


@pytest.mark.slow("three runs and a merge")
def test_modal(suite, monkeypatch):
    text = example("Modal", suite)
    committed = []
    kept = SimpleNamespace(commit=lambda: committed.append(True))
    image = SimpleNamespace()
    image.pip_install = image.add_local_dir = lambda *_: image
    started = []

    def function(**_):
        return lambda f: SimpleNamespace(starmap=lambda rows: [f(*row) for row in rows])

    app = SimpleNamespace(function=function, local_entrypoint=lambda: started.append)
    modal = SimpleNamespace(
        App=lambda _: app,
        Volume=SimpleNamespace(from_name=lambda *_, **__: kept),
        Image=SimpleNamespace(debian_slim=lambda: image),
        Secret=SimpleNamespace(from_name=str),
    )
    monkeypatch.setitem(sys.modules, "modal", modal)
    warm.parent()  # started before `subprocess.run` is another function
    monkeypatch.setattr(subprocess, "run", lambda command: SimpleNamespace(returncode=run(suite, command).code))
    (suite.folder / "modal_example.py").write_text(text)
    runpy.run_path(str(suite.folder / "modal_example.py"))
    started[0](TASKS)
    assert len(committed) == TASKS
    must_be_the_whole_run(suite, merging(text))


def test_each_shard_says_what_the_page_lists(suite):
    assert run(suite, ["evalwright", "run", "eval.yaml", "--shard", "2/3", "--out", "out", "-q"]).code == 0
    [file] = (suite.folder / "out").glob("*/shard.json")
    listed = re.search(r"^\| `shard.json` \|(.*)\|$", PAGE, re.MULTILINE)[1]
    assert {*json.loads(file.read_text())} - {"schema_version"} == {*re.findall(r"`(\w+)`", listed)} - {"case"}
