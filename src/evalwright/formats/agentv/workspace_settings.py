"""`workspace` of AgentEvals files: what the system's folder contains at first, and the commands around it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem
from evalwright.files import yaml
from evalwright.files.boundary import Boundary, OutsideError
from evalwright.files.key_paths import as_written
from evalwright.formats.agentv.booleans import boolean_mistake
from evalwright.formats.shared.isolation import refusal

__all__ = [
    "HOOKS",
    "OF_HOOK",
    "OF_REPO",
    "REQUIRED",
    "RESETS",
    "VALUES",
    "WORKSPACE_KEYS",
    "WorkspaceSettings",
    "merged_workspaces",
    "read_hooks",
    "read_workspace",
]

WorkspaceSettings = dict[str, Any]
"""`template`, a folder; `repos`, each with `path`, `url`, `commit`, `ancestor`, `sparse`; `hooks`, lists by name of
`{command, cwd, seconds}`. Paths are absolute except those in `repos`."""
HOOKS = ("before_all", "before_each", "after_each", "after_all")
_SECONDS = {"before": 60.0, "after": 30.0}
WORKSPACE_KEYS = ("template", "repos", "hooks", "isolation", "mode", "env")
VALUES = {"isolation": ("shared", "per_test"), "mode": ("pooled", "temp")}
"""How folders are shared and kept, which changes nothing if each attempt has its own folder."""
OF_HOOK = ("command", "script", "timeout_ms", "timeoutMs", "cwd", "reset")
RESETS = ("none", "fast", "strict")
"""A fresh copy needs no reset."""
OF_REPO = ("path", "repo", "commit", "base_commit", "ancestor", "sparse", "source", "checkout", "clone")
REQUIRED = {
    "required_commands": (
        "sh",
        "-c",
        'command -v "$1" > /dev/null || { echo "there is no command $1" >&2; exit 1; }',
        "-",
    ),
    "required_python_modules": (
        "python3",
        "-c",
        "import sys\ntry: __import__(sys.argv[1])\nexcept ImportError as error: sys.exit(error)",
    ),
}
"""What `env` requires, and the command that fails, with the name as its last argument, if it is not there."""
_GITHUB = "https://github.com/{}.git"


def read_workspace(raw: Any, folder: Path, put_into: Callable[[Any], Any], boundary: Boundary) -> WorkspaceSettings:
    """The settings under `workspace`, or in the file that it names, into which variables are put; paths are relative to
    where they are written.

    Raises InputError with every mistake, and for everything that is not supported.
    """
    if isinstance(raw, str):
        path = folder / raw
        try:
            boundary.check(path)
        except OutsideError as error:
            raise InputError(Problem("", str(error), key="workspace")) from None
        if not os.path.isfile(path):
            raise InputError(Problem("", f"there is no file {raw!r}", key="workspace"))
        raw, folder = put_into(yaml.load(path, "yaml12").value), path.resolve().parent
    if not isinstance(raw, dict):
        kind = type(raw).__name__
        raise InputError(Problem("", f"workspace: expected a mapping or a file, found {kind}", key="workspace"))
    problems = [Problem("", message, key=f"workspace.{key}") for key, message in _mistakes(raw)]
    template = raw.get("template")
    if problems:
        raise InputError(problems)
    settings: WorkspaceSettings = {
        "repos": [_repo(repo) for repo in raw.get("repos") or ()],
        "hooks": read_hooks(raw.get("hooks") or {}, folder),
    }
    if required := [*_required_variables(raw.get("env") or {}, folder)]:
        settings["hooks"]["before_all"] = [*required, *settings["hooks"].get("before_all", [])]
    if template is not None:
        place = folder / template
        settings["template"] = str(place.parent if place.suffix == ".code-workspace" else place)
    return settings


def _mistakes(raw: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in raw.items():
        if key not in WORKSPACE_KEYS:
            yield str(key), refusal(key, WORKSPACE_KEYS)
        elif key in VALUES and value not in VALUES[key]:
            wanted = " or ".join(VALUES[key])
            yield str(key), f"{key}: {value!r} is not supported, so nothing is run; there are: {wanted}"
    if raw.get("template") is not None and not isinstance(raw["template"], str):
        yield "template", f"template: expected a folder, found {as_written(raw['template'])}"
    repos = raw.get("repos")
    if repos is not None and not isinstance(repos, list):
        yield "repos", f"repos: expected a list, found {as_written(repos)}"
    for i, repo in enumerate(repos if isinstance(repos, list) else ()):
        yield from ((f"repos[{i}]{key}", message) for key, message in _problems_of_repo(repo))
    yield from _problems_of_hooks(raw.get("hooks"))
    env = raw.get("env")
    if env is not None and not isinstance(env, dict):
        yield "env", f"env: expected a mapping with {' and '.join(REQUIRED)}, found {as_written(env)}"
    for key, names in env.items() if isinstance(env, dict) else ():
        if key not in REQUIRED:
            yield f"env.{key}", refusal(key, REQUIRED)
        elif not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
            yield f"env.{key}", f"{key}: expected a list of names, found {as_written(names)}"


def _required_variables(env: Mapping[str, Any], folder: Path) -> Iterator[dict[str, Any]]:
    for key, command in REQUIRED.items():
        for name in env.get(key) or ():
            yield {"command": [*command, name], "cwd": str(folder), "seconds": _SECONDS["before"]}


def _problems_of_repo(repo: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(repo, dict):
        yield "", f"expected a mapping with path and repo, found {as_written(repo)}"
        return
    for key in repo:
        if key not in OF_REPO:
            yield f".{key}", refusal(key, OF_REPO)
    path, url = repo.get("path"), _url(repo)
    if not isinstance(path, str) or Path(path).is_absolute() or ".." in Path(path).parts:
        yield ".path", f"path: expected a folder within the workspace, found {as_written(path)}"
    if not url or url.startswith("-") or "::" in url:
        yield ".repo", f"repo: expected the address of a repository or owner/name, found {as_written(repo.get('repo'))}"
    if str(_commit(repo)).startswith("-"):
        yield ".commit", f"commit: expected a branch, tag or commit, found {_commit(repo)!r}"
    if not isinstance(repo.get("sparse", []), list | None):
        yield ".sparse", f"sparse: expected a list of folders, found {as_written(repo['sparse'])}"
    if type(repo.get("ancestor", 0)) is not int or repo.get("ancestor", 0) < 0:
        yield ".ancestor", f"ancestor: expected a number that is not negative, found {as_written(repo['ancestor'])}"


def _url(repo: Mapping[str, Any]) -> str:
    source = repo.get("source")
    named = repo.get("repo") or (source.get("url", source.get("path")) if isinstance(source, dict) else None)
    if not isinstance(named, str):
        return ""
    plain = named.count("/") == 1 and ":" not in named and not named.startswith((".", "/", "~"))
    return _GITHUB.format(named) if plain else named


def _commit(repo: Mapping[str, Any]) -> str:
    checkout = repo.get("checkout") if isinstance(repo.get("checkout"), dict) else {}
    base_commit = repo.get("base_commit", repo.get("commit", (checkout or {}).get("ref")))
    return "HEAD" if base_commit is None else str(base_commit)


def _repo(repo: Mapping[str, Any]) -> dict[str, Any]:
    checkout = repo.get("checkout") if isinstance(repo.get("checkout"), dict) else {}
    return {
        "path": repo["path"],
        "url": _url(repo),
        "commit": _commit(repo),
        "ancestor": repo.get("ancestor", (checkout or {}).get("ancestor", 0)),
        "sparse": [str(path) for path in repo.get("sparse") or ()],
    }


def _problems_of_hooks(hooks: Any) -> Iterator[tuple[str, str]]:
    if hooks is None:
        return
    if not isinstance(hooks, dict):
        yield "hooks", f"hooks: expected a mapping, found {as_written(hooks)}"
        return
    for name, hook in hooks.items():
        if name == "enabled":
            if mistake := boolean_mistake("enabled", hook):
                yield "hooks.enabled", mistake
            continue
        if name not in (*HOOKS, "on_reuse") or not isinstance(hook, dict):
            yield f"hooks.{name}", refusal(name, HOOKS)
            continue
        for key, value in hook.items():
            if key not in OF_HOOK or (key == "reset" and value not in RESETS):
                yield f"hooks.{name}.{key}", refusal(key, OF_HOOK)
        command = hook.get("command", hook.get("script"))
        if not _is_command(command) and not (command is None and "reset" in hook):
            yield f"hooks.{name}.command", f"command: expected a list of texts, or a text, found {as_written(command)}"
        if not isinstance(hook.get("cwd"), str | None):
            yield f"hooks.{name}.cwd", f"cwd: expected a folder, found {as_written(hook['cwd'])}"
        limit = hook.get("timeout_ms", hook.get("timeoutMs", 1))
        if isinstance(limit, bool) or not isinstance(limit, (int, float)) or limit <= 0:
            yield f"hooks.{name}.timeout_ms", f"timeout_ms: expected a number above 0, found {as_written(limit)}"


def _is_command(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(word, str) and word for word in value)
    return isinstance(value, str) and bool(value.strip())


def read_hooks(raw: Any, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The commands by the name of their hook, run in `folder` unless they name another. Raises InputError."""
    if mistakes := list(_problems_of_hooks(raw)):
        raise InputError([Problem("", message, key=key) for key, message in mistakes])
    if raw.get("enabled") is False:
        return {}
    hooks = {}
    for name in HOOKS:
        hook = raw.get(name, {})
        command = hook.get("command", hook.get("script"))
        if command is None:
            continue
        limit = hook.get("timeout_ms", hook.get("timeoutMs"))
        seconds = _SECONDS[name.partition("_")[0]] if limit is None else limit / 1000
        cwd = str(folder / hook["cwd"]) if hook.get("cwd") else str(folder)
        hooks[name] = [{"command": command, "cwd": cwd, "seconds": seconds}]
    return hooks


def merged_workspaces(shared: WorkspaceSettings, own: WorkspaceSettings) -> WorkspaceSettings:
    """The workspace of a case: its own settings replace those of the file."""
    return {**shared, **{key: value for key, value in own.items() if value}, "hooks": {
        **shared.get("hooks", {}), **own.get("hooks", {}),
    }}  # fmt: skip
