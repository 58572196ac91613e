"""Which values of an authored document are credentials, by the key they stand under."""

import pytest

from evalwright.files.credentials import credentials, is_credential, secret_parts, without_credentials

URL = "https://hooks.example/T0/B1/abcdef123456"


@pytest.mark.parametrize(
    ("document", "found"),
    [
        ({"api_key": "k1"}, ["k1"]),
        ({"api_key": None}, []),
        ({"api_key_env": "MY_KEY", "token_limit": 5}, []),
        ({"systems": [{"auth": {"type": "bearer", "token": "t1"}}]}, ["t1"]),
        ({"auth": "basic"}, []),
        ({"secrets": ["s1", {"kind": "x", "of": "s2"}]}, ["s1", "s2"]),
        ({"type": "webhook", "url": URL}, [URL]),
        ({"type": "http", "url": URL}, []),
        ({"dsn_url": "postgres://me:pw1@host/db"}, ["pw1"]),
        ({"params": {"key": "k1", "sig": "s1", "page": "2"}}, ["k1", "s1"]),
        ({"query_params": {"more": {"password": "p1"}}}, ["p1"]),
        ({"other": {"key": "k1"}}, []),
        ({"env": {"DTOKEN": "t1", "ShopKey": "k1", "TOWN": "Bonn", "PROXY": "http://me:p1@host"}}, ["t1", "k1", "p1"]),
        ({"session_token_v2": "t1", "session_page_v2": "p", "client_key_2": "k1", "client_page_2": "p"}, ["t1", "k1"]),
        ({"systems": [{"config": {"smtp_pass": "p1"}}]}, ["p1"]),
        ({"evaluators": [{"config": {"smtp_pass": "p1"}}]}, []),
        ({"evaluators": [{"config": {"password": "p1"}}]}, ["p1"]),
        ({"providers": ["https://me:p1@host/x?api_key=k1"]}, ["p1", "k1"]),
        ({"providers": [{"https://me:p1@host/x": {"config": {}}}]}, ["p1"]),
        ({"params": [{"token": "t1"}, "page"], "env": ["A", "B"]}, ["t1"]),
        ({"design_token_2": "red", "bearer_token_2": "t1"}, ["t1"]),
        ({"headers": {"x-authtoken": "t1", "x-author": "Ada"}}, ["t1"]),
        ({"systems": [{1: "one", "config": {2: "two", "pass": "p1"}}]}, ["p1"]),
    ],
)
def test_what_stands_under_a_credentials_key_is_one(document, found):
    assert [value for _, value in credentials(document)] == found


def test_a_name_made_of_an_address_shows_no_secret() -> None:
    assert without_credentials("https://me:p%3D1@host/p1?key=k1&page=2") == "https://me:***@host/p1?key=***&page=2"
    assert without_credentials("openai:gpt-4o") == "openai:gpt-4o"


def test_what_basic_sends_is_secret_as_written_decoded_and_in_its_halves() -> None:
    assert [*secret_parts("Basic bWU6cHcx")] == ["bWU6cHcx", "me:pw1", "me", "pw1"]
    assert [*secret_parts("Bearer bWU6cHcx")] == ["bWU6cHcx"]


def test_numbers_and_switches_are_credentials_only_under_the_names_that_evalh_masks() -> None:
    assert [is_credential("secret", value) for value in ("s1", 5, 0.5, True)] == [True, False, False, False]
    assert is_credential("api_key", 12345)


def test_lines_of_a_key_are_secrets_from_16_characters() -> None:
    assert [*secret_parts(f"{'a' * 15}\n {'b' * 16} \n{'c' * 17}")] == ["b" * 16, "c" * 17]


def test_the_path_of_a_secret_address_is_a_secret_of_two_parts_and_eight_characters() -> None:
    paths = ("https://h/ab/cdef", "https://h/ab/cde", "https://h/abcdefgh", "https://h/ab/cd/efg")
    assert [[*secret_parts(path)] for path in paths] == [["/ab/cdef"], [], [], ["/ab/cd/efg"]]
