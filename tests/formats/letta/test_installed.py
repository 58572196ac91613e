"""Suites of users who have letta-evals and letta_client themselves: their code gets those packages, not our own."""

from __future__ import annotations

import os
from pathlib import Path

import warm

PACKAGES = {
    "letta_evals/__init__.py": "",
    "letta_evals/decorators.py": """\
from functools import wraps


def _marking(role):
    def mark(function):
        @wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)

        setattr(wrapper, f"_is_{role}", True)
        return wrapper

    return mark


agent_factory, extractor, grader, suite_setup = map(_marking, ("agent_factory", "extractor", "grader", "suite_setup"))
""",
    "letta_evals/models.py": """\
class GradeResult:
    def __init__(self, score):
        self.score, self.rationale, self.metadata, self.per_turn_grades = score, None, {}, None
""",
    "letta_client/__init__.py": "",
    "letta_client/types/__init__.py": "",
    "letta_client/types/agents.py": """\
class AssistantMessage:
    def __init__(self, *, id, date, content, message_type):
        self.content = content

    @classmethod
    def construct(cls, **fields):
        message = cls.__new__(cls)
        message.__dict__.update(fields)
        return message
""",
}
CODE = """\
from letta_client.types.agents import AssistantMessage
from letta_evals.decorators import agent_factory, extractor, grader, suite_setup
from letta_evals.models import GradeResult


@suite_setup
def prepare():
    ...


@agent_factory
async def made(client, sample):
    return (await client.agents.create()).id


@extractor
def said(trajectory, config):
    return " ".join(m.content for turn in trajectory for m in turn if isinstance(m, AssistantMessage))


@grader
def right(sample, submission):
    return GradeResult(1.0 if submission == "It is Paris" else 0.0)


def answer(message, ctx):
    return "It is Paris"
"""
SUITE = """\
name: installed
dataset: data.jsonl
setup_script: mine.py:prepare
target: {kind: letta_agent, agent_script: mine.py:made, backend: mine.py:answer}
graders: {right: {kind: tool, function: mine.py:right, extractor: mine.py:said}}
gate: {kind: simple, metric_key: right, op: gte, value: 1}
"""


def test_functions_and_messages_may_be_those_of_the_installed_packages(tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    for name, text in PACKAGES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    suite.mkdir()
    (suite / "mine.py").write_text(CODE)
    (suite / "suite.yaml").write_text(SUITE)
    (suite / "data.jsonl").write_text('{"input": "capital of France?"}\n')
    command = ["-m", "evalwright", "letta", "run", "suite.yaml", "--quiet"]
    done = warm.run(command, cwd=suite, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert (done.stdout, done.stderr) == ("✓ PASSED\n", "")
