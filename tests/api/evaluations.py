"""Evaluations that leave nothing on disk, what they are refused for, and a suite to evaluate."""

import pytest

import evalwright as ew
from api import agents

CASES = ["one", "two", "three"]


def passes(output):
    return True


def evaluate(cases=CASES, system=agents.upper, **options):
    return ew.evaluate(cases, system, **{"evaluators": passes, "out": None, **options})


def problems(*arguments, **options):
    with pytest.raises(ew.InputError) as raised:
        ew.evaluate(*arguments, **{"out": None, **options})
    return str(raised.value).splitlines()


def write_suite(folder):
    (folder / "cases.yaml").write_text(
        "cases:\n  - {id: a, input: {word: a}, tags: [smoke]}\n  - {id: b, input: {word: b}}\n"
    )
    (folder / "eval.yaml").write_text(
        "eval: {name: suite}\ndataset: {type: yaml, path: cases.yaml}\n"
        "systems:\n  - {name: one, adapter: python_function, target: 'api.agents:picks'}\n"
        "  - {name: two, adapter: python_function, target: 'api.agents:picks', word: w}\n"
        "evaluators: [{name: has, type: contains_text, config: {all_of: [a]}}]\n"
        "output: {type: local_files, path: own}\n"
    )
