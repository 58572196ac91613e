"""The registers of evaluators: what they promise about each evaluator is true, and reading them loads none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evalwright import registry
from evalwright.evaluators.build import build_evaluator, declared
from evalwright.evaluators.catalogue import catalogue, describe

LISTED = {one.name: one for one in catalogue()}


@pytest.mark.parametrize("name", LISTED)
def test_the_example_of_an_evaluator_is_a_valid_configuration(name: str) -> None:
    example = describe(name).example
    assert example is not None
    if not declared("evaluators", name).imports_code:
        build_evaluator(name, example)


@pytest.mark.parametrize("name", LISTED)
def test_an_evaluator_with_required_keys_shows_them_in_its_example(name: str) -> None:
    description = describe(name)
    assert {key.name for key in description.keys if key.required} <= set(description.example or ())


@pytest.mark.parametrize("name", LISTED)
def test_an_evaluator_is_described_in_one_sentence_or_two(name: str) -> None:
    sentence = LISTED[name].sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence


@pytest.mark.parametrize("name", LISTED)
def test_similar_evaluators_are_there(name: str) -> None:
    assert [other for other in LISTED[name].see if other not in LISTED or other == name] == []


def test_names_of_stored_runs_are_not_listed_but_known() -> None:
    internal = [name for name in registry.names("evaluators") if name in registry.INTERNAL]
    assert internal
    assert [name for name in internal if name in LISTED or not registry.knows("evaluators", name)] == []


def test_no_name_is_in_two_registers() -> None:
    names = [name for register in registry.families().values() for name in register]
    names += [name for format in registry.formats() for name in format.evaluators]
    names += registry.KINDS["evaluators"]
    assert sorted(names) == sorted(set(names))


def test_every_family_has_a_register() -> None:
    folders = {path.parent.name for path in (Path(registry.__file__).parent / "evaluators").glob("*/__init__.py")}
    assert folders == set(registry.FAMILIES)


def test_reading_names_loads_no_evaluator() -> None:
    script = "import sys; from evalwright import registry; registry.names('evaluators'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = [name for name in done.stdout.split() if name.startswith("evalwright.evaluators.")]
    assert loaded == [f"evalwright.evaluators.{family}" for family in registry.FAMILIES]


def test_looking_up_a_name_opens_no_register_behind_its_own() -> None:
    script = "import sys; from evalwright import registry; registry.knows('evaluators', 'regex'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "evalwright.evaluators.text" in done.stdout.split()
    assert "evalwright.evaluators.values" not in done.stdout.split()
