"""The registers of evaluators: what they promise about each evaluator is true, and reading them loads none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from evalwright import built_in, registry
from evalwright.errors import InputError
from evalwright.evaluators.build import build_evaluator, declared
from evalwright.evaluators.catalogue import catalogue, describe

LISTED = {evaluator.name: evaluator for evaluator in catalogue()}


def test_the_example_of_an_evaluator_is_a_valid_configuration() -> None:
    refused = {}
    for name in LISTED:
        example = describe(name).example
        if example is None:
            refused[name] = "has no example"
        elif not declared("evaluators", name).imports_code:
            try:
                build_evaluator(name, example)
            except InputError as error:
                refused[name] = str(error)
    assert refused == {}


def test_an_evaluator_with_required_keys_shows_them_in_its_example() -> None:
    described = {name: describe(name) for name in LISTED}
    required = {name: {key.name for key in one.keys if key.required} for name, one in described.items()}
    left_out = {name: keys - set(described[name].example or ()) for name, keys in required.items()}
    assert {name: keys for name, keys in left_out.items() if keys} == {}


def test_an_evaluator_is_described_in_one_sentence_or_two() -> None:
    sentences = {name: one.sentence for name, one in LISTED.items()}
    assert {
        name: sentence for name, sentence in sentences.items() if not sentence.endswith(".") or "\n" in sentence
    } == {}


def test_similar_evaluators_are_there() -> None:
    assert [
        (name, other) for name, one in LISTED.items() for other in one.see if other not in LISTED or other == name
    ] == []


def test_names_of_stored_runs_are_not_listed_but_known() -> None:
    internal = [name for name in registry.names("evaluators") if name in registry.INTERNAL]
    assert internal
    assert [name for name in internal if name in LISTED or not registry.knows("evaluators", name)] == []


def test_no_name_is_in_two_registers() -> None:
    names = [name for register in registry.families().values() for name in register]
    names += [name for format in registry.formats() for name in format.evaluators]
    names += built_in.KINDS["evaluators"]
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
