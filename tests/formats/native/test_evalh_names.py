"""Programs and plug-ins that were written for evalh import its package and find ours."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

import warm
from evalwright.errors import EvaluatorError, InputError
from evalwright.formats.loading import load_suite
from evalwright.formats.native.surface import plugins
from evalwright.model.plan import Variant
from evalwright.model.trace import Output
from evalwright.registry import format_of, resolve
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from evalwright.session import import_from
from evalwright.testing import a_case, a_trace

PLUGIN = Path(__file__).parent / "evalh_plugin"
CODE = PLUGIN / "code"  # apart from its entry points, which other tests of this process need not see
SUITE = """\
eval: {name: plug}
dataset: {type: yaml, path: cases.yaml}
systems:
- {name: program, adapter: python_function, target: "agent:run", enrich_trace_from: [{type: added, value: 3}]}
- {name: echo, adapter: echo, prefix: "you said", metadata: {mood: happy}}
evaluators: [{name: brief, type: most_words, config: {most: 2}}]
output: [{type: local_files, path: runs}]
"""
CASES = "cases:\n- {id: a, input: {user_message: hi}}\n- {id: b, input: {user_message: ho}}\n"
SAID = """\
eval: {name: said}
dataset: {type: yaml, path: cases.yaml}
systems: [{name: program, adapter: python_function, target: "greeter:run"}]
evaluators: [{name: greets, type: contains_text, config: {any_of: [hello]}}]
output: [{type: local_files, path: runs}]
"""
GREETER = """\
def run(case, variant):
    return "hello " + case["input"]["user_message"]
"""
AGENT = """\
from eval_harness.core import EvalCase
from eval_harness.core.errors import AdapterError


def run(case, variant):
    if EvalCase.model_validate(case).id == "b":
        raise AdapterError("no service")
    return "hello you"
