"""Variables out of `.env` files."""

import os

import pytest

from evalwright.files.dotenv import load_dotenv, nearest_dotenv


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """What files put into the environment does not outlive the test."""
    monkeypatch.setattr(os, "environ", os.environ.copy())


def test_the_environment_wins_over_the_first_file_and_that_over_the_others(tmp_path):
    os.environ["DOTENV_A"] = "own"
    for name, text in (("near", "DOTENV_A=1\nDOTENV_B=1"), ("far", "DOTENV_B=2\nDOTENV_C=2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".env").write_text(text)
    found = load_dotenv([tmp_path / "near", tmp_path / "far"])
    assert [found[f"DOTENV_{key}"] for key in "ABC"] == ["own", "1", "2"]
    assert os.environ["DOTENV_C"] == "2"


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("DOTENV_X=plain", "plain"),
        ("export DOTENV_X = spaced  ", "spaced"),
        ("DOTENV_X='quoted # so'", "quoted # so"),
        ("DOTENV_X=cut # comment", "cut"),
        ("DOTENV_X=a\0b", "ab"),
        ("DOTENV_X=1\nDOTENV_X=2", "2"),
        ("# DOTENV_X=comment", None),
        ("no variable", None),
    ],
)
def test_lines_are_read_as_shells_write_them(tmp_path, line, value):
    (tmp_path / ".env").write_text(line)
    assert load_dotenv([tmp_path]).get("DOTENV_X") == value


def test_the_nearest_file_is_the_one_above(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / ".env").touch()
    (tmp_path / "a/.env").touch()
    assert nearest_dotenv(tmp_path / "a/b") == [tmp_path / "a"]
