"""What a shell is offered: the script, and the words that it asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from acceptance.projects import Project, project


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Path]:
    made = project(tmp_path_factory.mktemp("made"), {"open-1": "thanks", "open-2": "thanks", "shut": "thanks"})
    return made, made.run()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(made: tuple[Project, Path], shell: str) -> None:
    ended = made[0].evalwright("completion", shell)
    assert ended.code == 0
    assert f"_EVALWRIGHT_COMPLETE={shell}_complete" in ended.out


def test_an_unknown_shell_is_refused(made: tuple[Project, Path]) -> None:
    ended = made[0].evalwright("completion", "tcsh")
    assert ended.code == 2
    assert "'bash', 'zsh', 'fish'" in ended.err


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("comp", ["plain,compare", "plain,completion"]),
        ("report x --gith", ["plain,--github"]),
        ("run eval.yaml --case open", ["plain,open-1", "plain,open-2"]),
        ("inspect RUN --case s", ["plain,shut"]),
        ("list evaluators contains_", ["plain,contains_text"]),
        ("inspect runs/", ["plain,RUN"]),
    ],
)
def test_words_are_offered(made: tuple[Project, Path], line: str, offered: list[str]) -> None:
    words = ["evalwright", *line.replace("RUN", str(made[1].relative_to(made[0].folder))).split()]
    ended = made[0].evalwright(
        COMP_WORDS=" ".join(words), COMP_CWORD=str(len(words) - 1), _EVALWRIGHT_COMPLETE="bash_complete"
    )
    run = str(made[1].relative_to(made[0].folder))
    assert ended.out.split() == [one.replace("RUN", run) for one in offered]
