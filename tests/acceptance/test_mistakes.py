"""What users do wrong most often, and that evalwright says where, what, and what helps."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from acceptance.mistaken import Mistake, mistakes
from evalwright.cli import main

ALL = list(mistakes())
NEVER = ("Traceback", "Internal error")
FROM_OUTSIDE = ("EVALWRIGHT_", "OPENAI_", "ANTHROPIC_", "PIXIE_", "SHOP_")


@pytest.fixture(autouse=True)
def _process(tmp_path: Path) -> Iterator[None]:
    """A command ends its process, and with it what it does with signals and imports; here the process goes on."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    modules = {*sys.modules}
    yield
    for name in sys.modules.keys() - modules:  # a later project must not find what only this one has
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("mistake", ALL, ids=lambda one: f"{one.table}: {one.name}")
def test_a_mistake_is_explained(
    mistake: Mistake, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith(FROM_OUTSIDE)]:
        monkeypatch.delenv(name)
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    for name, value in mistake.env.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "project"
    folder.mkdir()
    mistake.write(folder)
    monkeypatch.chdir(folder)

    def evalwright(words: list[str]) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(words)
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    code, out, err = mistake.made(folder, evalwright)
    said = " ".join(f"{out}\n{err}".split())
    assert code == mistake.code, said
    assert [text for text in (*mistake.place, *mistake.cause, *mistake.cure) if text not in said] == [], said
    assert [text for text in (*NEVER, *mistake.never) if text in said] == []
    assert [line for line, count in Counter(err.splitlines()).items() if line.strip() and count > 1] == []


def test_each_grade_is_earned() -> None:
    """Grade 3 has texts for place, cause and cure, grade 2 for place and cause, and no mistake goes unnoticed."""
    said = {3: ("place", "cause", "cure"), 2: ("place", "cause"), 1: ("cause",)}
    assert [mistake.name for mistake in ALL if not all(getattr(mistake, part) for part in said[mistake.grade])] == []


def test_most_mistakes_come_with_a_cure() -> None:
    grades = Counter(mistake.grade for mistake in ALL)
    assert len(ALL) >= 200
    assert sum(grade * count for grade, count in grades.items()) / len(ALL) >= 2.7


def test_each_mistake_has_a_name_of_its_own() -> None:
    assert [
        name for name, count in Counter((mistake.table, mistake.name) for mistake in ALL).items() if count > 1
    ] == []
