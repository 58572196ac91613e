"""Suites of other programs are called what they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite


@pytest.mark.parametrize(
    ("name", "text", "program"),
    [
        ("match.yaml", "match:\n  id: match.dev.v0\n  metrics: [accuracy]\n", "OpenAI Evals"),
        ("match.yaml", "match.dev.v0:\n  class: evals.elsuite.basic.match:Match\n", "OpenAI Evals"),
    ],
)
def test_a_suite_of_another_program_is_called_by_its_name(tmp_path: Path, name: str, text: str, program: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as refusal:
        load_suite(tmp_path / name)
    assert f"{name}  is a file of {program}" in str(refusal.value)
    assert "agentv" not in str(refusal.value).lower()


FORM = "prompts: ['{{q}}']\nproviders: [echo]\n"
CONTAINS = "    assert:\n      - type: contains\n        value: hi\n"


@pytest.mark.parametrize(
    ("more", "keys"),
    [
        ("default_test: {threshold: 1}\ntests:\n  - vars: {q: hi}\n", "default_test, prompts, providers"),
        ("evaluate_options: {repeat: {count: 2}}\ntests: []\n", "evaluate_options, prompts, providers"),
        ("workspace: {template: ./x}\ntests:\n  - vars: {q: hi}\n", "workspace, prompts, providers"),
        ("assert: [It greets.]\ntests:\n  - vars: {q: hi}\n", "assert, prompts, providers"),
        ("assert: [{type: llm-grader}]\ntests:\n  - vars: {q: hi}\n", "assert, prompts, providers"),
        ("tests:\n  - id: a\n    vars: {q: hi}\n    criteria: greets\n", "tests[].id, tests[].criteria"),
        ("tests:\n- id: a\n\n  vars:\n    q: hi\n  assert:\n  - It greets.\n", "tests[].id, tests[].assert"),
        ("tests:\n  - id: a\n    assert:\n      - |-\n        It greets.\n", "tests[].id, tests[].assert"),
        ("tests:\n  - id: a\n    assert:\n      - 'Says: hi'\n", "tests[].id, tests[].assert"),
        ("tests:\n  - id: a\n" + CONTAINS + "      - It greets.\n", "tests[].id, tests[].assert"),
    ],
)
def test_files_of_agentv_5_are_not_taken_for_promptfoo(tmp_path: Path, more: str, keys: str) -> None:
    (tmp_path / "five.eval.yaml").write_text(FORM + more)
    with pytest.raises(InputError) as refusal:
        load_suite(tmp_path / "five.eval.yaml")
    assert f"is a file of AgentV 5 ({keys}" in str(refusal.value)
    if "tests[].assert" in keys:  # promptfoo takes no text for a check
        with pytest.raises(InputError, match="expected a mapping with a type"):
            load_suite(tmp_path / "five.eval.yaml", "promptfoo", to_run=False)
    else:
        assert load_suite(tmp_path / "five.eval.yaml", "promptfoo", to_run=False).dialect == "promptfoo"


@pytest.mark.parametrize(
    "more",
    [
        "tests:\n  - vars: {q: hi}\n" + CONTAINS,
        "tests:\n  - id: a\n    vars: {q: hi}\n" + CONTAINS,
        "tests:\n  - id: a\n    assert:\n      - type: contains-any\n        value:\n          - hi there\n",
        "tests:\n  - id: a\n    vars:\n      q: hi\n      criteria: x\n      expected_output: y\n" + CONTAINS,
        "tests:\n  - vars: {q: hi}\n    assert:\n      - 'type': contains\n        value: hi\n",
        "assert: [{type: contains, value: hi}]\ntests:\n  - vars: {q: hi}\n",
        "defaultTest: {threshold: 1}\nexecution: x\ntests:\n  - vars: {q: hi}\n",
        "$schema: https://promptfoo.dev/config-schema.json\nassert: []\ntests:\n  - vars: {q: hi}\n",
    ],
)
def test_files_of_promptfoo_stay_its_own(tmp_path: Path, more: str) -> None:
    (tmp_path / "checks.yaml").write_text(FORM + more)
    assert load_suite(tmp_path / "checks.yaml", to_run=False).dialect == "promptfoo"
    (tmp_path / "promptfooconfig.yaml").write_text(FORM + "default_test: {}\n" + more)
    assert load_suite(tmp_path / "promptfooconfig.yaml", to_run=False).dialect == "promptfoo"


def test_a_long_file_of_promptfoo_stays_its_own_wherever_it_is_cut(tmp_path: Path) -> None:
    test = "  - id: a\n    vars: {q: hi}\n    assert:\n" + "      - type: contains\n        value: hi\n" * 10
    for shift in range(25, 29):
        (tmp_path / "long.yaml").write_text("#" * shift + "\n" + FORM + "tests:\n" + test * 200)
        assert load_suite(tmp_path / "long.yaml", to_run=False).dialect == "promptfoo"


def test_tests_of_agentv_are_its_own(tmp_path: Path) -> None:
    text = "name: shop\nexecution: {target: t}\ntests: [{id: a, criteria: x, input: hi, assertions: []}]\n"
    (tmp_path / "shop.yaml").write_text(text)
    assert load_suite(tmp_path / "shop.yaml", to_run=False).dialect == "agentv"
