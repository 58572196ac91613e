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


def test_tests_of_agentv_are_its_own(tmp_path: Path) -> None:
    text = "name: shop\nexecution: {target: t}\ntests: [{id: a, criteria: x, input: hi, assertions: []}]\n"
    (tmp_path / "shop.yaml").write_text(text)
    assert load_suite(tmp_path / "shop.yaml", to_run=False).dialect == "agentv"
