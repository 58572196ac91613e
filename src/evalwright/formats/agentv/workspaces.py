"""Workspaces of AgentEvals files: the folder that a system works in, fresh for each attempt at a case."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, TargetError, in_seconds
from evalwright.files.temporary import TemporaryFolder, remove_tree
from evalwright.formats.agentv.file_changes import changes_between
from evalwright.formats.agentv.workspace_settings import WorkspaceSettings
from evalwright.model.snapshot import Case
from evalwright.processes import run_command
from evalwright.session import environment
from evalwright.workspaces.git import git

__all__ = ["Site", "Workplaces", "copy_template", "links_in"]

_LEFT_OUT = ".git"
_LAST = 2000
"""Characters from the end of stderr that are quoted."""
_NAME = re.compile(r"\{\{(\w+)\}\}")


class Site:
    """The workspace of one attempt."""

    def __init__(self, path: Path, seed: Path, settings: WorkspaceSettings, case: Case) -> None:
        self.path = path
        self._seed, self._settings, self._case = seed, settings, case

    async def changes(self) -> str:
        """What has changed since the beginning."""
        return await asyncio.to_thread(changes_between, self._seed, self.path)

    async def leave(self) -> list[str]:
        """Run the commands after the attempt. Returns what went wrong, which decides nothing."""
        try:
            await _run_hooks(self._settings, "after_each", self.path, self._case)
        except TargetError as error:
            return [str(error)]
        return []

    async def remove(self) -> None:
        await asyncio.to_thread(remove_tree, self.path)


class Workplaces:
    """Makes workspaces; the initial content is made once for all cases that ask for the same."""

    def __init__(self) -> None:
        self._root: TemporaryFolder | None = None
        self._numbers = count(1)
        self._seeds: dict[str, asyncio.Task[Path]] = {}
        self._made: list[tuple[WorkspaceSettings, Path]] = []

    async def enter(self, settings: WorkspaceSettings, case: Case) -> Site:
        """A folder as the attempt finds it. Raises TargetError of the type `workspace_error`."""
        key = json.dumps(settings, sort_keys=True)
        if key not in self._seeds:
            self._seeds[key] = asyncio.create_task(self._seed(settings))
        seed = await asyncio.shield(self._seeds[key])
        path = self._place()
        await asyncio.to_thread(shutil.copytree, seed, path, symlinks=True)
        await _run_hooks(settings, "before_each", path, case)
        began = seed
        if settings.get("hooks", {}).get("before_each"):  # what a hook did is not the system's doing
            began = self._place()
            await asyncio.to_thread(shutil.copytree, path, began, symlinks=True)
        return Site(path, began, settings, case)

    def _place(self) -> Path:
        self._root = self._root or TemporaryFolder()
        return self._root.path / f"cell-{next(self._numbers)}"

    async def _seed(self, settings: WorkspaceSettings) -> Path:
        path = self._place().with_suffix(".start")
        template = settings.get("template")
        if template is None:
            path.mkdir()
        else:
            await asyncio.to_thread(copy_template, Path(template), path)
        for repo in settings.get("repos", ()):
            await asyncio.to_thread(_clone, repo, path / repo["path"])
        await _run_hooks(settings, "before_all", path, None)
        self._made.append((settings, path))
        return path

    async def close(self) -> None:
        """Run the last commands and remove everything. Raises TargetError for a failed command."""
        try:
            wrong: list[TargetError] = []
            for settings, path in self._made:
                try:
                    await _run_hooks(settings, "after_all", path, None)
                except TargetError as error:  # the commands of the other workspaces run all the same
                    wrong.append(error)
            if wrong:
                raise TargetError("; ".join(dict.fromkeys(map(str, wrong))), "workspace_error")
        finally:
            if self._root is not None:
                await asyncio.to_thread(self._root.close)


async def _run_hooks(settings: WorkspaceSettings, name: str, workspace: Path, case: Case | None) -> None:
    """Run the commands of a hook, which get AgentV's data on stdin. Raises TargetError."""
    for hook in settings.get("hooks", {}).get(name, ()):
        values = {
            "workspace_path": str(workspace),
            "test_id": f"__{name}__" if case is None else case.id,
            "eval_run_id": workspace.parent.name,
            "case_input": None if case is None else case.extra.get("question"),
            "case_metadata": (case.metadata or None) if case is not None else None,
        }
        command = hook["command"]
        words = ["sh", "-c", command] if isinstance(command, str) else [_filled_word(word, values) for word in command]
        try:
            async with asyncio.timeout(hook["seconds"]):
                finished = await run_command(
                    words, env=environment(), cwd=hook["cwd"], stdin=json.dumps(values).encode()
                )
        except TimeoutError:
            raise _hook_error(name, f"no end within {in_seconds(hook['seconds'])}") from None
        except OSError as error:
            raise _hook_error(
                name, f"{words[0]!r} cannot be started in {hook['cwd']}: {error.strerror or error}"
            ) from None
        if finished.exit_code != 0:
            message = finished.stderr.last.decode(errors="replace")[-_LAST:].strip()
            raise _hook_error(name, f"{message} ({finished.how()})".strip())


