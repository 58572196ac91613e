"""Suites run from Python as letta_evals runs them, and what users' files import."""

import asyncio
import json
import textwrap
import threading

import pytest

from evalwright.errors import InputError
from evalwright.formats.letta.surface.types import Aggregation
from evalwright.letta import ProgressCallback, Runner, SuiteSpec, run_suite
from evalwright.model.result import EvaluationResult
from evalwright.model.trace import Trace
from evalwright.run.start import run_suite as run
from evalwright.run.stored_run import open_run

SUITE = {
    "name": "support",
    "dataset": "data.jsonl",
    "target": {"kind": "letta_agent", "agent_id": "agent-1", "model_handles": ["m"], "backend": "agent.py:answers"},
    "graders": {"right": {"kind": "tool", "function": "contains"}},
    "gate": {"kind": "simple", "metric_key": "right", "op": "gte", "value": 0.5},
}
DATA = (
    '{"id": 7, "input": ["of France?", "of Italy?"], "ground_truth": ["Paris", "Rome"]}\n{"id": "b", "input": "bad"}\n'
)
AGENT = """
def answers(message, ctx):
    return {"of France?": "Paris", "of Italy?": "Milan"}.get(message)
"""


@pytest.fixture
def project(folder):
    (folder / "agent.py").write_text(AGENT)
    (folder / "data.jsonl").write_text(DATA)
    return folder


class Heard(ProgressCallback):
    """Keeps what it is told, with the loop it is told in."""

    def __init__(self):
        self.events, self.loops = [], set()

    def hear(self, *event):
        self.events.append(event)
        self.loops.add(asyncio.get_running_loop())

    async def start(self):
        self.hear("start")

    async def sample_started(self, sample_id, agent_id=None, model_name=None):
        self.hear("started", sample_id, model_name)

    async def message_sending(self, sample_id, message_num, total_messages, agent_id=None, model_handle=None):
        self.hear("sending", sample_id, message_num, total_messages, agent_id, model_handle)

    async def turn_graded(self, sample_id, turn_num, total_turns, turn_score, grader_key=None):
        self.hear("turn", sample_id, turn_num, total_turns, turn_score, grader_key)

    async def sample_completed(self, sample_id, score=None, metric_scores=None, **more):
        self.hear("completed", sample_id, score, metric_scores, more["rationale"])

    async def sample_error(self, sample_id, error):
        self.hear("error", sample_id, error.partition(":")[0])

    async def suite_completed(self, result):
        self.hear("suite", result.gates_passed)

    def stop(self):
        self.hear("stop")


def of(events, sample):
    return [event for event in events if sample in event[1:2]]


def test_a_callback_is_told_what_happens_to_every_sample_in_the_callers_loop(project):
    heard = Heard()

    async def main():
        result = await Runner(SuiteSpec.from_yaml(SUITE, base_dir=project), 2, heard).run()
        return result, asyncio.get_running_loop()

    result, loop = asyncio.run(main())
    assert of(heard.events, 7) == [
        ("started", 7, "m"),
        ("sending", 7, 1, 2, "agent-1", "m"),
        ("sending", 7, 2, 2, "agent-1", "m"),
        ("turn", 7, 0, 2, 1.0, "right"),
        ("turn", 7, 1, 2, 0.0, "right"),
        ("completed", 7, 0.5, {"right": 0.5}, "1/2 passed: ✓ ✗"),
    ]
    assert of(heard.events, "b")[-1] == ("error", "b", "right")
    assert [heard.events[0], *heard.events[-2:]] == [("start",), ("stop",), ("suite", result.gates_passed)]
    assert heard.loops == {loop}


def test_what_a_callback_raises_reaches_whoever_runs_the_suite(project):
    class Broken(Heard):
        async def sample_started(self, sample_id):
            raise RuntimeError("no display")

    with pytest.raises(RuntimeError, match="no display"):
        asyncio.run(Runner(SuiteSpec.from_yaml(SUITE, project), progress_callback=Broken()).run())


@pytest.fixture
def three(project):
    """A suite of three samples. Its agent answers the first and then waits, long after somebody was told of it."""
    (project / "data.jsonl").write_text('{"input": "of France?", "ground_truth": "Paris"}\n' * 3)
    (project / "agent.py").write_text(WAITING_AGENT)
    return SuiteSpec(SUITE, project)


