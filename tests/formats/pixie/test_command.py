"""`evalwright pixie` as a user calls it."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import warm


@pytest.fixture
def called(tmp_path):
    (tmp_path / "app.py").write_text("def double(kwargs):\n    return kwargs['x'] * 2\n")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PIXIE_")}

    def call(*words, stdin="", without=(), **variables):
        settings = {key: value for key, value in (environment | variables).items() if key not in without}
        return warm.run(["-m", *words], cwd=tmp_path, env=settings, input=stdin)

    return call


def entry(x, expected):
    return {
        "description": f"double {x}",
        "entry_kwargs": {"x": x},
        "eval_input": [{"name": "x", "value": x}],
        "expectation": expected,
    }


def dataset(*entries):
    return json.dumps(
        {"name": "doubles", "runnable": "app.py:double", "evaluators": ["ExactMatch"], "entries": entries}
    )


def test_a_broken_dataset_does_not_stop_the_others(called, tmp_path):
    (tmp_path / "a.json").write_text("{broken")
    (tmp_path / "b.json").write_text(dataset(entry(1, 2), entry(2, 5)))
    (tmp_path / "other.json").write_text("{}")
    done = called("evalwright", "pixie", "test", ".")
    (path,) = (tmp_path / "pixie_qa/results").glob("*/result.json")
    (stored,) = json.loads(path.read_text())["datasets"]
    assert (done.returncode, "a.json" in done.stdout, "1/2 passed" in done.stdout) == (1, True, True)
    assert [one["evaluations"][0]["score"] for one in stored["entries"]] == [1.0, 0.0]


def test_an_entry_that_lacks_an_input_has_one_result_and_a_dataset_without_entries_is_run(called, tmp_path):
    (tmp_path / "app.py").write_text(
        "import pixie\ndef double(kwargs):\n    return pixie.wrap(1, purpose='input', name='gone')\n"
    )
    empty = dataset().replace('"doubles"', '"doubles", "name": "none"')
    for name, text in (("a.json", dataset(entry(1, 2))), ("b.json", empty)):
        (tmp_path / name).write_text(text)
    done = called("evalwright", "pixie", "test", ".")
    assert "(WrapError) [0.00]" in done.stdout
    done = called("evalwright", "pixie", "test", "b.json")
    assert (done.returncode, "0/0 passed" in done.stdout, done.stderr.splitlines()) == (0, True, [
        "warning: b.json:1  name  the key 'name' occurs more than once: the last one counts",
        "warning: b.json  has no cases",
    ])  # fmt: skip


def test_recorded_steps_become_items_of_a_dataset(called, tmp_path):
    (tmp_path / "record.py").write_text(
        "import pixie\npixie.enable_storage()\n"
        "with pixie.start_observation(input='q', name='agent') as step:\n    step.set_output('a')\n"
    )
    codes = [
        called("evalwright.pixie", "record.py").returncode,
        called("evalwright", "pixie", "dataset", "create", "My Set").returncode,
        called("evalwright", "pixie", "dataset", "save", "my set", "--expected-output", stdin='"a"').returncode,
        called("evalwright", "pixie", "dataset", "save", "my set", "--select", "last_llm_call").returncode,
    ]
    broken = called("evalwright", "pixie", "dataset", "save", "my set", "--expected-output", stdin="{")
    (item,) = json.loads((tmp_path / "pixie_qa/datasets/my-set.json").read_text())["items"]
    assert broken.stderr.startswith("Error: standard input contains broken JSON: ")
    assert codes == [0, 0, 0, 1]
    assert (item["eval_output"], item["expectation"]) == ([{"name": "output", "value": "a"}], "a")


def test_validate_names_what_is_wrong(called, tmp_path):
    (tmp_path / "good.json").write_text(dataset(entry(1, 2)))
    (tmp_path / "bad.json").write_text(dataset({**entry(1, 2), "description": ""}))
    done = called("evalwright", "pixie", "dataset", "validate", ".")
    assert done.returncode == 1
    assert "good.json: OK" in done.stdout
    assert "description must be a non-empty string" in done.stdout


def test_validate_says_only_that_items_of_a_store_have_no_application(called, tmp_path):
    (tmp_path / "kept.json").write_text(json.dumps({"name": "kept", "items": [{"eval_input": "q"}, {"eval_input": 2}]}))
    done = called("evalwright", "pixie", "dataset", "validate", "kept.json")
    problems = [line for line in done.stdout.splitlines() if line.startswith("  - ")]
    assert (done.returncode, len(problems), "assert_dataset_pass takes them as they are" in problems[0]) == (1, 1, True)


def test_secrets_of_the_environment_are_masked_in_recorded_steps(called, tmp_path):
    (tmp_path / "record.py").write_text(
        "import os, pixie\nos.environ['SERVICE_TOKEN'] = 'swordfish'\npixie.enable_storage()\n"
        "with pixie.start_observation(input='the token is swordfish', name='agent') as step:\n"
        "    step.set_output({'token': 'swordfish'})\n"
    )
    called("evalwright.pixie", "record.py")
    stored = (tmp_path / "pixie_qa/traces.jsonl").read_text()
    assert ("swordfish" in stored, "the token is" in stored) == (False, True)


def test_an_interrupted_test_keeps_what_is_finished_and_goes_on_with_nothing(tmp_path):
    (tmp_path / "app.py").write_text(
        "import pathlib, time\ndef double(kwargs):\n    pathlib.Path('begun').touch()\n"
        "    while not pathlib.Path('go').exists():\n        time.sleep(0.05)\n    return kwargs['x'] * 2\n"
    )
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(dataset(entry(1, 2)))
    words = [sys.executable, "-m", "evalwright", "pixie", "test", "."]
    running = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        while running.poll() is None and not (tmp_path / "begun").exists():
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        time.sleep(0.5)
        (tmp_path / "go").touch()
        running.communicate(timeout=60)
    finally:
        running.kill()
    (path,) = (tmp_path / "pixie_qa/results").glob("*/result.json")
    stored = json.loads(path.read_text())["datasets"]
    assert (running.returncode, len(stored)) == (130, 1)


NO_NETWORK = """\
import pathlib, socket, sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.bind"):
        pathlib.Path("network").write_text(f"{event} {arguments}")

