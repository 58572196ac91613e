"""Sessions of pytest in processes of their own, with the plug-in and nothing else that happens to be installed."""

import os
from contextlib import closing

import pytest
import yaml  # noqa: F401 - pytester forgets what its tests import first, and libyaml must not be imported twice

import warm
from evalwright.model.result import CaseVerdict
from evalwright.model.trace import Trace
from evalwright.run.stored_run import open_run

APP = """
import asyncio, os, signal
import pytest
from evalwright import pixie

@pixie.observe(name="app")
def echo(text):
    return text

def is_hi(evaluable):
    return pixie.Evaluation(float(evaluable.eval_output[0].value == "hi"), "only hi will do")

def judge(evaluable):
    return pixie.Evaluation(0.0, "no route to host", {"error": "ConnectError", "traceback": "..."})

def passing(*inputs, by=(is_hi,)):
    asyncio.run(pixie.assert_pass(echo, inputs, by))

@pytest.fixture
def anyio_backend():
    return "asyncio"
"""


class Session:
    """A folder of tests, and what became of them."""

    def __init__(self, pytester, monkeypatch):
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
        self.pytester = pytester

    def run(self, *options, **tests):
        for name, body in tests.items():
            (self.pytester.path / f"test_{name}.py").write_text(APP + body)
        plugins = ("evalwright.pytest_plugin", "xdist.plugin", "anyio.pytest_plugin")
        loaded = [word for plugin in plugins for word in ("-p", plugin)]
        return self.process("-m", "pytest", *loaded, "-p", "no:cacheprovider", *options)

    def process(self, *words):
        """What `python WORDS` said, as pytester tells it."""
        environment = {**os.environ, "HOME": str(self.pytester.path), "USERPROFILE": str(self.pytester.path)}
        done = warm.run(list(words), cwd=self.pytester.path, env=environment)
        return pytest.RunResult(done.returncode, done.stdout.splitlines(), done.stderr.splitlines(), 0)

    def files(self, files):
        for name, text in files.items():
            (self.pytester.path / name).write_text(text)

    def runs(self, folder="runs"):
        return sorted((self.pytester.path / folder).glob("*"))

    def verdicts(self, folder="runs"):
        """Status by case, of the only run."""
        [run] = self.runs(folder)
        reader, _ = open_run(run)
        with closing(reader):
            return {row.case_id: row.status for row in reader.verdicts(CaseVerdict)}

    def records(self, kind):
        reader, _ = open_run(self.runs()[0])
        with closing(reader):
            return list(reader.traces(kind) if kind is Trace else reader.results(kind))


@pytest.fixture
def session(pytester, monkeypatch):
    return Session(pytester, monkeypatch)
