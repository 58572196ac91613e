"""`evalwright pixie trace|format|analyze|init`, and what `.env` and the environment say."""

import asyncio
import json
import os
from functools import partial

import pytest

import warm
from llm.models import openai, refused
from targets.loopback import serving

APP = """\
import pixie
import pydantic
from opentelemetry import trace


def app(kwargs):
    rows = pixie.wrap(lambda: [1, 2], purpose="input", name="rows", description="what is stored")()
    with trace.get_tracer("t").start_as_current_span("call") as span:
        span.set_attribute("openinference.span.kind", "LLM")
        span.set_attribute("llm.model_name", "gpt-4o")
    if kwargs["fail"]:
        raise RuntimeError("down")
    return pixie.wrap(f"{len(rows)} rows", purpose="output", name=kwargs.get("name", "answer"))


class Question(pydantic.BaseModel):
    text: str


class Answers(pixie.Runnable):
    @classmethod
    def create(cls):
        return cls()

    async def run(self, args: Question):
        return args.text
"""
RESULT = {
    "datasets": [
        {"dataset": name, "entries": [{"input": 1, "output": name, "evaluations": [{"evaluator": "E", "score": None}]}]}
        for name in ("first", "second")
    ]
}


@pytest.fixture
def called(tmp_path):
    (tmp_path / "app.py").write_text(APP)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PIXIE_", "OPENAI_"))}

    def call(*words, **variables):
        return warm.run(["-m", "evalwright", "pixie", *words], cwd=tmp_path, env={**kept, **variables})

    return call


@pytest.fixture
def traced(called, tmp_path):
    def trace(**arguments):
        (tmp_path / "kwargs.json").write_text(json.dumps({"fail": False, **arguments}))
        return called("trace", "--runnable", "app.py:app", "--input", "kwargs.json", "--output", "t.jsonl")

    return trace


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            {"text": 3},
            "the Runnable's model rejects the arguments: text: expected a string, found 3 (until then: t.jsonl)",
        ),
        ([1], "kwargs.json: expected a JSON object, found a list"),
        (None, "kwargs.json: does not exist"),
    ],
)
def test_arguments_that_do_not_fit_are_told_on_one_line(called, tmp_path, arguments, told):
    if arguments is not None:
        (tmp_path / "kwargs.json").write_text(json.dumps(arguments))
    traced = called("trace", "--runnable", "app.py:Answers", "--input", "kwargs.json", "--output", "t.jsonl")
    assert (traced.returncode, traced.stderr) == (1, f"Error: {told}\n")


def test_a_number_in_place_of_text_is_not_shown_as_text(called, tmp_path):
    entry = {"entry_kwargs": {"text": 3}, "eval_input": [{"name": "x", "value": 1}]}
    dataset = {"runnable": "app.py:Answers", "evaluators": ["Possible"], "entries": [{**entry, "description": "d"}]}
    (tmp_path / "dataset.json").write_text(json.dumps(dataset))
    assert "the Runnable's model expects str, found 3\n" in called("dataset", "validate", "dataset.json").stdout


def test_a_recorded_run_becomes_an_entry(called, traced, tmp_path):
    assert traced().returncode == 0
    records = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert [line["type"] for line in records] == ["kwargs", "wrap", "llm_span", "wrap"]
    assert called("format", "--input", "t.jsonl", "--output", "entry.json").returncode == 0
    entry = json.loads((tmp_path / "entry.json").read_text())
    assert [one["name"] for one in entry["eval_input"]] == ["input_data", "rows"]
    assert [one["name"] for one in entry["expectation"]] == ["llm_span_gpt-4o", "answer"]
    dataset = {"runnable": "app.py:app", "entries": [{**entry, "evaluators": ["ExactMatch"], "expectation": "2 rows"}]}
    (tmp_path / "d.json").write_text(json.dumps(dataset))
    assert called("test", "d.json").returncode == 0


def test_what_was_recorded_before_a_failure_is_kept(traced, tmp_path):
    done = traced(fail=True)
    assert (done.returncode, "RuntimeError: down" in done.stderr) == (1, True)
    assert len((tmp_path / "t.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize(("name", "said"), [("rows", "wrapped 2 times"), ("input_data", "reserved")])
def test_names_that_are_not_unique_are_refused(traced, name, said):
    done = traced(name=name)
    assert (done.returncode, said in done.stderr) == (1, True)


@pytest.mark.parametrize("text", ["{", "[]", '{"type": "wrap"}', '{"type": "wrap", "name": "x"}'])
def test_a_file_that_is_no_trace_is_refused(called, tmp_path, text):
    (tmp_path / "t.jsonl").write_text(text)
    done = called("format", "--input", "t.jsonl", "--output", "entry.json")
    assert (done.returncode, done.stderr.startswith("Error: t.jsonl")) == (1, True)
    assert not (tmp_path / "entry.json").exists()


@pytest.mark.slow("starts several processes")
def test_an_analysis_that_fails_spoils_no_other(called, tmp_path):
    folder = tmp_path / "pixie_qa/results/r1"
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(RESULT))

    async def analyzed():
        async with serving(openai("# Summary"), refused(400)) as server:
            variables = {"OPENAI_BASE_URL": f"http://127.0.0.1:{server.port}/v1", "PIXIE_ANALYZE_MODEL": "m"}
            return await asyncio.to_thread(partial(called, "analyze", "r1", **variables)), server.requests

    done, requests = asyncio.run(analyzed())
    body = json.loads(requests[0]["body"])
    assert (done.returncode, body["model"], body["temperature"]) == (1, "m", 0.3)
    assert [path.read_text() for path in folder.glob("dataset-?.md")] == ["# Summary\n"]


@pytest.mark.parametrize("run_id", ["nope", "../results/r1"])
def test_an_unknown_run_cannot_be_analyzed(called, tmp_path, run_id):
    (tmp_path / "pixie_qa/results/r1").mkdir(parents=True)
    (tmp_path / "pixie_qa/results/r1/result.json").write_text("{}")
    done = called("analyze", run_id)
    assert (done.returncode, "No test result found" in done.stderr) == (1, True)


def test_a_project_is_begun_and_nothing_of_it_overwritten(called, tmp_path):
    (tmp_path / "qa").mkdir()
    (tmp_path / "qa/__init__.py").write_text("mine = 1\n")
    assert [called("init", "qa").returncode for _ in range(2)] == [0, 0]
    assert (tmp_path / "qa/__init__.py").read_text() == "mine = 1\n"
    assert {path.name for path in (tmp_path / "qa").iterdir()} == {"datasets", "tests", "scripts", "__init__.py"}


def test_settings_come_from_the_nearest_env_file_below_the_environment(called, tmp_path):
    (tmp_path / ".env").write_text("PIXIE_ROOT=from_file\nPIXIE_DATASET_DIR='sets'\n")
    called("dataset", "create", "a", PIXIE_DATASET_DIR="mine")
    called("dataset", "create", "b")
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*.json")) == [
        "mine/a.json",
        "sets/b.json",
    ]


def test_a_setting_that_is_no_number_is_named(called):
    done = called("dataset", "list", PIXIE_RATE_LIMIT_RPM="many")
    assert (done.returncode, "PIXIE_RATE_LIMIT_RPM: expected a number above 0, found 'many'" in done.stderr) == (
        2,
        True,
    )
