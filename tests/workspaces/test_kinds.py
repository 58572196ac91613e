"""The kinds of workspaces: what each cell begins with, what is told of it, and what is refused."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evalwright.errors import InputError
from evalwright.files.temporary import PREFIX
from evalwright.model.snapshot import Case
from evalwright.registry import load

CASE = Case("c", {})


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """The system's temporary folder of a test."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    return place


@pytest.fixture
def opened():
    """Opens a workspace of a kind; all are closed at the end."""
    made = []

    def workspace(kind, config, folder):
        loaded = load("workspaces", kind)(config, folder)
        made.append(loaded)
        loaded.open()
        return loaded

    yield workspace
    for found in made:
        found.close()


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "suite" / "project"
    (folder / "sub").mkdir(parents=True)
    (folder / "calc.py").write_text("old\n")
    (folder / "sub" / "keep.md").write_text("keep\n")
    (folder / "link").symlink_to("calc.py")
    return folder


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "suite" / "repo"
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "calc.py").write_text("main\n")
    commit(folder)
    git(folder, "checkout", "--quiet", "-b", "feature")
    (folder / "calc.py").write_text("feature\n")
    (folder / "link").symlink_to("calc.py")
    commit(folder)
    git(folder, "checkout", "--quiet", "main")
    return folder


def git(folder, *words):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    words = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", str(folder), *words]
    return subprocess.run(words, env=environment, check=True, capture_output=True, text=True).stdout.strip()


def commit(folder):
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "x")


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def test_each_cell_gets_a_fresh_copy_that_is_compared_and_removed(project, opened, tmp_path, temporary):
    workspace = opened("tempdir_snapshot", {"copy_from": "project"}, project.parent)
    first, second = workspace.prepare(CASE, 0), workspace.prepare(CASE, 0)
    assert names(first.path) == ["calc.py", "sub/keep.md"]
    (first.path / "calc.py").write_text("new\n")
    (first.path / "sub" / "keep.md").unlink()
    (first.path / "added").write_text("x")
    changes = first.collect(tmp_path / "artifact", None)
    assert (changes.diff.added, changes.diff.modified, changes.diff.removed) == (
        ["added"],
        ["calc.py"],
        ["sub/keep.md"],
    )
    assert list(changes.before_manifest.files) == ["calc.py", "sub/keep.md"]
    assert names(tmp_path / "artifact") == [
        "after/added",
        "after/calc.py",
        "before/calc.py",
        "before/sub/keep.md",
        "diff.txt",
    ]
    assert "-old\n+new\n" in (tmp_path / "artifact" / "diff.txt").read_text()
    first.remove()
    assert not first.path.exists()
    assert (second.path / "calc.py").read_text() == "old\n"
    workspace.close()
    assert list(temporary.iterdir()) == []


def test_all_cells_of_a_run_begin_alike_although_the_folder_changes_meanwhile(project, opened, tmp_path):
    workspace = opened("tempdir_snapshot", {"copy_from": str(project)}, tmp_path)
    (project / "calc.py").write_text("somebody edits\n")
    assert (workspace.prepare(CASE, 0).path / "calc.py").read_text() == "old\n"


def test_without_a_folder_to_copy_each_cell_begins_with_nothing(opened, tmp_path):
    assert list(opened("tempdir_snapshot", {}, tmp_path).prepare(CASE, 0).path.iterdir()) == []


def test_workspaces_lie_below_base_path(opened, tmp_path):
    workspace = opened("tempdir_snapshot", {"base_path": str(tmp_path / "new" / "base")}, tmp_path)
    assert workspace.prepare(CASE, 0).path.is_relative_to((tmp_path / "new" / "base").resolve())


def test_a_system_that_makes_its_folder_unusable_leaves_nothing_behind(opened, tmp_path, temporary):
    workspace = opened("tempdir_snapshot", {}, tmp_path)
    prepared = workspace.prepare(CASE, 0)
    deep = prepared.path
    os.chdir(deep)
    try:
        for _ in range(1500):
            Path("d").mkdir()
            os.chdir("d")
    finally:
        os.chdir(tmp_path)
    (prepared.path / "closed").mkdir()
    (prepared.path / "closed" / "file").write_text("x")
    (prepared.path / "closed").chmod(0)
    changes = prepared.collect(tmp_path / "artifact", None)
    assert any("deep" in why for why in changes.left_out.values())
    prepared.remove()
    workspace.close()
    assert list(temporary.iterdir()) == []


