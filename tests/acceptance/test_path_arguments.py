"""What can be no path is rejected by every command in one way, before anything is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from acceptance.projects import project

NO_PATHS = {"": "found nothing", "x" * 300: "too long for one: 'xxx", "circle": "lead in a circle: 'circle'"}
COMMANDS = [
    "init PATH", "inspect PATH", "import PATH", "merge PATH", "dataset lint PATH", "view PATH", "demo --out PATH",
    "run eval.yaml --out PATH", "run eval.yaml --replay PATH", "report RUN --out PATH", "inspect RUN --suite PATH",
    "run eval.yaml --benchmark PATH", "pixie dataset validate PATH", "letta run PATH",
]  # fmt: skip


@pytest.mark.parametrize("given", NO_PATHS, ids=["empty", "too long", "circle"])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_path(command: str, given: str, tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"})
    (tmp_path / "circle").symlink_to("circle")
    before = {*tmp_path.iterdir()}
    words = command.split()
    ended = made.evalwright(*(given if word == "PATH" else word for word in words))
    assert ended.code == 2
    assert NO_PATHS[given] in ended.err
    assert ended.err.count("\n") < 6
    if words[-2].startswith("--"):
        assert f"Invalid value for '{words[-2]}'" in ended.err
    assert {*tmp_path.iterdir()} == before


@pytest.mark.parametrize("words", ["run caf\udce9.yaml", "run eval.yaml --out caf\udce9"])
def test_a_path_that_a_run_could_not_name_is_refused_before_it_runs(tmp_path: Path, words: str) -> None:
    made = project(tmp_path, {"a": "thanks"})
    (tmp_path / "caf\udce9.yaml").write_text((tmp_path / "eval.yaml").read_text())
    before = {*tmp_path.iterdir()}
    ended = made.evalwright(*words.split())
    assert (ended.code, "caf\\udce9" in ended.err and "is not UTF-8" in ended.err) == (2, True)
    assert {*tmp_path.iterdir()} == before
