"""Commands that write files for people: killed at any change of a file, the same command makes everything once more."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest

import warm
from dying import killed_at


def ends(words: list[str], folder: Path) -> tuple[int, str]:
    ended = warm.run(["-m", "evalwright", *words], cwd=folder)
    return ended.returncode, ended.stdout + ended.stderr


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    messages = [[{"role": "user", "content": f"hi {n}"}, {"role": "assistant", "content": "yes"}] for n in (1, 2)]
    (tmp_path / "chats.jsonl").write_text("\n".join(json.dumps({"messages": one}) for one in messages))
    return tmp_path


def test_an_import_that_was_killed_is_made_by_the_same_command(recorded: Path) -> None:
    words = ["import", "chats.jsonl", "--out"]
    assert ends([*words, "whole"], recorded)[0] == 0
    for change in count(1):
        out = f"out{change}"
        if not killed_at(change, [*words, out], recorded):
            break
        was_whole = (recorded / out / "eval.yaml").exists()
        code, printed = ends([*words, out], recorded)
        assert code == (2 if was_whole else 0), printed
        assert content(recorded / out) == content(recorded / "whole")
    assert change > 5


def test_cases_of_something_else_are_not_replaced_by_an_import(recorded: Path) -> None:
    (recorded / "out").mkdir()
    (recorded / "out" / "cases.jsonl").write_text("mine\n")
    code, printed = ends(["import", "chats.jsonl", "--out", "out"], recorded)
    assert (code, content(recorded / "out")) == (2, {"cases.jsonl": b"mine\n"})
    assert "out/cases.jsonl  already exists; choose another folder" in printed


SUITE = """
eval: {name: small}
dataset: {type: yaml, path: cases.yaml}
systems: [{name: a, adapter: cli, command: [cat], stdin_template: "{{ input.user_message }}"}]
evaluators: [{name: says, type: contains_text, config: {all_of: [hi]}}]
output: [{type: local_files, path: runs}]
"""


def test_a_conversion_that_was_killed_leaves_no_half_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "eval.yaml").write_text(SUITE)
    (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: {user_message: hi}}]\n")
    words = ["convert", "eval.yaml", "--to", "agentv", "--allow-loss", "--out"]
    assert ends([*words, "whole"], tmp_path)[0] == 0
    whole = content(tmp_path / "whole")
    for change in count(1):
        out = tmp_path / f"out{change}"
        if not killed_at(change, [*words, out.name], tmp_path):
            break
        made = {name: data for name, data in content(out).items() if not name.startswith(".")}
        assert made.items() <= whole.items()
        code, printed = ends([*words, out.name], tmp_path)
        assert code == (2 if made else 0), printed
        assert bool(made) == ("already exists" in printed)
    assert change > 3


@pytest.mark.slow("starts a command seven times and kills it three times")
def test_pages_are_replaced_at_once_or_by_the_same_command(recorded: Path) -> None:
    assert ends(["import", "chats.jsonl", "--out", "suite"], recorded)[0] == 0
    assert ends(["run", "suite/eval.yaml", "--out", "runs", "-q"], recorded)[0] == 0
    words = ["view", str(next((recorded / "runs").iterdir())), "--bundle", "pages"]
    assert ends(words, recorded)[0] == 0
    whole = content(recorded / "pages")
    for change in range(1, 4):  # two renames, and the end of the old pages
        assert killed_at(change, words, recorded, "os.rename os.rmdir")
        left = content(recorded / "pages") if (recorded / "pages").exists() else whole
        assert left == whole
        code, printed = ends(words, recorded)
        assert code == 0, printed
        assert content(recorded / "pages") == whole
        assert [path.name for path in recorded.iterdir() if ".pages" in path.name] == []


def test_a_killed_init_is_completed_by_the_same_command(tmp_path: Path) -> None:
    assert ends(["init", "whole"], tmp_path)[0] == 0
    for change in count(1):
        out = tmp_path / f"out{change}"
        if not killed_at(change, ["init", out.name], tmp_path):
            break
        was_whole = len([*out.glob("[!.]*")]) == 3
        assert ends(["init", out.name], tmp_path)[0] == (2 if was_whole else 0)
        made = {name: data for name, data in content(out).items() if not name.startswith(".")}
        assert made == content(tmp_path / "whole")
    assert change > 5
