"""Variables out of `.env` files."""

import os

import pytest

from evalwright.files.dotenv import nearest_dotenv, read_dotenv


def test_the_first_file_wins_over_the_others_and_the_process_is_left_alone(tmp_path):
    before = dict(os.environ)
    for name, text in (("near", "DOTENV_A=1\nDOTENV_B=1"), ("far", "DOTENV_B=2\nDOTENV_C=2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".env").write_text(text)
    found = read_dotenv([tmp_path / "near", tmp_path / "far"])
    assert found == {"DOTENV_A": "1", "DOTENV_B": "1", "DOTENV_C": "2"}
    assert os.environ == before


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
    assert read_dotenv([tmp_path]).get("DOTENV_X") == value


def test_the_nearest_file_is_the_one_above(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / ".env").touch()
    (tmp_path / "a/.env").touch()
    assert nearest_dotenv(tmp_path / "a/b") == [tmp_path / "a"]
