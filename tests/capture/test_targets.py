"""What an application shows of itself is in its traces, whichever format its suite has: real clients, a real server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import warm
from capture.model_server import serving

pytest.importorskip("openinference.instrumentation.openai", reason="needs the extra openinference")
pytest.importorskip("openinference.instrumentation.anthropic", reason="needs the extra openinference")

NUMBERS = range(10, 18)
AGENT = """
import asyncio, os
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from pydantic import BaseModel
from evalwright.pixie import Runnable, observe, start_observation

@observe()
def retrieve(question):
    return [question]

def ask(question):
    import openai
    with start_observation(input=question, name="agent"):
        retrieve(question)
        client = openai.OpenAI(base_url=os.environ["MODEL_SERVER"] + "/v1", api_key="none")
        said = client.chat.completions.create(model="gpt-test", messages=[{"role": "user", "content": question}])
        return said.choices[0].message.content

async def ask_anthropic(question):
    import anthropic
    client = anthropic.AsyncAnthropic(base_url=os.environ["MODEL_SERVER"], api_key="none")
    said = await client.messages.create(
        model="claude-test", max_tokens=9, messages=[{"role": "user", "content": question}])
    return said.content[0].text

def evalh(case, variant):
    return {"final_answer": ask(case["input"]["user_message"])}

async def evalh_asynchronous(case, variant):
    return {"final_answer": await ask_anthropic(case["input"]["user_message"])}

def failing(case, variant):
    with start_observation(input=1, name="agent"):
        retrieve(1)
    raise ValueError("after the step")

def letta(message, context):
    return ask(message)

def agentv(given):
    return ask(given["prompt"])

def pixie(given):
    return ask(given["question"])

class Question(BaseModel):
    question: str

class WithTracing(Runnable[Question]):
    @classmethod
    def create(cls):
        return cls()

    async def setup(self):
        trace.set_tracer_provider(TracerProvider())
        self.provider = trace.get_tracer_provider()

    async def run(self, args: Question):
        with trace.get_tracer("app").start_as_current_span("mine"):
            said = await asyncio.to_thread(ask, args.question)
        return said if trace.get_tracer_provider() is self.provider else "another provider"
"""
EVALH = """
schema_version: "1.0"
eval: {name: captured}
dataset: {type: jsonl, path: cases.jsonl}
systems: [{name: main, adapter: python_function, target: "FUNCTION", isolation: ISOLATION}]
evaluators: [{name: answered, type: contains_text, config: {all_of: [answer]}}]
metrics: {price_table_path: prices.yaml}
run: {max_concurrency: 8}
output: [{type: local_files, path: runs}]
"""
PRICES = """
table_version: "1"
freshness_date: 2026-01-01
models: {gpt-test: {input_per_million_tokens: 1000000, output_per_million_tokens: 0}}
"""


def files(folder: Path, **texts: str) -> None:
    for name, text in {"agent_py": AGENT, **texts}.items():
        (folder / name.replace("_", ".")).write_text(text)


def traces(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """The traces of a run of the command line in a folder."""
    with serving() as address:
        environment = {**os.environ, "MODEL_SERVER": address, "PYTHONPATH": str(folder)}
        done = warm.run(["-m", "evalwright", "run", *arguments], cwd=folder, env=environment)
    written = list(folder.glob("**/traces.jsonl"))
    assert len(written) == 1, done.stdout + done.stderr
    return [json.loads(line) for line in written[0].read_text().splitlines()]


def evalh(folder: Path, function: str, isolation: str = "none") -> list[dict[str, Any]]:
    cases = [{"schema_version": "1.0", "id": str(n), "input": {"user_message": f"number {n}"}} for n in NUMBERS]
    lines = "\n".join(json.dumps({**case, "expected": {"facts": {}}}) for case in cases)
    suite = EVALH.replace("FUNCTION", function).replace("ISOLATION", isolation)
    if isolation == "process":  # each process imports the clients
        suite = suite.replace("max_concurrency: 8", "max_concurrency: 2")
    files(folder, eval_yaml=suite, prices_yaml=PRICES, cases_jsonl=lines)
    return traces(folder, "eval.yaml")


def letta(folder: Path) -> list[dict[str, Any]]:
    lines = "\n".join(json.dumps({"input": f"number {n}", "ground_truth": f"answer {n}"}) for n in NUMBERS)
    files(folder, samples_jsonl=lines, suite_yaml="""
