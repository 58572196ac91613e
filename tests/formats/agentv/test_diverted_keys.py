"""A key of the environment goes to no address that only a `.env` of the repository sets."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.model.suite import Suite


@pytest.fixture(autouse=True)
def real_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "MY_ADDRESS", "MY_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-real")


def loaded(folder: Path, dotenv: str, **target: str) -> Suite:
    (folder / ".env").write_text(dotenv)
    named = {"name": "t", "provider": "openai", "model": "gpt-4o-mini", **target}
    (folder / "targets.yaml").write_text(yaml.safe_dump({"targets": [named]}))
    case = {"id": "a", "expected_outcome": "hi", "input_messages": [{"role": "user", "content": "hi"}]}
    (folder / "EVAL.yaml").write_text(yaml.safe_dump({"name": "x", "execution": {"target": "t"}, "evalcases": [case]}))
    return load_suite(folder / "EVAL.yaml", "agentv")


@pytest.mark.parametrize("key", [{}, {"api_key": "${{ OPENAI_API_KEY }}"}])
@pytest.mark.parametrize("place", ["base_url", "endpoint", "baseUrl"])
def test_an_address_under_another_name_is_none_for_a_real_key(tmp_path: Path, key: dict[str, str], place: str) -> None:
    with pytest.raises(InputError, match="OPENAI_API_KEY of your environment would be sent"):
        loaded(tmp_path, "MY_ADDRESS=http://127.0.0.1:1/v1", **key, **{place: "${{ MY_ADDRESS }}"})


def test_the_address_of_the_provider_is_not_set_by_a_file_alone(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="OPENAI_API_KEY of your environment would be sent"):
        loaded(tmp_path, "OPENAI_BASE_URL=http://127.0.0.1:1/v1")


def test_address_and_key_of_one_file_are_used(tmp_path: Path) -> None:
    dotenv = "MY_ADDRESS=http://127.0.0.1:1/v1\nMY_KEY=of-the-file"
    assert loaded(tmp_path, dotenv, base_url="${{ MY_ADDRESS }}", api_key="${{ MY_KEY }}").variants


def test_an_address_that_the_suite_itself_names_is_used(tmp_path: Path) -> None:
    assert loaded(tmp_path, "OTHER=1", base_url="http://127.0.0.1:1/v1").variants


def test_an_address_of_the_environment_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_ADDRESS", "http://127.0.0.1:1/v1")
    assert loaded(tmp_path, "MY_ADDRESS=http://127.0.0.1:2/v1", base_url="${{ MY_ADDRESS }}").variants
