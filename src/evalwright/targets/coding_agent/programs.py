"""The known coding agents: how each is called, what it prints, and where it looks for skills and its login."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["PROGRAMS", "AgentRequest", "Program"]


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """One task for an agent."""

    prompt: str
    model: str | None = None
    max_turns: int | None = None
    max_budget_usd: float | None = None
    args: Sequence[str] = ()
    """The user's arguments, after ours."""


@dataclass(frozen=True, slots=True)
class Program:
    """A coding agent, as its program is documented."""

    command: tuple[str, ...]
    words: Callable[[AgentRequest], list[str]]
    """The arguments after the command."""
    output: str
    """The input format that reads what it prints; `text` if its stdout is the answer."""
    ends: frozenset[str] = frozenset()
    """The types of the line with which it reports its end; empty if it reports none."""
    works: frozenset[str] = frozenset()
    """The types of lines that another end has to follow."""
    reads_stdin: bool = True
    """Whether it gets the prompt on stdin, where it can be long and begin with a hyphen."""
    skills: str = ""
    """The folder of skills in the workspace."""
    home: tuple[str, ...] = ()
    """The variables that name its clean home; the first one determines where its files are."""
    default_home: str = ""
    """Where its files are if the first variable of `home` is not set, relative to `HOME`."""
    logins: tuple[str, ...] = ()
    """Files with the login, relative to its home."""
    keys: tuple[str, ...] = ()
    """Variables with keys and addresses, which containers get, too."""
    contained: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables that are set in a container."""
    needs_permission: bool = True
    """Whether it is called in such a way that it never asks for permission."""
    limits: frozenset[str] = frozenset()
    """Which of max_turns and max_budget_usd it enforces itself."""


def _option(name: str, value: object) -> list[str]:
    return [] if value is None else [name, str(value)]


def _claude(asked: AgentRequest) -> list[str]:
    return [
        *("-p", "--output-format", "stream-json", "--verbose"),
        *_option("--model", asked.model),
        *_option("--max-turns", asked.max_turns),
        *_option("--max-budget-usd", asked.max_budget_usd),
        *("--permission-mode", "bypassPermissions"),
        *asked.args,
    ]


def _codex(asked: AgentRequest) -> list[str]:
    flags = ("exec", "--json", "--skip-git-repo-check", "--sandbox", "workspace-write")
    return [*flags, *_option("--model", asked.model), *asked.args, "-"]


def _prompt(asked: AgentRequest) -> list[str]:
    """The prompt as an argument; one that begins with a hyphen would be read as an option."""
    return [f"--prompt={asked.prompt}"] if asked.prompt.startswith("-") else ["-p", asked.prompt]


def _gemini(asked: AgentRequest) -> list[str]:
    flags = ("--output-format", "stream-json", "--yolo")
    return [*flags, *_option("--model", asked.model), *asked.args, *_prompt(asked)]


def _copilot(asked: AgentRequest) -> list[str]:
    flags = ("--yolo", "--output-format", "json")
    return [*_prompt(asked), *flags, *_option("--model", asked.model), *asked.args]


def _pi(asked: AgentRequest) -> list[str]:
    return ["--print", "--no-session", *_option("--model", asked.model), *asked.args]


def _command(asked: AgentRequest) -> list[str]:
    return [*asked.args]


PROGRAMS: Mapping[str, Program] = {
    "claude": Program(
        ("claude",),
        _claude,
        "claude-code",
        ends=frozenset({"result"}),
        works=frozenset({"assistant"}),
        skills=".claude/skills",
        home=("CLAUDE_CONFIG_DIR",),
        default_home=".claude",
        logins=(".credentials.json",),
        keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN"),
        # As root it otherwise refuses to work without asking.
        contained={"IS_SANDBOX": "1"},
        limits=frozenset({"max_turns", "max_budget_usd"}),
    ),
    "codex": Program(
        ("codex",),
        _codex,
        "codex",
        ends=frozenset({"turn.completed", "turn.failed"}),
        works=frozenset({"thread.started", "turn.started"}),
        skills=".agents/skills",
        home=("CODEX_HOME", "HOME"),
        default_home=".codex",
        logins=("auth.json",),
        keys=("CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
        needs_permission=False,
    ),
    "gemini": Program(
        ("gemini",),
        _gemini,
        "gemini",
        ends=frozenset({"result"}),
        works=frozenset({"init"}),
        reads_stdin=False,
        skills=".gemini/skills",
        home=("HOME",),
        logins=(".gemini/oauth_creds.json", ".gemini/google_accounts.json"),
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"),
    ),
    "copilot": Program(
        ("copilot",),
        _copilot,
        "copilot",
        ends=frozenset({"result"}),
        works=frozenset({"message", "assistant.message"}),
        reads_stdin=False,
        skills=".github/skills",
        home=("HOME",),
        logins=(".copilot/config.json", ".config/gh/hosts.yml"),
        keys=("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"),
    ),
    "pi": Program(
        ("pi",),
        _pi,
        "text",
        skills=".pi/skills",
        home=("HOME",),
        logins=(".pi/agent/auth.json",),
        keys=("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"),
    ),
    "command": Program((), _command, "text", needs_permission=False),
}
"""By the name that users write. `command` is any program that reads its prompt from stdin."""