sys.addaudithook(refuse)
"""


@pytest.mark.cold
def test_nothing_is_sent_anywhere_that_is_not_configured(called, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(NO_NETWORK)
    item = {**entry(1, 2), "evaluators": ["ExactMatch", "Factuality", "EmbeddingSimilarity", "Moderation"]}
    (tmp_path / "d.json").write_text(dataset(item))
    names = [name for name in os.environ if name.startswith(("OPENAI_", "ANTHROPIC_"))]
    done = called("evalwright", "pixie", "test", "d.json", without=names, PYTHONPATH=str(tmp_path))
    assert "[1.00, error, error, error]" in done.stdout
    assert not (tmp_path / "network").exists()


@pytest.mark.parametrize(("expected", "code", "counted"), [(2, 0, "0/1 passed, 1 pending"), (3, 1, "0/1 passed")])
def test_what_somebody_has_yet_to_judge_is_pending_unless_it_failed(called, tmp_path, expected, code, counted):
    (tmp_path / "later.py").write_text("import pixie\ntone = pixie.create_agent_evaluator('tone', 'Is it kind?')\n")
    (tmp_path / "d.json").write_text(dataset({**entry(1, expected), "evaluators": ["...", "later.py:tone"]}))
    done = called("evalwright", "pixie", "test", "d.json")
    (path,) = (tmp_path / "pixie_qa/results").glob("*/result.json")
    evaluation = json.loads(path.read_text())["datasets"][0]["entries"][0]["evaluations"][1]
    assert (done.returncode, counted in done.stdout) == (code, True)
    assert evaluation == {"evaluator": "tone", "score": None, "reasoning": "pending: Is it kind?", "status": "pending"}


APP = """
import pathlib

from pydantic import BaseModel, Field

pathlib.Path(__file__).with_name("EXECUTED").touch()


class Base(BaseModel):
    text: str


class Args(Base):
    times: int = Field(..., gt=0)
    tone: str = "calm"


class App:
    @classmethod
    def create(cls):
        return cls()

    async def run(self, args: Args):
        return args.text * args.times