name: captured
dataset: samples.jsonl
target: {kind: letta_agent, agent_id: a}
graders: {found: {kind: tool, function: contains, extractor: last_assistant}}
gate: {metric_key: found, op: gte, value: 0.5}
""")  # fmt: skip
    return traces(folder, "suite.yaml", "--target", "agent.py:letta")


def agentv(folder: Path) -> list[dict[str, Any]]:
    asserts = [{"type": "contains", "value": "answer"}]
    cases = [{"id": str(n), "criteria": "x", "input": f"number {n}", "assertions": asserts} for n in NUMBERS]
    target = {"name": "default", "provider": "python", "callable": "agent:agentv", "workers": 8}
    files(
        folder,
        eval_yaml=json.dumps({"name": "captured", "tests": cases}),
        targets_yaml=json.dumps({"targets": [target]}),
    )
    return traces(folder, "eval.yaml")


def pixie(folder: Path, runnable: str = "pixie") -> list[dict[str, Any]]:
    entries = [
        {"input_data": {"question": f"number {n}"}, "description": str(n), "expectation": "x", "eval_input": []}
        for n in NUMBERS
    ]
    dataset = {"name": "captured", "runnable": f"agent.py:{runnable}", "evaluators": ["ExactMatch"], "entries": entries}
    files(folder, set_json=json.dumps(dataset))
    return traces(folder, "set.json")


def used(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Of each trace its answer, its tool calls' arguments and its tokens, by number."""
    rows = [
        (
            trace["output"]["final_answer"],
            [call["arguments"] for call in trace["tool_calls"]],
            trace["metrics"]["token_input"],
            trace["metrics"]["token_output"],
        )
        for trace in found
    ]
    return sorted(rows, key=lambda row: row[2] or 0)


OWN = [(f"answer {n}", [{"n": n}], n, 2) for n in NUMBERS]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return evalh(tmp_path_factory.mktemp("evalh"), "agent:evalh")


@pytest.mark.slow("a run in an interpreter of its own, with an instrumented library")
def test_synchronous_functions_at_the_same_moment_keep_their_own_calls(found):
    assert used(found) == OWN


@pytest.mark.slow("imports another client of models")
def test_asynchronous_functions_at_the_same_moment_keep_their_own_calls(tmp_path):
    assert used(evalh(tmp_path, "agent:evalh_asynchronous")) == OWN


@pytest.mark.slow("a run in every format")
@pytest.mark.parametrize("run", [letta, agentv, pixie])
def test_every_format_sees_calls_of_python_targets(run, tmp_path):
    assert used(run(tmp_path)) == OWN


def test_steps_and_model_calls_are_a_tree(found):
    one = found[0]
    names = {span["id"]: span["name"] for span in one["spans"]}
    assert [(span["name"], span["kind"], names.get(span["parent_id"])) for span in one["spans"]] == [
        ("agent", "span", None),
        ("retrieve", "span", "agent"),
        ("gpt-test", "llm", "agent"),
    ]


def test_calls_are_priced_by_their_models(found):
    assert [one["metrics"]["cost_usd"] for one in found] == [one["metrics"]["token_input"] for one in found]


def test_what_was_seen_before_an_error_is_kept_beside_it(tmp_path):
    found = evalh(tmp_path, "agent:failing")[0]
    assert (found["error"]["message"], len(found["spans"])) == ("ValueError: after the step in agent.py:36", 2)


@pytest.mark.slow("imports the clients of models in a process of its own")
def test_a_process_of_its_own_is_listened_to(tmp_path):
    assert used(evalh(tmp_path, "agent:evalh", isolation="process")) == OWN


@pytest.mark.slow("imports OpenTelemetry in a process of its own")
def test_an_application_keeps_the_provider_that_it_sets_when_it_is_set_up(tmp_path):
    found = pixie(tmp_path, "WithTracing")
    assert used(found) == OWN
    assert [[span["name"] for span in one["spans"]] for one in found] == [["mine", "agent", "retrieve", "gpt-test"]] * 8


def test_a_library_that_its_instrumentor_refuses_to_trace_is_a_warning_of_the_run(tmp_path):
    claim = tmp_path / "openai-0.1.dist-info"  # the first of this name on the path is the installed version
    claim.mkdir()
    (claim / "METADATA").write_text("Metadata-Version: 2.1\nName: openai\nVersion: 0.1\n")
    assert [one["metrics"].get("token_input") for one in evalh(tmp_path, "agent:evalh")] == [None] * 8
    [summary] = tmp_path.glob("runs/*/summary.yaml")
    [warning] = yaml.safe_load(summary.read_text())["warnings"]
    assert warning.startswith("main: model calls of openai may be missing in 8 of 8 replies: ")
    assert "openai 0.1" in warning


OWN_PROVIDER = """
import json, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from evalwright.capture.listeners import listening

if sys.argv[1] == "late":
    with listening():
        pass
kept = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(kept))
trace.set_tracer_provider(provider)
with listening() as heard, trace.get_tracer("app").start_as_current_span("mine"):
    trace.get_tracer("app").start_span("in the year 10^13", start_time=10**30).end()
same = trace.get_tracer_provider() is provider
print(json.dumps([same, [one.name for one in kept.get_finished_spans()], [one.name for one in heard.steps]]))
"""


@pytest.mark.parametrize("when", ["early", "late"])
def test_the_applications_own_provider_stays_and_is_heard(when):
    done = subprocess.run([sys.executable, "-c", OWN_PROVIDER, when], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [True, ["in the year 10^13", "mine"], ["mine"]]
    assert "the span 'in the year 10^13' cannot be read" in done.stderr
