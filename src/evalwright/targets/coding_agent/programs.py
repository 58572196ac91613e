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
    logins_of_user: tuple[str, ...] = ()
    """Files with a login of another program that it uses, relative to `HOME`."""
    signed_in: Callable[[Mapping[str, str]], dict[str, str]] | None = None
    """For an environment, the variables with which it uses a copied login without the user's settings."""
    keys: tuple[str, ...] = ()
    """Variables with keys and addresses, which containers get, too."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables that are always set, unless the user sets them."""
    contained: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables that are set in a container."""
    needs_permission: bool = True
    """Whether it is called in such a way that it never asks for permission."""
    limits: frozenset[str] = frozenset()
    """Which of max_turns and max_budget_usd it enforces itself."""


def _option(name: str, value: object) -> list[str]:
    return [] if value is None else [name, str(value)]


def _claude(request: AgentRequest) -> list[str]:
    return [
        *("-p", "--output-format", "stream-json", "--verbose"),
        *_option("--model", request.model),
        *_option("--max-turns", request.max_turns),
        *_option("--max-budget-usd", request.max_budget_usd),
        *("--permission-mode", "bypassPermissions"),
        *request.args,
    ]


def _codex(request: AgentRequest) -> list[str]:
    flags = ("exec", "--json", "--skip-git-repo-check", "--sandbox", "workspace-write")
    return [*flags, *_option("--model", request.model), *request.args, "-"]


def _prompt(request: AgentRequest) -> list[str]:
    """The prompt as an argument; one that begins with a hyphen would be read as an option."""
    return [f"--prompt={request.prompt}"] if request.prompt.startswith("-") else ["-p", request.prompt]


def _gemini(request: AgentRequest) -> list[str]:
    flags = ("--output-format", "stream-json", "--yolo")
    return [*flags, *_option("--model", request.model), *request.args, *_prompt(request)]


def _gemini_signed_in(environ: Mapping[str, str]) -> dict[str, str]:
    """Its settings say how it signs in, and without them variables do."""
    others = ("GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GEMINI_BASE_URL")
    return {} if any(environ.get(name) for name in others) else {"GOOGLE_GENAI_USE_GCA": "true"}


def _copilot(request: AgentRequest) -> list[str]:
    flags = ("--yolo", "--output-format", "json")
    return [*_prompt(request), *flags, *_option("--model", request.model), *request.args]


def _pi(request: AgentRequest) -> list[str]:
    return ["--print", "--no-session", *_option("--model", request.model), *request.args]


def _command(request: AgentRequest) -> list[str]:
    return [*request.args]


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
        home=("GEMINI_CLI_HOME", "HOME"),
        logins=(".gemini/oauth_creds.json", ".gemini/google_accounts.json"),
        signed_in=_gemini_signed_in,
        keys=(
            *("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI"),
            *("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL"),
        ),
        # It neither works nor loads skills in a folder that nobody has trusted, whatever it is allowed to do.
        env={"GEMINI_CLI_TRUST_WORKSPACE": "true"},
    ),
    "copilot": Program(
        ("copilot",),
        _copilot,
        "copilot",
        ends=frozenset({"result"}),
        works=frozenset({"message", "assistant.message"}),
        reads_stdin=False,
        skills=".github/skills",
        home=("COPILOT_HOME", "HOME"),
        default_home=".copilot",
        logins=("config.json",),
        logins_of_user=(".config/gh/hosts.yml",),
        keys=(
            *("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_BASE_URL"),
            *("COPILOT_PROVIDER_TYPE", "COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_WIRE_API", "COPILOT_MODEL"),
        ),
    ),
    "pi": Program(
        ("pi",),
        _pi,
        "text",
        skills=".pi/skills",
        home=("PI_CODING_AGENT_DIR", "HOME"),
        default_home=".pi/agent",
        logins=("auth.json",),
        keys=("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"),
    ),
    "command": Program((), _command, "text", needs_permission=False),
}
"""By the name that users write. `command` is any program that reads its prompt from stdin."""