"""


@pytest.fixture
def evalh() -> Any:
    """The module of the plug-in; what it imports stands in for a package that is not installed."""
    import_from([str(CODE)])
    return importlib.import_module("evalh_plugin")


@pytest.mark.cold  # which packages there are is asked when a process starts
def test_a_suite_with_plug_ins_of_evalh_runs_without_it(tmp_path: Path) -> None:
    for name, text in {"eval.yaml": SUITE, "cases.yaml": CASES, "agent.py": AGENT}.items():
        (tmp_path / name).write_text(text)
    path = os.pathsep.join([str(PLUGIN), str(CODE), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path}
    done = warm.run(["-m", "evalwright", "run", "eval.yaml", "--json"], cwd=tmp_path, env=env)
    [folder] = (tmp_path / "runs").glob("*_plug")
    traces = [json.loads(line) for line in (folder / "traces.jsonl").read_text().splitlines()]
    results = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    said = {(trace["case_id"], trace["variant_name"]): trace for trace in traces}
    assert done.returncode == 3
    assert said["a", "program"]["extra"]["added"] == 3
    assert said["a", "program"]["metrics"]["token_input"] == 7
    assert "AdapterError: no service" in said["b", "program"]["error"]["message"]
    assert said["b", "echo"]["output"]["final_answer"] == "you said ho happy None"
    judged = {(result["case_id"], result["variant_name"]): result for result in results}
    assert (judged["a", "program"]["passed"], judged["a", "program"]["reason"]) == (True, "2 words")
    assert judged["a", "echo"]["detail"] == {"rows": [[1, "a"]], "removed": None}
    assert not judged["a", "echo"]["passed"]
    listed = warm.run(["-m", "evalwright", "list", "evaluators", "most_words", "--json"], cwd=tmp_path, env=env)
    assert json.loads(listed.stdout)["keys"] == [], "what it takes by `**config` has no name of its own"


def test_every_name_that_is_served_is_there(evalh: Any) -> None:
    for module, names in format_of("native").shims.items():
        found = importlib.import_module(module)
        assert not isinstance(names, str)
        for name, ref in names.items():
            assert getattr(found, name) is resolve(ref), (module, name)


@pytest.mark.parametrize(
    ("module", "name"),
    [("system", "SystemAdapter"), ("dataset", "DatasetAdapter"), ("workspace", "WorkspaceAdapter"),
     ("enricher", "TraceEnricher"), ("trace", "TraceStore")],
)  # fmt: skip
def test_base_classes_of_adapters_are_in_their_packages(evalh: Any, module: str, name: str) -> None:
    package = importlib.import_module(f"eval_harness.adapters.{module}")
    base = importlib.import_module(f"eval_harness.adapters.{module}.base")
    assert (package.__all__.count(name), getattr(package, name)) == (1, getattr(base, name))


def test_old_names_of_judges_are_the_newer_errors(evalh: Any) -> None:
    backends = importlib.import_module("eval_harness.core.llm_backends")
    assert backends.JudgeError is backends.LlmBackendError
    assert backends.JudgeParseError is backends.LlmBackendParseError

    class Old:
        async def judge(self, prompt: str, schema: dict[str, Any], max_tokens: int) -> dict[str, Any]:
            return {}

    assert isinstance(Old(), backends.JudgeBackend)


def test_a_run_folder_is_read_as_records_of_evalh(evalh: Any, tmp_path: Path) -> None:
    core = importlib.import_module("eval_harness.core")
    reader_of = importlib.import_module("eval_harness.core.run_reader").RunReader
    folder = a_run_in(tmp_path)

    async def read() -> None:
        reader = reader_of(folder)
        assert (await reader.load_config())["eval"]["name"] == "said"
        assert isinstance(await reader.load_summary(), core.RunSummary)
        assert sorted(await reader.list_case_ids()) == ["a", "b"]
        assert await reader.list_variant_names() == ["program"]
        trace = await reader.get_trace("b", "program")
        assert isinstance(trace, core.Trace)
        assert trace.output.final_answer == "hello ho"
        (result,) = await reader.get_results("a", "program")
        assert (result.evaluator, result.passed) == ("greets", True)
        assert await reader.get_trace("c", "program") is None

    asyncio.run(read())
    for name, change in (("traces", {"latency_ms": None}), ("results", {"passed": False})):
        again = json.loads((folder / f"{name}.jsonl").read_text().splitlines()[0]) | {"attempt": 2} | change
        with (folder / f"{name}.jsonl").open("a") as file:
            print(json.dumps(again), file=file)
    summary = yaml.safe_load((folder / "summary.yaml").read_text())
    summary["variants"][0] |= {"pass_rate": None, "avg_latency_ms": None}
    (folder / "summary.yaml").write_text(yaml.safe_dump(summary))

    async def read_again() -> None:
        reader = reader_of(folder)
        variant = (await reader.load_summary()).variants[0]
        assert (variant.pass_rate, variant.avg_latency_ms, variant.avg_cost_usd) == (0, 0, None)
        trace = await reader.get_trace(again["case_id"], "program")
        assert trace.latency_ms == 0
        assert [result.passed for result in await reader.get_results(again["case_id"], "program")] == [False]

    asyncio.run(read_again())
    (folder / "results.jsonl").write_text("{}\n")
    with pytest.raises(core.ConfigError, match=r"results\.jsonl:1: "):
        asyncio.run(reader_of(folder).get_results("a", "program"))
    (folder / "summary.yaml").unlink()
    with pytest.raises(core.ConfigError, match=r"no summary\.yaml"):
        reader_of(folder)


def a_run_in(folder: Path) -> Path:
    for name, text in {"eval.yaml": SAID, "cases.yaml": CASES, "greeter.py": GREETER}.items():
        (folder / name).write_text(text)
    return run_suite(load_suite(folder / "eval.yaml"), RunOptions(out=folder / "runs")).run_dir


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("import eval_harness.runner", r"stands in for eval_harness.* has: .*eval_harness\.core"),
        ("from eval_harness.core.executors import Executor", r"stands in for eval_harness.* has: .*core\.run_reader"),
        ("from eval_harness.core.llm_backends import llm_backend_registry", r"stands in for .* has: .*LlmBackend"),
    ],
)
def test_an_import_of_what_is_not_served_names_what_is(tmp_path: Path, line: str, said: str) -> None:
    for name, text in {"eval.yaml": SAID, "cases.yaml": CASES, "greeter.py": f"{line}\n{GREETER}"}.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=said):
        load_suite(tmp_path / "eval.yaml")


def test_what_a_plug_in_says_of_its_configuration_is_told(evalh: Any) -> None:
    with pytest.raises(InputError, match="is required"):
        plugins.evaluator(lambda: evalh.MostWords)(most="two")
    with pytest.raises(InputError, match="prefix"):
        plugins.system_adapter(lambda: evalh.Echo)(Variant(name="echo", adapter="echo"))


def test_an_error_of_a_plug_in_is_one_of_the_evaluator(evalh: Any) -> None:
    judge = plugins.evaluator(lambda: evalh.MostWords)(most=2)
    with pytest.raises(EvaluatorError, match="nothing was said") as raised:
        asyncio.run(judge.evaluate(a_case(input={}), a_trace(input={}, output=Output())))
    assert raised.value.type == "no_words"


def test_a_case_that_evalh_has_not_is_said(evalh: Any) -> None:
    judge = plugins.evaluator(lambda: evalh.MostWords)(most=2)
    with pytest.raises(ValueError, match="no such case: input"):
        asyncio.run(judge.evaluate(a_case(input="text"), a_trace(input={})))


def test_evaluators_are_those_of_ours_under_evalh_s_names(evalh: Any) -> None:
    models = importlib.import_module("eval_harness.core.models")
    config = importlib.import_module("eval_harness.core.config")
    errors = importlib.import_module("eval_harness.core.errors")
    factory = importlib.import_module("eval_harness.factories").evaluator_factory
    text = importlib.import_module("eval_harness.evaluators.contains_text")
    trace = models.Trace.model_validate({**msgspec.to_builtins(a_trace(input={})), "latency_ms": 5})
    trace.output.final_answer = "Paris and Rome"
    case = models.EvalCase(id="c", input={}, expected={"answer_should_include": ["Oslo"]})
    found = asyncio.run(text.ContainsTextEvaluator("says").evaluate(case, trace, None))
    assert (found.passed, found.evaluator, found.evaluator_type) == (False, "says", "contains_text")
    assert "Oslo" in found.reason
    quick = factory.build(config.EvaluatorConfig(name="quick", type="latency_under", config={"max_ms": 10}))
    assert asyncio.run(quick.evaluate(case, trace, None)).passed
    with pytest.raises(errors.ConfigError, match="max_ms"):
        factory.build(config.EvaluatorConfig(name="quick", type="latency_under", config={"max_ms": -1}))
    with pytest.raises(errors.ConfigError, match="Unknown evaluator 'nope'"):
        factory.build(config.EvaluatorConfig(name="nope", type="nope"))


def test_a_suite_is_read_with_all_its_mistakes(evalh: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    core = importlib.import_module("eval_harness.core")
    monkeypatch.setenv("PLACE", "runs")
    (tmp_path / "eval.yaml").write_text(SUITE.replace("path: runs", "path: '${PLACE}'"))
    assert core.load_config(tmp_path / "eval.yaml").output[0].path == "runs"
    (tmp_path / "bad.yaml").write_text(SUITE.replace("systems:", "sistems:").replace("path: runs", "path: '${NO}'"))
    with pytest.raises(core.ConfigError) as raised:
        core.load_config(tmp_path / "bad.yaml")
    assert [place in str(raised.value) for place in ("systems: ", "sistems: ", "output.0.path: ")] == [True] * 3