WAITING_AGENT = """
import asyncio, pathlib

async def answers(message, ctx):
    pathlib.Path(f"asked-{ctx.sample.id}").touch()
    if ctx.sample.id:
        while not pathlib.Path("told").exists():
            await asyncio.sleep(0.01)
        await asyncio.sleep(5)
    return "Paris"
"""


def test_cancelling_a_run_stops_its_calls(project, three):
    class First(Heard):
        async def sample_completed(self, sample_id, **about):
            (project / "told").touch()
            self.running.cancel()

    async def main():
        first = First()
        first.running = asyncio.create_task(Runner(three, 1, first).run())
        await asyncio.wait([first.running])
        return first.running.cancelled()

    assert asyncio.run(main())
    assert not (project / "asked-2").exists()


def test_a_callback_that_raises_stops_the_calls_of_its_run(project, three):
    class Broken(Heard):
        async def sample_completed(self, sample_id, **about):
            (project / "told").touch()
            raise RuntimeError("no display")

    with pytest.raises(RuntimeError, match="no display"):
        asyncio.run(Runner(three, 1, Broken()).run())
    assert not (project / "asked-2").exists()


def test_a_suite_made_in_python_is_checked_like_a_file(project):
    wrong = {**SUITE, "gate": {**SUITE["gate"], "metric_key": "rihgt"}}
    with pytest.raises(ValueError, match="no grader 'rihgt'"):
        SuiteSpec.from_yaml(wrong, project)
    with pytest.raises(InputError, match="no grader 'rihgt'"):
        asyncio.run(Runner(SuiteSpec(wrong, project)).run())


def test_the_sections_of_a_suite_are_models(project):
    suite = SuiteSpec.from_yaml(SUITE, project)
    assert (suite.name, suite.num_runs, suite.base_dir) == ("support", 1, project)
    assert (suite.graders["right"].function, suite.graders["right"].extractor) == ("contains", "last_assistant")
    assert suite.gate.aggregation is Aggregation.AVG_SCORE


def test_results_in_memory_cannot_be_replayed(project):
    with pytest.raises(ValueError, match="cached_results_path"):
        Runner(SuiteSpec(SUITE, project), cached_results=object())


def test_a_folder_of_results_is_replayed_from_python(project):
    first = asyncio.run(Runner(SuiteSpec(SUITE, project), output_path=project / "out").run())
    (project / "agent.py").write_text("def answers(message, ctx):\n    raise RuntimeError('asked again')\n")
    (project / "suite.yaml").write_text(json.dumps(SUITE))
    again = asyncio.run(run_suite(project / "suite.yaml", 2, cached_results_path=project / "out"))
    assert [row.grade for row in again.results] == [row.grade for row in first.results]


def test_results_have_the_originals_fields_by_run_and_place_in_the_dataset(project):
    found = asyncio.run(Runner(SuiteSpec({**SUITE, "num_runs": 2}, project)).run())
    rows = [(row.run, row.sample.id, row.model_name, row.grades.right.score) for row in found.results]
    assert rows == [(1, 7, "m", 0.5), (1, "b", "m", 0.0), (2, 7, "m", 0.5), (2, "b", "m", 0.0)]
    assert (found.metrics.avg_score_attempted, found.run_statistics.num_runs) == (0.25, 2)
    assert [run.per_model[0].model_name for run in found.run_statistics.individual_run_metrics] == ["m", "m"]
    assert (found.metrics.cost, found.metrics.per_model[0].cost) == (None, None)


def judged(project, code, function):
    """The result of a suite whose extractor and agent are in the given code."""
    (project / "code.py").write_text(textwrap.dedent(code))
    target = {"kind": "letta_agent", "agent_id": "a", "backend": "code.py:answers"}
    graders = {"right": {"kind": "tool", "function": "exact_match", "extractor": f"code.py:{function}"}}
    suite = SuiteSpec({**SUITE, "target": target, "graders": graders}, project)
    (project / "data.jsonl").write_text('{"input": "?", "ground_truth": "x"}\n')
    loaded = suite.load()
    loaded.out = project / "runs"
    [row] = open_run(run(loaded).run_dir)[0].results(EvaluationResult)
    return row


