from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.formats.shared.environment import Expansion

ENVIRONMENT = {"A": "1", "EMPTY": "", "MY_KEY": "s3cr3t-abc", "PASSWORDS": "hunter2-hunter2"}


def expanded(text: str) -> Any:
    return Expansion(ENVIRONMENT).expanded(text)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("${A}", "1"),
        ("x-${A}${A}-y", "x-11-y"),
        ("${UNSET:-fallback}", "fallback"),
        ("${UNSET:-}", ""),
        ("${A:-fallback}", "1"),
        ("${EMPTY:-fallback}", ""),
        ("${UNSET:-a:-b}", "a:-b"),
    ],
)
def test_variables_are_expanded(text: str, meaning: str) -> None:
    assert expanded(text) == meaning


@pytest.mark.parametrize("text", ["$A", "${lower}", "${1A}", "${A", "$${", "{A}", "${A-b}", "${ A }"])
def test_what_is_no_reference_stays(text: str) -> None:
    assert expanded(text) == text


@pytest.mark.parametrize("text", ["${lower}", "${A-b}", "${ A }", "${a:-x}", "${MY-KEY}", "${A}${Mixed}"])
def test_what_was_meant_as_a_reference_is_noted(text: str) -> None:
    expansion = Expansion(ENVIRONMENT)
    expansion.expanded({"x": [text]})
    assert expansion.misspelt == [(("x", 0), text.removeprefix("${A}"))]


@pytest.mark.parametrize(
    "text", ["${A}", "${UNSET:-${}", "${__:-$}{lower}", "$lower", "${1}", "${#list}", "$(x)", "{lower}"]
)
def test_other_text_is_not_taken_for_one(text: str) -> None:
    expansion = Expansion(ENVIRONMENT)
    expansion.expanded(text)
    assert expansion.misspelt == []


def test_keys_and_other_types_stay() -> None:
    assert Expansion(ENVIRONMENT).expanded({"${A}": [1, None, True, {"x": "${A}"}]}) == {
        "${A}": [1, None, True, {"x": "1"}]
    }


def test_an_expanded_value_is_not_expanded_again() -> None:
    assert Expansion({"A": "${B}", "B": "2"}).expanded("${A}") == "${B}"


def test_missing_variables_are_all_told_with_their_place() -> None:
    expansion = Expansion({})
    expansion.expanded({"systems": [{"target": "${X} and ${Y}"}]})
    assert expansion.unset == [(("systems", 0, "target"), "X"), (("systems", 0, "target"), "Y")]


def test_without_an_environment_nothing_is_expanded() -> None:
    assert Expansion(None).expanded(["${A}", "${B:-c}"]) == ["${A}", "${B:-c}"]


@given(st.text("${}ABab_:- \n"))
def test_expansion_only_ever_takes_references_away(text: str) -> None:
    expansion = Expansion({"A": "", "AB": "", "B": ""})
    assert len(expansion.expanded(text)) <= len(text)


@given(st.text(st.characters(exclude_characters="$")))
def test_text_without_a_dollar_stays(text: str) -> None:
    assert expanded(text) == text


def secrets(document: dict[str, Any]) -> dict[str, str]:
    expansion = Expansion(ENVIRONMENT)
    return expansion.secrets(expansion.expanded(document))


def test_a_variable_with_a_telling_name_is_secret_wherever_it_lands() -> None:
    assert secrets({"metadata": ["x ${MY_KEY} y"], "b": "${A}"}) == {"MY_KEY": "s3cr3t-abc"}


def test_every_variable_of_a_system_is_secret() -> None:
    expansion = Expansion({"WORD": "harmless", "PIN": "4711", "SHORT": "abc", "FLAG": "true", "FOLDER": "/"})
    document = {name: f"${{{name}}}" for name in ("WORD", "PIN", "SHORT", "FLAG", "FOLDER")}
    found = expansion.secrets(expansion.expanded({"systems": [document]}))
    assert found == {"WORD": "harmless", "PIN": "4711"}


@pytest.mark.parametrize(
    "document",
    [
        {"metadata": {"commit": "${WORD}"}},
        {"eval": {"name": "${WORD}"}},
        {"dataset": {"path": "${WORD}/cases.yaml"}},
        {"output": [{"type": "local_files", "path": "${WORD}/runs"}]},
        {"systems": [{"name": "v-${WORD}", "model": "${WORD}"}]},
    ],
)
def test_a_variable_that_is_meant_to_be_read_is_no_secret(document: dict[str, Any]) -> None:
    expansion = Expansion({"WORD": "harmless"})
    assert expansion.secrets(expansion.expanded(document)) == {}


def test_the_variables_of_a_file_that_is_read_later_are_known_ahead() -> None:
    expansion = Expansion({"WORD": "harmless", "OTHER": "unused-one"})
    expansion.learn_from(["{}", '{"evaluators": [{"config": {"a": "x ${WORD} ${MISSING}"}}]}'])
    assert expansion.secrets({}) == {"WORD": "harmless"}
    assert expansion.unset == []


