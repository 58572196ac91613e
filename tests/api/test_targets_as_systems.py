"""Registered targets as systems: their keys are the settings, and no function is written."""

import asyncio
import json
import sys

import pytest

import evalwright as ew
from api import agents
from api.evaluations import evaluate, passes, problems
from targets.loopback import reply, serving

ECHO = [sys.executable, "-c", "print(input().upper())"]


def test_a_service_is_called_with_each_input():
    async def main():
        async with serving(reply({"output": "HI"})) as server:
            system = ew.System("http", settings={"endpoint": f"http://127.0.0.1:{server.port}", "provider": "simple"})
            run = await ew.aevaluate(["hi"], {"service": system}, evaluators=agents.loud, out=None)
            return run, [request["body"] for request in server.requests]

    run, bodies = asyncio.run(main())
    assert [(cell.variant, cell.output, cell.status) for cell in run] == [("service", "HI", "pass")]
    assert bodies == [b'{"input":"hi"}']


def test_a_command_is_named_by_its_target_and_resumed_from_its_folder(tmp_path):
    settings = {"command": ECHO, "stdin_template": "{{ input }}", "parse_stdout_as": "text"}
    run = evaluate(["hi", "ho"], ew.System("cli", settings=settings), evaluators=agents.loud, out=tmp_path)
    again = ew.resume(run.path, retry_errors=True)
    assert [(cell.variant, cell.output) for cell in again] == [("cli", "HI"), ("cli", "HO")]


@pytest.mark.parametrize(("limit", "seconds"), [(None, 45), (7, 7)])
def test_without_a_time_limit_the_targets_own_applies(tmp_path, limit, seconds):
    settings = {"agent": "command", "command": [*ECHO, "{{ input }}"], "timeout": 45}
    run = evaluate(["hi"], ew.System("coding_agent", settings=settings), out=tmp_path, timeout=limit)
    [variant] = json.loads((run.path / "plan.json").read_text())["variants"]
    assert variant["timeout_seconds"] == seconds


def test_settings_that_a_target_cannot_use_are_all_told():
    unknown, missing, mapping = problems(["a"], ew.System("http", settings={"endpint": "x"}), evaluators=passes)
    assert unknown.startswith("system.settings.endpint: unknown key 'endpint'")
    assert missing.startswith("system.settings.endpoint: ")
    assert mapping.startswith("system.settings.response_mapping: ")


def test_a_target_that_is_not_registered_is_refused():
    [listed] = problems(["a"], {"a": ew.System("htp")}, evaluators=passes)
    assert listed.startswith("system['a']: expected a function")
    assert 'did you mean "http"?' in listed