def _filled_word(word: str, values: Mapping[str, Any]) -> str:
    def value(match: re.Match[str]) -> str:
        replacement = values.get(match[1], match[0])
        return (
            ""
            if replacement is None
            else replacement
            if isinstance(replacement, str)
            else json.dumps(replacement, ensure_ascii=False)
        )

    return _NAME.sub(value, word)


def _hook_error(name: str, why: str) -> TargetError:
    return TargetError(f"the hook {name} of the workspace failed: {why}", "workspace_error")


def _clone(repo: Mapping[str, Any], into: Path) -> None:
    """Fetch a repository at its commit. Raises TargetError."""
    try:
        into.parent.mkdir(parents=True, exist_ok=True)
        git(into.parent, "clone", "--quiet", "--no-checkout", "--template=", "--", repo["url"], str(into))
        if repo["sparse"]:
            git(into, "sparse-checkout", "set", "--", *repo["sparse"])
        name = repo["commit"] + f"~{repo['ancestor']}" * bool(repo["ancestor"])
        try:
            git(into, "checkout", "--quiet", "--detach", name)
        except InputError:
            git(into, "checkout", "--quiet", "--detach", f"origin/{name}")
    except InputError as error:
        raise TargetError(f"the repository {repo['url']} cannot be fetched: {error}", "workspace_error") from None


def copy_template(template: Path, into: Path) -> Path:
    """Copy a template into a new folder, without `.git`. Raises TargetError.

    A link that leads out of the template becomes a copy of its target: the agent must not write through it.
    """
    try:
        shutil.copytree(template, into, symlinks=True, ignore=shutil.ignore_patterns(_LEFT_OUT))
        for path in links_in(into):
            origin = template / path.relative_to(into)
            if not path.resolve().is_relative_to(into.resolve()) or os.path.isabs(path.readlink()):  # noqa: PTH117
                path.unlink()
                if os.path.isdir(origin):
                    shutil.copytree(origin, path, ignore=shutil.ignore_patterns(_LEFT_OUT))
                elif os.path.exists(origin):
                    shutil.copy2(origin, path)
    except (OSError, shutil.Error, RuntimeError) as error:
        raise TargetError(f"no workspace could be made from {str(template)!r}: {error}", "workspace_error") from None
    return into


def links_in(folder: Path) -> list[Path]:
    """The symbolic links in a folder, which are not followed."""
    return [
        Path(place, name)
        for place, folders, names in os.walk(folder)
        for name in (*folders, *names)
        if os.path.islink(os.path.join(place, name))  # noqa: PTH114, PTH118 - a call for each file
    ]