def test_a_variable_that_nothing_uses_is_not_listed() -> None:
    assert secrets({"a": "${A}"}) == {}


def test_a_default_is_no_secret() -> None:
    assert secrets({"a": "${OTHER_KEY:-development}"}) == {}


def test_a_url_with_a_password_is_secret_under_any_name() -> None:
    url = "postgres://me:hunter2@db/x"
    expansion = Expansion({"DATABASE": url})
    assert expansion.secrets(expansion.expanded({"a": "${DATABASE}"})) == {"DATABASE": url}


@pytest.mark.parametrize(
    "key",
    [
        *("api_key", "MY_TOKEN", "client_secret", "password", "Authorization", "x-api-key", "token", "secret", "pass"),
        *("accessKey", "apiKey", "APIKey", "credentials", "private_key_pem", "db_pass", "refreshToken", "passphrase"),
        *("auth", "basic_auth", "jwt", "Cookie", "Ocp-Apim-Subscription-Key", "aws_secret_access_key", "secretValue"),
    ],
)
def test_a_literal_under_a_credential_key_is_secret(key: str) -> None:
    assert secrets({"systems": [{key: "literal"}]}) == {key: "literal"}


@pytest.mark.parametrize(
    "key",
    [
        *("author", "max_tokens", "tokens.input", "thinking_tokens", "keyboard", "authors", "api_key_env", "key"),
        *("token_limit", "password_file", "secret_name", "auth_type", "authorization_url", "compass", "passed"),
    ],
)
def test_a_key_that_only_sounds_like_a_credential_is_none(key: str) -> None:
    assert secrets({"systems": [{key: "literal"}]}) == {}


def test_every_text_below_a_credential_key_is_secret() -> None:
    assert set(secrets({"password": {"old": "one-one", "new": ["two-two"]}}).values()) == {"one-one", "two-two"}


def test_two_credentials_of_one_name_are_both_secret() -> None:
    systems = [{"api_key": "first-key"}, {"api_key": "second-key"}]
    assert set(secrets({"systems": systems}).values()) == {"first-key", "second-key"}


def test_a_verdict_in_an_evaluator_is_no_credential() -> None:
    assert secrets({"evaluators": [{"config": {"labels": {"pass": "looks right"}}}]}) == {}


def test_how_a_service_is_logged_in_to_is_no_secret() -> None:
    document = {"systems": [{"auth": {"type": "bearer-with-refresh", "token": "tok-4711"}, "authorization": "Basic"}]}
    assert secrets(document) == {"auth": "tok-4711"}


def test_a_key_of_a_query_is_secret() -> None:
    assert secrets({"systems": [{"query_params": {"key": "k-123456", "page": "12345"}}]}) == {"key": "k-123456"}


def test_what_a_basic_header_with_a_variable_says_is_secret() -> None:
    pair = base64.b64encode(b"ann4711:hunter2").decode()
    expansion = Expansion({"PAIR": pair})
    found = expansion.secrets(expansion.expanded({"headers": {"Authorization": "Basic ${PAIR}"}}))
    assert found.pop("PAIR") == pair
    assert set(found.values()) == {"ann4711:hunter2", "ann4711", "hunter2"}


def test_a_literal_beside_a_variable_in_an_address_is_secret() -> None:
    expansion = Expansion({"HOST_NAME": "db.example"})
    found = expansion.secrets(expansion.expanded({"systems": [{"endpoint": "https://me:literal-pw@${HOST_NAME}/"}]}))
    assert found == {"HOST_NAME": "db.example", "endpoint": "literal-pw"}


def test_a_header_around_a_secret_variable_is_masked_by_the_variable() -> None:
    assert secrets({"headers": {"Authorization": "Bearer ${MY_KEY}"}}) == {"MY_KEY": "s3cr3t-abc"}


ADDRESS = "https://me:hunter2%21@api.example/x?api_key=k-123456&keyword=refund&q=token&access_token=t%2Fabcdef#p=1"


def test_passwords_and_keys_in_an_address_are_secret() -> None:
    found = set(secrets({"systems": [{"endpoint": f"see {ADDRESS}"}]}).values())
    assert found == {"hunter2%21", "hunter2!", "k-123456", "t%2Fabcdef", "t/abcdef"}


def test_a_query_outside_of_an_address_is_no_secret() -> None:
    assert secrets({"prompt": "what is ?api_key=k-123456"}) == {}


def test_the_address_of_a_webhook_is_secret_as_a_whole() -> None:
    address = "https://hooks.example/T00/B00/abc"
    assert secrets({"output": [{"type": "webhook", "url": address}, {"type": "otel", "url": address}]}) == {
        "url": address
    }


def test_where_secrets_stand_is_known() -> None:
    expansion = Expansion(ENVIRONMENT)
    expansion.expanded({"systems": [{"name": "v-${MY_KEY}", "x": "${A}"}]})
    assert expansion.secret == [(("systems", 0, "name"), "MY_KEY")]
