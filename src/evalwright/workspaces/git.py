"""Copies of git repositories, and workspaces made of them: types `git` and `git_branch`.

A copy shares the objects of its origin and nothing else: whatever is committed, branched or configured in it, the
origin stays as it is. Hooks are not run, not even those of the user's templates.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem
from evalwright.files.key_paths import as_written
from evalwright.processes import finished
from evalwright.workspaces.snapshot import Snapshots, folder_named, reads, text_in

__all__ = ["GitSnapshots", "check_out", "commit_of", "git", "git_branch", "git_workspace"]

_PATIENCE = 300
"""Seconds that one git command may take."""
# Cells must not depend on the user's settings: no hooks, and clones of local repositories whatever the system's default
# is. No garbage collection in the background, which would write to the folder while it is compared.
_SETTINGS = ("core.hooksPath=/dev/null", "advice.detachedHead=false", "protocol.file.allow=always", "gc.auto=0")
_WHO = {"GIT_AUTHOR_NAME": "evalwright", "GIT_AUTHOR_EMAIL": "evalwright@localhost"}
_WHO |= {name.replace("AUTHOR", "COMMITTER"): value for name, value in _WHO.items()}


@reads("repo_path", "branch", "copy_from", "init_git", "base_path")
def git_branch(config: Mapping[str, Any], suite_folder: Path) -> GitSnapshots:
    """The same as `git`; artifacts name the type that the suite uses."""
    workspace = git_workspace(config, suite_folder)
    workspace.kind = "git_branch"
    return workspace


@reads("repo_path", "branch", "copy_from", "init_git", "base_path")
def git_workspace(config: Mapping[str, Any], suite_folder: Path) -> GitSnapshots:
    """A clean copy of a repository at a commit, or of a folder that becomes a repository.

    `repo_path` with `branch` (or a tag, a commit; default HEAD), or `copy_from`, a folder; `base_path`: where the
    copies are made; `init_git: false` rejects a `copy_from` that is not a repository yet.
    """
    problems: list[Problem] = []
    repo = folder_named("repo_path", config, suite_folder, problems)
    copy_from = folder_named("copy_from", config, suite_folder, problems)
    branch, base_path = text_in("branch", config, problems), text_in("base_path", config, problems)
    if config.get("repo_path") is not None and config.get("copy_from") is not None:
        problems.append(Problem("", "'repo_path' and 'copy_from' cannot both be given", key="copy_from"))
    if branch is not None and config.get("repo_path") is None:
        problems.append(Problem("", "'branch' needs a 'repo_path'", key="branch"))
    init = config.get("init_git", True)
    if not isinstance(init, bool):
        problems.append(Problem("", f"'init_git' must be true or false, found {as_written(init)}", key="init_git"))
    elif copy_from is not None and not init and not (copy_from / ".git").exists():
        problems.append(
            Problem("", f"{str(copy_from)!r} is not a git repository, and 'init_git' is false", key="init_git")
        )
    commit = ""
    if repo is not None and not problems:
        commit = commit_of(repo, branch or "HEAD")
    if problems:
        raise InputError(problems)
    return GitSnapshots(copy_from, Path(base_path).expanduser() if base_path else None, repo, commit)


class GitSnapshots(Snapshots):
    """Copies of a repository at one commit; `.git` is there for the system, but is not compared."""

    kind = "git"
    without: frozenset[str] = frozenset({".git"})

    def __init__(self, copy_from: Path | None, base: Path | None, repo: Path | None, commit: str) -> None:
        super().__init__(copy_from, base)
        self._repo, self._commit = repo, commit

    def seed(self, into: Path) -> None:
        if self._repo is not None:
            check_out(self._repo, self._commit, into)
            return
        super().seed(into)
        if not (into / ".git").exists():
            git(into, "init", "--quiet", "--template=")
            git(into, "add", "--all", "--force")
            git(into, "commit", "--quiet", "--allow-empty", "--no-gpg-sign", "--message", "what the cell begins with")


def commit_of(repo: Path, name: str) -> str:
    """The commit that a branch, tag or hash names. Raises InputError at `branch`, or at `repo_path`."""
    try:
        git(repo, "rev-parse", "--git-dir")
    except InputError as error:
        raise InputError(Problem("", f"{str(repo)!r} is not a git repository: {error}", key="repo_path")) from None
    for candidate in (name, f"origin/{name}"):  # in a clone, most branches exist only as the origin's
        try:
            return git(repo, "rev-parse", "--verify", "--quiet", "--end-of-options", candidate + "^{commit}")
        except InputError:
            continue
    branches = git(repo, "for-each-ref", "--count=20", "--format=%(refname:short)", "refs/heads").split()
    choices = f" (branches: {', '.join(branches)})" if branches else ""
    raise InputError(Problem("", f"{str(repo)!r} has no branch, tag or commit {name!r}{choices}", key="branch"))


def check_out(repo: Path, commit: str, into: Path) -> None:
    """Make a copy of a repository at a commit. Raises InputError."""
    git(repo, "clone", "--quiet", "--shared", "--no-checkout", "--template=", str(repo.resolve()), str(into))
    git(into, "checkout", "--quiet", "--detach", commit)
    git(into, "remote", "remove", "origin")  # so that a system cannot push to the user's repository


def git(folder: Path, *words: str) -> str:
    """The output of a git command, without the last line end. Raises InputError with git's message."""
    # GIT_DIR and the like, as hooks and editors set them, would send the command to another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {**_WHO, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    try:
        done = finished(["git", *settings, "-C", str(folder), *words], env=environment, patience=_PATIENCE)
    except FileNotFoundError:
        raise InputError("git is not installed, or not in the PATH") from None
    except TimeoutError:
        raise InputError(f"git {words[0]}: no end within {_PATIENCE} seconds") from None
    except OSError as error:
        raise InputError(f"git {words[0]}: {error}") from None
    if done.exit_code != 0:
        message = done.stderr.kept.decode(errors="replace").strip() or done.how()
        raise InputError(f"git {words[0]}: {message[:1000]}")
    return done.stdout.kept.decode(errors="replace").strip()