READS = """
    from letta_client import LettaMessageUnion, MessageCreate
    from letta_client.client import BaseTool
    from letta_evals.decorators import extractor
    from letta_evals.extractors import get_extractor
    from letta_evals.extractors.builtin import last_assistant
    from letta_evals.extractors.utils import flatten_content, get_assistant_messages
    from letta_evals.extractors.utils import get_last_turn_messages, get_tool_calls
    from letta_evals.runner import Runner
    from letta_evals.visualization.base import ProgressCallback

    class Stock(BaseTool):
        name: str = "stock"

    def answers(message, ctx):
        return [
            {"message_type": "tool_call_message", "tool_call": {"name": "f", "arguments": "{}", "tool_call_id": "c"}},
            {"message_type": "tool_return_message", "tool_call_id": "c", "tool_return": "found"},
            {"message_type": "assistant_message", "content": [{"type": "text", "text": "two"}, {"text": "parts"}]},
        ]

    @extractor
    def all_of_it(trajectory, config):
        [said] = get_assistant_messages(trajectory)
        [(call, returned)] = get_tool_calls(trajectory)
        return "; ".join([
            Stock().name,
            said.content[0].text,
            flatten_content(said.content),
            last_assistant(trajectory, config),
            get_extractor("tool_output", {"tool_name": "f"})(trajectory),
            call.tool_call.name + returned.tool_return,
            str(get_last_turn_messages(trajectory) == [said]),
        ])
"""


@pytest.mark.parametrize(
    ("given", "kept"), [("'[1]'", {"_raw": "[1]"}), ("'{'", {"_raw": "{"}), ("None", {}), ("{'q': 1}", {"q": 1})]
)
def test_arguments_of_a_call_are_kept_whatever_they_are(project, given, kept):
    call = f"{{'message_type': 'tool_call_message', 'tool_call': {{'name': 'f', 'arguments': {given}}}}}"
    (project / "agent.py").write_text(f"def answers(message, ctx):\n    return [{call}]\n")
    suite = SuiteSpec(SUITE, project).load()
    suite.out = project / "runs"
    [first, *_] = open_run(run(suite).run_dir)[0].traces(Trace)
    assert first.tool_calls[0].arguments == kept


def test_what_a_factory_makes_for_each_sample_leaves_no_thread(project):
    (project / "agent.py").write_text(
        "from letta_evals.decorators import agent_factory\n\n"
        "@agent_factory\nasync def made(client, sample):\n    return lambda message, ctx: 'Paris'\n"
    )
    target = {"kind": "letta_agent", "agent_script": "agent.py:made"}
    before = set(threading.enumerate())
    asyncio.run(Runner(SuiteSpec({**SUITE, "target": target}, project)).run())
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive(), thread


def test_extractors_use_the_originals_readers_and_extractors(project):
    submission = judged(project, READS, "all_of_it").detail["submission"]
    assert submission == "stock; two; two parts; two parts; found; ffound; True"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("from letta_evals.graders.nowhere import Grader", r"stands in for letta_evals.* has: .*letta_evals\.runner"),
        ("from letta_evals.models import Nothing", r"stands in for letta_evals.* has: .*GradeResult"),
    ],
)
def test_what_is_not_served_is_told_with_what_is(project, line, told):
    with pytest.raises(InputError, match=told):
        judged(project, line, "anything")


def test_a_factory_that_wants_a_server_is_told_that_there_is_none(project):
    (project / "agent.py").write_text(
        "from letta_evals.decorators import agent_factory\n\n"
        "@agent_factory\nasync def made(client, sample):\n    await client.agents.messages.create(agent_id='a')\n"
    )
    target = {"kind": "letta_agent", "agent_script": "agent.py:made", "backend": "agent.py:made"}
    loaded = SuiteSpec({**SUITE, "target": target}, project).load()
    loaded.out = project / "runs"
    [first, _] = open_run(run(loaded).run_dir)[0].traces(dict)
    assert "stands in for the client" in first["error"]["message"]