def test_what_a_killed_run_left_is_removed_by_the_next_and_what_a_living_one_has_is_not(opened, tmp_path, temporary):
    program = (
        "import os, signal, tempfile; tempfile.tempdir = {!r};"
        "from evalwright.files.temporary import TemporaryFolder; TemporaryFolder();"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    died = subprocess.run([sys.executable, "-c", program.format(str(temporary))], check=False)
    assert died.returncode == -signal.SIGKILL
    [left] = temporary.iterdir()
    assert left.name.startswith(PREFIX)
    living = opened("tempdir_snapshot", {}, tmp_path).prepare(CASE, 0)
    assert not left.exists()
    opened("tempdir_snapshot", {}, tmp_path)
    assert living.path.exists()


def test_a_repository_is_copied_at_a_branch_and_stays_as_it_is(repository, opened, tmp_path):
    before = git(repository, "for-each-ref"), git(repository, "status", "--porcelain"), names(repository)
    workspace = opened("git_branch", {"repo_path": "repo", "branch": "feature"}, repository.parent)
    prepared = workspace.prepare(CASE, 0)
    assert (prepared.path / "calc.py").read_text() == "feature\n"
    assert git(prepared.path, "status", "--porcelain") == ""
    (prepared.path / "calc.py").write_text("committed\n")
    git(prepared.path, "checkout", "--quiet", "-b", "mine")
    commit(prepared.path)
    assert git(prepared.path, "remote") == ""
    changes = prepared.collect(tmp_path / "artifact", None)
    assert changes.diff.modified == ["calc.py"]
    assert list(changes.before_manifest.files) == ["calc.py"]
    assert names(tmp_path / "artifact") == ["after/calc.py", "before/calc.py", "diff.txt"]
    workspace.close()
    assert (git(repository, "for-each-ref"), git(repository, "status", "--porcelain"), names(repository)) == before
    assert git(repository, "worktree", "list").count("\n") == 0


@pytest.mark.parametrize("branch", ["feature", "main", "HEAD", "tag", "hash"])
def test_a_branch_may_be_a_tag_or_a_commit(repository, opened, branch):
    git(repository, "tag", "tag", "feature")
    name = git(repository, "rev-parse", "feature") if branch == "hash" else branch
    workspace = opened("git", {"repo_path": str(repository), "branch": name}, repository.parent)
    expected = "main\n" if branch in ("main", "HEAD") else "feature\n"
    assert (workspace.prepare(CASE, 0).path / "calc.py").read_text() == expected


def test_hooks_of_a_repository_are_not_run(repository, opened, tmp_path):
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    opened("git", {"repo_path": str(repository)}, tmp_path).prepare(CASE, 0)
    assert not (tmp_path / "ran").exists()


def test_a_plain_folder_becomes_a_repository_with_one_commit(project, opened):
    prepared = opened("git", {"copy_from": "project"}, project.parent).prepare(CASE, 0)
    assert git(prepared.path, "log", "--format=%an %s") == "evalwright what the cell begins with"
    assert git(prepared.path, "status", "--porcelain") == ""
    assert not (project / ".git").exists()


@pytest.mark.parametrize("kind", ["tempdir_snapshot", "git", "git_branch", "docker", "docker_volume"])
def test_artifacts_tell_the_kind_by_the_name_that_the_suite_uses(kind, tmp_path):
    assert load("workspaces", kind)({}, tmp_path).kind == kind


REFUSED = {
    "folder that is not there": (
        "tempdir_snapshot",
        {"copy_from": "nowhere"},
        {"copy_from": "folder 'nowhere' not found"},
    ),
    "copy_from a file": ("tempdir_snapshot", {"copy_from": "project/calc.py"}, {"copy_from": "not found"}),
    "no texts": ("tempdir_snapshot", {"copy_from": 3, "base_path": []}, {"copy_from": "string", "base_path": "string"}),
    "name too long": ("tempdir_snapshot", {"copy_from": "x" * 5000}, {"copy_from": "not found"}),
    "no repository": ("git", {"repo_path": "project"}, {"repo_path": "not a git repository"}),
    "no such branch": ("git", {"repo_path": "repo", "branch": "featur"}, {"branch": "branches: feature, main"}),
    "branch like an option": ("git", {"repo_path": "repo", "branch": "--help"}, {"branch": "no branch"}),
    "branch of nothing": ("git", {"branch": "main"}, {"branch": "repo_path"}),
    "both": ("git", {"repo_path": "repo", "copy_from": "project"}, {"copy_from": "both"}),
    "init_git": ("git", {"copy_from": "project", "init_git": "no"}, {"init_git": "true or false"}),
    "not to be made a repository": (
        "git",
        {"copy_from": "project", "init_git": False},
        {"init_git": "not a git repository"},
    ),
    "docker": ("docker", {"copy_from": "nowhere"}, {"copy_from": "not found"}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_mistakes_are_reported_by_key_before_anything_runs(name, project, repository):
    kind, config, expected = REFUSED[name]
    with pytest.raises(InputError) as refused:
        load("workspaces", kind)(config, project.parent)
    told = {problem.key: problem.message for problem in refused.value.problems}
    assert told.keys() == expected.keys()
    assert all(words in told[key] for key, words in expected.items())


STAND_IN = """#!{python}
# stands in for the docker command where there is no engine: knows `version` and volumes, which are files in a folder
import sys
from pathlib import Path
words, volumes = sys.argv[1:], Path({volumes!r})
if words[0] == "version":
    print("27.0")
elif words[:2] == ["volume", "create"]:
    device = next(word for word in words if word.startswith("device=")).removeprefix("device=")
    (volumes / words[-1]).write_text(device)
elif words[:3] == ["volume", "rm", "--force"]:
    (volumes / words[-1]).unlink()
else:
    sys.exit(f"unknown: {{words}}")
"""


def test_a_docker_workspace_is_a_folder_with_a_volume_of_its_name(project, opened, tmp_path, monkeypatch):
    volumes, programs = tmp_path / "volumes", tmp_path / "bin"
    volumes.mkdir()
    programs.mkdir()
    (programs / "docker").write_text(STAND_IN.format(python=sys.executable, volumes=str(volumes)))
    (programs / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    prepared = opened("docker_volume", {"copy_from": "project"}, project.parent).prepare(CASE, 0)
    [volume] = volumes.iterdir()
    assert (volume.name, volume.read_text()) == (prepared.path.name, str(prepared.path))
    (prepared.path / "new").write_text("x")
    assert prepared.collect(tmp_path / "artifact", None).diff.added == ["new"]
    prepared.remove()
    assert list(volumes.iterdir()) == []


def test_without_docker_a_docker_workspace_is_an_error_before_any_cell(opened, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="no command 'docker'"):
        opened("docker", {}, tmp_path)


def test_each_cell_has_the_files_of_its_case_alone_and_they_are_no_changes(opened, project, tmp_path):
    workspace = opened("case_files", {}, tmp_path)
    files = {"in/calc.py": str(project / "calc.py"), "sub": str(project / "sub")}
    first = workspace.prepare(Case("a", {}, extra={"workspace_files": files}), 0)
    other = workspace.prepare(CASE, 0)
    assert sorted(str(path.relative_to(first.path)) for path in first.path.rglob("*.*")) == [
        "in/calc.py",
        "sub/keep.md",
    ]
    assert list(other.path.iterdir()) == []
    (first.path / "new").write_text("x")
    (first.path / "in/calc.py").write_text("y")
    changes = first.collect(tmp_path / "kept", None)
    assert (changes.diff.added, changes.diff.modified) == (["new"], ["in/calc.py"])
    first.remove()
    assert [path for path in first.path.parent.iterdir() if path.name.startswith(first.path.name)] == []


def test_a_workspace_of_case_files_lies_in_no_repository(opened, tmp_path):
    (tmp_path / "tmp/.git").mkdir()
    with pytest.raises(InputError, match="TMPDIR"):
        opened("case_files", {}, tmp_path)
