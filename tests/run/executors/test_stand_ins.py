"""What a system finds in its worker in place of prints and models."""

from __future__ import annotations

import asyncio

import pytest

from evalwright.errors import TargetError
from evalwright.model.chat import EmbeddingRequest
from evalwright.run.executors.stand_ins import ModelsOfRun, Prints


def printed(*texts: str) -> list[str]:
    """What is shown of the texts."""
    shown: list[str] = []
    prints = Prints(shown.append)
    assert [prints.write(text) for text in texts] == [len(text) for text in texts]
    return shown


def test_lines_are_shown_whole() -> None:
    assert printed("on", "e\ntwo\nth", "ree\n", "four") == ["one\ntwo", "three"]


def test_a_line_without_end_is_shown_once_it_has_more_than_64_kib() -> None:
    line = "x" * (64 << 10)
    assert printed(line) == []
    assert printed(line, "y") == [line + "y"]
    assert printed(line, "y", "next\n") == [line + "y", "next"]


@pytest.mark.parametrize("more", ["", "over"])
def test_ten_mebibytes_are_shown(more: str) -> None:
    line = "x" * ((1 << 20) - 1)
    shown = printed(*[line + "\n"] * 9, line + more + "\n", "more\n")
    assert shown == [line] * 9 + [line + "\n(what is printed from here on is left out)"]


def test_models_are_only_asked_to_chat() -> None:
    models = ModelsOfRun(lambda _: None)
    with pytest.raises(TargetError, match="cannot ask for embeddings"):
        asyncio.run(models.embed(EmbeddingRequest("m", ["text"])))
    with pytest.raises(TargetError, match="cannot ask for moderation"):
        asyncio.run(models.moderate("m", "text"))
    assert models.price("m") is None
