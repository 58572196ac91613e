"""Lines of `.env` files that set no variable, in each format that reads such files."""

from pathlib import Path

import pytest

from evalwright.formats.loading import load_suite

SUITES = {
    "agentv": ("EVAL.yaml", "description: d\ntests:\n  - {id: a, criteria: c, input: q, expected_output: x}\n"),
    "pixie": (
        "d.json",
        '{"runnable": "app.py:run", "evaluators": ["ExactMatch"], "entries": [{"input_data": {"q": 1}, '
        '"description": "d", "expectation": "x"}]}',
    ),
    "promptfoo": (
        "promptfooconfig.yaml",
        "prompts: [hi]\nproviders: [echo]\ntests: [{assert: [{type: equals, value: hi}]}]\n",
    ),
}


@pytest.mark.parametrize("name", SUITES)
def test_a_line_that_sets_no_variable_is_a_warning(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, text = SUITES[name]
    (tmp_path / file).write_text(text)
    (tmp_path / "app.py").write_text("def run(q):\n    return q\n")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".env").write_text("A=1\nOPENAI_API_KEY: sk-secret\n")
    monkeypatch.chdir(tmp_path)
    warnings = [str(warning) for warning in load_suite(tmp_path / file, name).warnings]
    assert [warning.partition("  ")[0] for warning in warnings if "expected NAME=VALUE" in warning] == [
        f"{tmp_path / '.env'}:2"
    ]
    assert "sk-secret" not in str(warnings)
