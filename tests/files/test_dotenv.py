"""Variables out of `.env` files."""

import os

import pytest

from evalwright.errors import InputError
from evalwright.files.dotenv import is_address, nearest_dotenv, read_dotenv, unread_lines


def test_the_first_file_wins_over_the_others_and_the_process_is_left_alone(tmp_path):
    before = dict(os.environ)
    for name, text in (("near", "DOTENV_A=1\nDOTENV_B=1"), ("far", "DOTENV_B=2\nDOTENV_C=2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".env").write_text(text)
    dotenv = read_dotenv([tmp_path / "near", tmp_path / "far"])
    assert dotenv == {"DOTENV_A": "1", "DOTENV_B": "1", "DOTENV_C": "2"}
    assert os.environ == before


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("DOTENV_X=plain", "plain"),
        ("\ufeffDOTENV_X=after a mark", "after a mark"),
        ("export DOTENV_X = spaced  ", "spaced"),
        ("DOTENV_X='quoted # so'", "quoted # so"),
        ("DOTENV_X=cut # comment", "cut"),
        ("DOTENV_X='quoted # so'  # and \"why\"", "quoted # so"),
        ("DOTENV_X='a' b'", "a' b"),
        ("DOTENV_X=''", ""),
        ("DOTENV_X='", "'"),
        ("DOTENV_X='open", "'open"),
        ("DOTENV_X=a\0b", "ab"),
        ("DOTENV_X=1\nDOTENV_X=2", "2"),
        ("# DOTENV_X=comment", None),
        ("no variable", None),
    ],
)
def test_lines_are_read_as_shells_write_them(tmp_path, line, value):
    (tmp_path / ".env").write_text(line)
    assert read_dotenv([tmp_path]).get("DOTENV_X") == value


def test_lines_that_set_no_variable_are_named_without_their_text(tmp_path):
    good, odd = tmp_path / "good", tmp_path / "odd"
    good.write_text("# comment\n\nexport A=1\nB=\n")
    odd.write_text('A=1\nKEY: sk-1\nK="-----BEGIN\nabc\n"\n')
    (found,) = unread_lines([good, odd, tmp_path, tmp_path / "absent"])
    assert (found.file, found.line, found.more) == (str(odd), 2, 2)
    assert "sk-1" not in str(found)


def test_the_nearest_file_is_the_one_above(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / ".env").touch()
    (tmp_path / "a/.env").touch()
    assert nearest_dotenv(tmp_path / "a/b") == [tmp_path / "a"]


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("OPENAI_BASE_URL", "OPENAI_API_KEY"),
        ("OPENAI_API_BASE", "OPENAI_API_KEY"),
        ("ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN"),
        ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY"),
        ("AZURE_API_BASE", "AZURE_API_KEY"),
        ("GEMINI_BASE_URL", "GOOGLE_API_KEY"),
        ("LETTA_BASE_URL", "LETTA_API_KEY"),
        ("LANGFUSE_HOST", "LANGFUSE_SECRET_KEY"),
        ("AWS_ENDPOINT_URL", "AWS_SECRET_ACCESS_KEY"),
    ],
)
def test_a_file_cannot_set_the_address_for_a_key_of_the_environment(tmp_path, address, key):
    (tmp_path / ".env").write_text(f"{address}=http://127.0.0.1:1/v1\n")
    with pytest.raises(InputError) as refused:
        read_dotenv([tmp_path], {key: "sk-real"})
    (problem,) = refused.value.problems
    assert (problem.file, problem.key) == (str(tmp_path / ".env"), address)
    assert key in problem.message
    assert "sk-real" not in str(refused.value)


@pytest.mark.parametrize(
    ("lines", "environ"),
    [
        ("OPENAI_BASE_URL=http://x\nOPENAI_API_KEY=of-the-file", {}),
        ("OPENAI_BASE_URL=http://x", {"OPENAI_BASE_URL": "http://y", "OPENAI_API_KEY": "sk-real"}),
        ("OPENAI_BASE_URL=http://x", {"ANTHROPIC_API_KEY": "sk-real", "OPENAI_ORG": "me"}),
        ("OPENAI_BASE_URL=http://x", {"OPENAI_API_KEY": ""}),
        ("OPENAI_API_KEY=of-the-file", {"OPENAI_BASE_URL": "http://y"}),
        ("OPENAI_BASE_URL=", {"OPENAI_API_KEY": "sk-real"}),
        ("OPENAI_MODEL=gpt", {"OPENAI_API_KEY": "sk-real"}),
    ],
)
def test_an_address_and_its_key_may_come_from_one_place(tmp_path, lines, environ):
    (tmp_path / ".env").write_text(lines)
    assert read_dotenv([tmp_path], environ)


def test_a_key_in_both_places_is_not_sent_to_the_address_of_the_file(tmp_path):
    """The environment's goes before the file's, so it would be the one that is sent."""
    (tmp_path / ".env").write_text("OPENAI_BASE_URL=http://x\nOPENAI_API_KEY=decoy")
    with pytest.raises(InputError, match="OPENAI_API_KEY of your environment would be sent"):
        read_dotenv([tmp_path], {"OPENAI_API_KEY": "sk-real"})


def test_names_of_addresses():
    names = ("base_url", "url", "endpoint", "api_base_url", "host", "OPENAI_BASE_URL")
    assert [name for name in (*names, "api_key", "model", "urls", "hostname") if is_address(name)] == [*names]
