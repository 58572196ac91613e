"""Packages that are not installed are named with the line that installs them, before anything runs."""

from __future__ import annotations

import sys

import pytest

from evalwright.errors import InputError
from evalwright.model.plan import EvaluatorSpec, Executor, Plugin, Variant
from evalwright.run.missing_packages import missing_packages
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from run.suites import suite

JUDGES = [
    EvaluatorSpec("judge", "llm_judge", {"models": ["gpt-x", "claude-x"], "nl_assertions": ["is polite"]}),
    EvaluatorSpec("other", "rubric_template", {"prompt": "{submission}", "model": "litellm/x"}),
]
CHAT = [Variant("chat", "anthropic", {"model": "claude-x"})]


@pytest.fixture
def nothing_installed(monkeypatch):
    for name in ("openai", "anthropic", "litellm", "psycopg", "opentelemetry", "ray"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "k")


def test_every_package_is_named_with_who_needs_it_and_its_install_line(tmp_path, nothing_installed):
    whole = suite(tmp_path, ["x"], evaluators=JUDGES, variants=CHAT, executor=Executor("ray"))
    whole.store, whole.mirrors = Plugin("postgres"), [Plugin("otel")]
    packages = missing_packages(whole)
    assert {(package.key, package.message.partition("needs ")[2]) for package in packages} == {
        ("judge", "the package openai: pip install 'evalwright[judges]'"),
        ("judge", "the package anthropic: pip install 'evalwright[judges]'"),
        ("other", "the package litellm: pip install litellm"),
        ("chat", "the package anthropic: pip install 'evalwright[judges]'"),
        ("output", "the package psycopg: pip install 'evalwright[postgres]'"),
        ("output", "the package opentelemetry: pip install 'evalwright[otel]'"),
        ("run.executor", "Ray: pip install 'evalwright[ray]'"),
    }
    assert all(package.absent for package in packages)


def test_a_run_is_refused_that_could_not_ask_its_judges(tmp_path, nothing_installed):
    with pytest.raises(InputError) as raised:
        run_suite(suite(tmp_path, ["x"], evaluators=JUDGES[:1]), RunOptions())
    assert [problem.message for problem in raised.value.problems] == [
        "'gpt-x' needs the package openai: pip install 'evalwright[judges]'",
        "'claude-x' needs the package anthropic: pip install 'evalwright[judges]'",
    ]
    assert not (tmp_path / "runs").exists()


def test_what_is_installed_is_not_missing(tmp_path):
    assert missing_packages(suite(tmp_path, ["x"], evaluators=JUDGES[:1], variants=CHAT)) == []
