"""What the tests of coding agents share."""

import json

import pytest

from targets.agents import MARK


@pytest.fixture
def own_home(tmp_path, monkeypatch):
    """A home with a login, settings and a skill of the user's own."""
    home = tmp_path / "home"
    for name in (".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".copilot/config.json"):
        (home / name).parent.mkdir(parents=True)
        (home / name).write_text(json.dumps({"token": f"tok-{MARK}-secret"}))
    (home / ".claude/skills/other").mkdir(parents=True)
    (home / ".claude/skills/other/SKILL.md").write_text("---\nname: other\n---\n")
    monkeypatch.setenv("HOME", str(home))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    return home
