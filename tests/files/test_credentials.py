"""Which values of an authored document are credentials, by the key they stand under."""

import pytest

from evalwright.files.credentials import credentials, secret_parts, without_credentials

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
    ],
)
def test_what_stands_under_a_credentials_key_is_one(document, found):
    assert [value for _, value in credentials(document)] == found


def test_a_name_made_of_an_address_shows_no_secret() -> None:
    assert without_credentials("https://me:p%3D1@host/p1?key=k1&page=2") == "https://me:***@host/p1?key=***&page=2"
    assert without_credentials("openai:gpt-4o") == "openai:gpt-4o"


def test_lines_of_a_key_are_secrets_from_16_characters() -> None:
    assert [*secret_parts(f"{'a' * 15}\n {'b' * 16} \n{'c' * 17}")] == ["b" * 16, "c" * 17]


def test_the_path_of_a_secret_address_is_a_secret_of_two_parts_and_eight_characters() -> None:
    paths = ("https://h/ab/cdef", "https://h/ab/cde", "https://h/abcdefgh", "https://h/ab/cd/efg")
    assert [[*secret_parts(one)] for one in paths] == [["/ab/cdef"], [], [], ["/ab/cd/efg"]]