"""


def driven(**arguments):
    return {**entry(1, "x"), "entry_kwargs": arguments}


def test_arguments_are_held_against_the_model_of_the_runnable_without_importing_it(called, tmp_path):
    (tmp_path / "app.py").write_text(APP)
    entries = [driven(text="a", times="2"), driven(text=3), driven(text="a", times="two", tone=["x"])]
    (tmp_path / "d.json").write_text(dataset(*entries).replace("app.py:double", "app.py:App"))
    done = called("evalwright", "pixie", "dataset", "validate", "d.json")
    told = [line.split(": ")[1] for line in done.stdout.splitlines() if line.startswith("  - ")]
    assert told == [
        "entries.1.entry_kwargs.text", "entries.1.entry_kwargs.times", "entries.2.entry_kwargs.times",
        "entries.2.entry_kwargs.tone",
    ]  # fmt: skip
    assert (done.returncode, (tmp_path / "EXECUTED").exists()) == (1, False)


def test_every_error_has_its_reason_and_each_cause_is_told_once(called, tmp_path):
    (tmp_path / "app.py").write_text("def double(kwargs):\n    return kwargs['x'] * 2\n")
    (tmp_path / "checks.py").write_text("def check(evaluable):\n    raise LookupError('no such key')\n")
    named = '"evaluators": ["ExactMatch"]'
    text = dataset(entry(1, 2), entry(2, 4)).replace(named, '"evaluators": ["checks.py:check"]')
    (tmp_path / "d.json").write_text(text)
    done = called("evalwright", "pixie", "test", "d.json")
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip().startswith("check: ")]
    assert ["no such key" in line for line in lines] == [True, False]
    assert lines[1] == "check: as [1]"


STRICT = """
from typing import Literal

import pixie
from pydantic import BaseModel, ConfigDict, Field

from elsewhere import Shape


class Inner(BaseModel):
    k: int


class Args(BaseModel):
    model_config = ConfigDict(extra="forbid")
    mode: Literal["a", "b"] = "a"
    inner: Inner = Field(default_factory=lambda: Inner(k=1))
    tags: list[str] = Field(default_factory=list, max_length=1)
    limit: int | None = Field(ge=0, default=1)
    flag: bool = False
    shape: Shape | None = None


class App(pixie.Runnable[Args]):
    async def run(self, args: Args):
        return args.mode


class Same(App):
    pass
"""


@pytest.mark.parametrize("wrong", [
    {"mode": "c"}, {"inner": {"k": "z"}}, {"more": 1}, {"limit": -1}, {"tags": "x"}, {"tags": [1]},
    {"tags": ["x", "y"]}, {"flag": "maybe"},
])  # fmt: skip
def test_what_the_text_of_a_model_says_is_checked_also_through_a_subclass(called, tmp_path, wrong):
    (tmp_path / "app.py").write_text(STRICT)
    (tmp_path / "elsewhere.py").write_text("class Shape: pass\n")
    sound = driven(mode="b", inner={"k": 1}, tags=["x"], limit=None, flag="yes")
    (tmp_path / "d.json").write_text(dataset(sound, driven(**wrong)).replace("app.py:double", "app.py:Same"))
    done = called("evalwright", "pixie", "dataset", "validate", "d.json")
    told = [line.split(": ")[1] for line in done.stdout.splitlines() if line.startswith("  - ")]
    assert (done.returncode, told) == (1, [f"entries.1.entry_kwargs.{next(iter(wrong))}"])


def test_entries_that_the_text_of_a_model_does_not_decide_are_counted_and_not_called_valid(called, tmp_path):
    (tmp_path / "app.py").write_text(STRICT)
    (tmp_path / "elsewhere.py").write_text("from pydantic import BaseModel\nclass Shape(BaseModel):\n    sides: int\n")
    entries = [driven(shape={"sides": "x"}), driven(shape={"sides": 3}), driven(mode="a")]
    (tmp_path / "d.json").write_text(dataset(*entries).replace("app.py:double", "app.py:App"))
    done = called("evalwright", "pixie", "dataset", "validate", "d.json")
    assert (done.returncode, "d.json: OK" in done.stdout, "are valid" in done.stdout) == (0, False, False)
    assert "2 entries not checked against all of the Runnable's model" in done.stderr
    imported = called("evalwright", "validate", "--import", "d.json").stderr
    assert ("entries.0.entry_kwargs.shape.sides" in imported, "entries.1" in imported) == (True, False)
    assert "not checked" not in imported
