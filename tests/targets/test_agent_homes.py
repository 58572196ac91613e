"""The home that an agent gets: its login is there, and nothing else of the user's, wherever the user keeps it."""

import json
from pathlib import Path

import pytest

from targets.agents import COPILOT, GEMINI, MARK, answer, called, lines

pytestmark = pytest.mark.usefixtures("own_home")


def environment_of(agent, stream, folder, **config):
    """The environment in which an agent was called, and the files of its home."""
    answer(agent, stream, folder, then=f'cd "$HOME" && find . -type f | sort > {folder}/home_files', **config)
    return dict(line.partition("=")[::2] for line in called(folder, "env")), called(folder, "home_files")


@pytest.mark.parametrize(
    ("agent", "variable", "stream", "login", "below"),
    [
        ("gemini", "GEMINI_CLI_HOME", lines(*GEMINI), ".gemini/oauth_creds.json", ""),
        ("copilot", "COPILOT_HOME", lines(*COPILOT), "config.json", ".copilot"),
        ("pi", "PI_CODING_AGENT_DIR", b"Done.", "auth.json", ".pi/agent"),
    ],
)
def test_a_home_that_a_variable_names_is_the_users_own_too(
    tmp_path, monkeypatch, agent, variable, stream, login, below
):
    own = tmp_path / "elsewhere"
    for name in (login, "skills/other/SKILL.md"):
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text(json.dumps({"token": f"tok-{MARK}-secret", "expires": 5}))
    monkeypatch.setenv(variable, str(own))
    env, files = environment_of(agent, stream, tmp_path)
    assert env[variable] == str(Path(env["HOME"], below)) != str(own)
    assert files == [f"./{Path(below, login)}"], "where versions that do not know the variable find it, too"


def test_the_login_of_another_program_is_copied_from_the_users_home(tmp_path, own_home):
    (own_home / ".config/gh").mkdir(parents=True)
    (own_home / ".config/gh/hosts.yml").write_text(f"oauth_token: gho-{MARK}\n")
    env, files = environment_of("copilot", lines(*COPILOT), tmp_path)
    assert files == ["./.config/gh/hosts.yml", "./.copilot/config.json"]
    assert env["HOME"] != str(own_home)


@pytest.mark.parametrize(
    ("variables", "uses_login"), [({}, True), ({"GOOGLE_CLOUD_PROJECT": "p"}, True), ({"GEMINI_API_KEY": "k"}, False)]
)
def test_gemini_uses_its_login_without_the_settings_that_say_so(tmp_path, monkeypatch, variables, uses_login):
    for name in ("GEMINI_API_KEY", "GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    env, _ = environment_of("gemini", lines(*GEMINI), tmp_path, env=variables)
    assert ("GOOGLE_GENAI_USE_GCA" in env) is uses_login


@pytest.mark.parametrize(
    ("config", "trust"), [({}, "true"), ({"env": {"GEMINI_CLI_TRUST_WORKSPACE": "false"}}, "false")]
)
def test_gemini_trusts_the_workspace_unless_told_otherwise(tmp_path, config, trust):
    env, _ = environment_of("gemini", lines(*GEMINI), tmp_path, **config)
    assert env["GEMINI_CLI_TRUST_WORKSPACE"] == trust
