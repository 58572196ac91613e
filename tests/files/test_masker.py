"""No secret leaves in any form, and what is not secret stays as it is."""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from random import Random
from urllib.parse import quote, quote_plus
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.files.masker import MASKED, Masker, looks_secret, masked_in, may_be_secret
from evalwright.files.placeholders import expand, variables_in

CANARIES = {
    f"CANARY_{number}": f"{text}{number:02d}Zq"
    for number, text in enumerate(
        [
            *(["sk-proj-A1b2C3d4"] * 10),
            *(['qu"ote\\back/'] * 10),
            *(["pässwörd ✓ %&="] * 10),
            *(["\u2028'x'\t<y>+"] * 10),
            "a???b>>>c~~~d",  # whose base64 has characters that addresses escape
        ]
    )
}
PLACES: dict[str, Callable[[str], object]] = {
    "plain": lambda s: {"final_answer": s},
    "inside text": lambda s: {"final_answer": f"the key is {s}, keep it"},
    "key": lambda s: {"detail": {s: 1}},
    "header": lambda s: {"headers": {"Authorization": f"Bearer {s}"}},
    "url query": lambda s: {"url": f"https://api.example/x?key={quote(s, safe='')}&a=1"},
    "url query with plus": lambda s: {"url": f"https://api.example/x?key={quote_plus(s)}"},
    "url query in lower case": lambda s: {"url": _lower_percent(quote(s, safe=""))},
    "userinfo": lambda s: {"url": f"https://user:{quote(s, safe='')}@api.example/"},
    "basic auth": lambda s: {"h": "Basic " + base64.b64encode(f"user:{s}".encode()).decode()},
    "basic auth, other offset": lambda s: {"h": "Basic " + base64.b64encode(f"me:{s}x".encode()).decode()},
    "repr": lambda s: {"error": repr({"key": s})},
    "repr beside both quotes": lambda s: {"error": repr(f"'\"{s}")},
    "literals": lambda s: {"error": [ascii([s]), repr(f"'{s}".encode())]},
    "shell": lambda s: {"error": [shlex.join(["curl", f"Bearer {s}"]), "+ curl '" + s.replace("'", r"'\''") + "'"]},
    "HTML": lambda s: {"page": f"<b>{s.replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')}</b>"},
    "XML": lambda s: {"page": quoteattr(s, {'"': "&quot;"}).encode("ascii", "xmlcharrefreplace").decode()},
    "hexadecimal digits": lambda s: {"body": [f"user:{s}".encode().hex(), s.encode().hex().upper()]},
    "JSON in text": lambda s: {"body": json.dumps({"key": s})},
    "JSON of Go": lambda s: {"body": _with_numbers(json.dumps(s, ensure_ascii=False), "<>&")},
    "JSON of a template": lambda s: {"body": _with_numbers(json.dumps(s), "<>&'")},
    "JSON of .NET": lambda s: {
        "body": re.sub(r"\\u....", _upper, _with_numbers(json.dumps(s), "<>&'+").replace('\\"', "\\u0022"))
    },
    "JSON in a url query": lambda s: {"url": "https://api.example/?q=" + quote(json.dumps({"key": s}))},
    "url in a url query": lambda s: {"url": "https://a.example/?next=" + quote(f"https://b.example/?k={quote(s)}")},
    "url in lower case in a url query": lambda s: {
        "url": "https://a.example/?next=" + quote(f"https://b.example/?k={_lower_percent(quote(s, safe=''))}", safe="")
    },
    "JSON in base64": lambda s: {"h": base64.b64encode(json.dumps({"key": s}).encode()).decode()},
    "base64 in a url query": lambda s: {"url": "/?auth=" + quote(base64.b64encode(s.encode()).decode(), safe="")},
    "base64 in a url query in lower case": lambda s: {
        "url": "/?auth=" + _lower_percent(quote(base64.b64encode(s.encode()).decode(), safe=""))
    },
    "ASCII JSON in JSON in text": lambda s: {"body": json.dumps(json.dumps({"key": s}))},
}


@pytest.fixture(scope="module")
def masker() -> Masker:
    return Masker(CANARIES)


def _lower_percent(text: str) -> str:
    return "".join(c.lower() if i > 0 and "%" in text[max(0, i - 2) : i] else c for i, c in enumerate(text))


def _with_numbers(text: str, characters: str) -> str:
    return "".join(f"\\u{ord(c):04x}" if c in characters else c for c in text)


def _upper(match: re.Match[str]) -> str:
    return "\\u" + match[0][2:].upper()


def _leaks(secret: str, data: str) -> bool:
    inner = [base64.b64encode(b"\0" * n + secret.encode())[4:-4].decode() for n in range(3)]
    literals = [write[1:-1] for write in (repr(secret), json.dumps(secret), ascii(secret), repr(secret.encode())[1:])]
    forms = [secret, quote(secret, safe=""), shlex.quote(secret), secret.encode().hex(), *literals, *inner]
    return any(form.casefold() in data.casefold() for form in forms)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("ascii_only", [False, True])
def test_no_canary_survives_in_a_json_line(masker: Masker, place: str, ascii_only: bool) -> None:
    for secret in CANARIES.values():
        line = json.dumps(PLACES[place](secret), ensure_ascii=ascii_only).encode() + b"\n"
        masked = masker.mask_bytes(line)
        assert MASKED in masked.decode()
        assert not _leaks(secret, json.dumps(json.loads(masked), ensure_ascii=False))


@pytest.mark.parametrize("place", PLACES)
def test_no_canary_survives_in_plain_data(masker: Masker, place: str) -> None:
    for secret in CANARIES.values():
        assert not _leaks(secret, json.dumps(masker.mask_strings(PLACES[place](secret)), ensure_ascii=False))


@given(
    secret=st.text(min_size=6, max_size=30).filter(lambda s: s.isprintable()),
    before=st.text(max_size=10),
    after=st.text(max_size=10),
)
def test_masked_lines_stay_json_and_say_nothing(secret: str, before: str, after: str) -> None:
    masker = Masker({"K": secret})
    line = json.dumps([before + secret + after, {"n": 123456, "t": True}], ensure_ascii=False)
    masked = json.loads(masker.mask_bytes(line.encode("utf-8", "surrogatepass")))
    assert MASKED in masked[0]
    assert masked[1].keys() == {"n", "t"} or secret in "nt"


@given(st.lists(st.sampled_from([*"ab-\n", "[abab-1234]", "[ab-abab-1]", "[one\nab two]"])), st.randoms())
def test_a_text_in_pieces_is_masked_as_a_whole(parts: list[str], chance: Random) -> None:
    masker, text = Masker({"A": "abab-1234", "B": "ab-abab-1", "C": "one\nab two"}), "".join(parts)
    shown, held, at = "", "", 0
    while at < len(text):
        size = chance.randint(1, 4)
        more, held = masker.mask_begun(held + text[at : at + size])
        shown, at = shown + more, at + size
    assert shown + masker.mask_text(held) == masker.mask_text(text)


@pytest.mark.parametrize(("more", "masked"), [("e", "abcde"), (" e", f"{MASKED} e"), ("", MASKED)])
def test_what_follows_a_short_secret_in_the_next_piece_says_whether_it_stands_alone(more: str, masked: str) -> None:
    masker = Masker({"A": "abcd"})
    shown, held = masker.mask_begun("say abcd")
    assert shown + masker.mask_text(held + more) == f"say {masked}"


def test_secrets_across_escapes_keep_the_line_valid() -> None:
    """The text `\\nabcdef` holds an escape whose second half looks like the beginning of the secret."""
    line = json.dumps({"a": "x\nabcdef", "b": "nabcdef"}).encode()
    assert json.loads(Masker({"K": "nabcdef"}).mask_bytes(line)) == {"a": "x\nabcdef", "b": MASKED}


def test_several_lines_are_masked_at_once() -> None:
    lines = b'{"a":"topsecret"}\n{"b":"fine"}\n'
    assert Masker({"K": "topsecret"}).mask_bytes(lines) == b'{"a":"***MASKED***"}\n{"b":"fine"}\n'


def test_what_is_beside_a_secret_is_written_as_it_was() -> None:
    masker = Masker({"KEY": "hush-hush-hush"})
    assert masker.mask_bytes('{"ä":"ö hush-hush-hush"}'.encode()) == f'{{"ä":"ö {MASKED}"}}'.encode()
    assert masker.mask_bytes(b'"\\ud83d hush-hush-hush"') == f'"\\ud83d {MASKED}"'.encode()


def test_lines_without_anything_of_a_secret_need_no_second_look() -> None:
    masker = Masker({"KEY": "hush-hush-hush"})
    assert [masker.finds(line) for line in (b'{"a":"hush"}', b'{"a":"hush-hush-hush"}', b"")] == [False, True, False]


def test_numbers_and_dates_are_left_alone() -> None:
    line = b'{"latency_ms":123456,"started_at":"2026-11-20T19:50:44.123456Z"}\n'
    assert Masker({"PIN": "123456"}).mask_bytes(line) == line


def test_kept_words_are_left_alone_only_as_a_whole() -> None:
    masker = Masker({"K": "final_answer"}, keep=["final_answer"])
    assert masker.mask_bytes(b'{"final_answer":"my final_answer"}') == b'{"final_answer":"my ***MASKED***"}'


def test_values_of_three_characters_are_no_secrets() -> None:
    assert not Masker({"K": "123"})
    assert Masker({"K": "1234"})


@pytest.mark.parametrize(
    "text",
    [
        *(
            "Qab12",
            "the pin is Qab12.",
            "pin=Qab12&x=1",
            '{"pin":"Qab12"}',
            "x\\nQab12",
            "%3DQab12%26",
            "file_Qab12.txt",
        ),
        base64.b64encode(b"Qab12").decode(),
    ],
)
def test_a_short_secret_is_masked_where_it_stands_alone(text: str) -> None:
    masker = Masker({"PIN": "Qab12"})
    line = json.dumps({"a": text}).encode()
    assert MASKED in masker.mask_text(text)
    assert b"Qab12" not in masker.mask_bytes(line)
    assert MASKED.encode() in masker.mask_bytes(line)


@pytest.mark.parametrize("text", ["production", "reprod", "pro", "1prod2", "prodé"])
def test_a_short_secret_is_not_masked_inside_a_word(text: str) -> None:
    assert Masker({"STAGE": "prod"}).mask_text(text) == text


@pytest.mark.parametrize(("secret", "text"), [("#ab1", "x#ab1"), ("ab1#", "ab1#x")])
def test_a_short_secret_with_a_sign_at_its_end_is_masked_there_whatever_is_beside_it(secret: str, text: str) -> None:
    assert Masker({"PIN": secret}).mask_text(text) == text.replace(secret, MASKED)


def test_a_short_secret_comes_back_from_its_placeholder_only() -> None:
    masker = Masker({"STAGE": "prod"})
    stored = masker.placeholders({"a": "prod and production", "b": "${x}"})
    assert stored == {"a": "${STAGE} and production", "b": "$${x}"}
    assert expand(stored, masker.secrets) == {"a": "prod and production", "b": "${x}"}


@pytest.mark.parametrize(
    ("secret", "part"),
    [
        ("Bearer tok-4711-abc", "tok-4711-abc"),
        ("Token tok-4711-abc", "tok-4711-abc"),
        ("Basic " + base64.b64encode(b"ann:hunter2").decode(), "hunter2"),
        ("Basic " + base64.b64encode(b"ann4711:hunter2").decode(), "ann4711:hunter2"),
        ("https://hooks.example/services/T000/B000/xyz123abc", "/services/T000/B000/xyz123abc"),
        ("https://hooks.example/services/T000/B000/xyz123abc", "xyz123abc"),
        ("https://ghp-4711-abc@git.example/x", "ghp-4711-abc"),
        ("https://a.example/x?token=t-4711%2Fx", "t-4711/x"),
        ("sid=abcdefgh1; theme=dark", "abcdefgh1"),
        ('{"type": "service_account", "private_key": "pem-4711-abc"}', "pem-4711-abc"),
        ("-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\n-----END KEY-----", "MIIEvQIBADANBgkqhkiG"),
    ],
)
def test_a_part_of_a_secret_is_one(secret: str, part: str) -> None:
    assert Masker({"X": secret}).mask_text(f"it said {part}!") == f"it said {MASKED}!"


KEY = "sk-proj-Zq7Lw2Xe9Rt4Yb6Nm1Vc8Kd5"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"missing: 'x'; in 'the key is {KEY[:-1]}...'", f"missing: 'x'; in 'the key is {MASKED}...'"),
        (f"HTTP 401: no such key: {KEY[:16]} (tried 5 times)", f"HTTP 401: no such key: {MASKED} (tried 5 times)"),
        (f"ended with 1: {KEY[1:]}, {KEY[-16:]}", f"ended with 1: {MASKED}, {MASKED}"),
        (f"{KEY[:20]}{KEY[:20]}", f"{KEY[:20]}{MASKED}"),
        (f"{KEY[:20]}A is another one, {KEY[:15]} too little", f"{KEY[:20]}A is another one, {KEY[:15]} too little"),
        ("https://hooks.example/services/", "https://hooks.example/services/"),
        ("You are a helpful", "You are a helpful"),
        ("word-of-four", "word-of-four"),
    ],
)
def test_half_of_a_credential_is_masked_where_it_is_cut_off(text: str, masked: str) -> None:
    address, prompt = "https://hooks.example/services/T0", "You are a helpful assistant"
    masker = Masker({"KEY": KEY, "HOOK": address, "PROMPT": prompt, "SHORT": "word-of-four"[:-1] + "x"})
    assert masker.mask_text(text) == masked
    line = json.dumps({"reason": text}).encode() + b"\n"
    assert json.loads(masker.mask_bytes(line)) == {"reason": masked}


def test_longer_secrets_go_first() -> None:
    assert Masker({"A": "secret", "B": "secret-and-more"}).mask_text("x secret-and-more x") == f"x {MASKED} x"


@pytest.mark.parametrize(
    "name",
    ["OPENAI_API_KEY", "GITHUB_TOKEN", "MySecret", "DB_PASSWORD", "SENTRY_DSN", "SLACK_WEBHOOK_URL", "BASIC_AUTH"],
)
def test_names_that_look_secret(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize("name", ["PATH", "HOME", "PWD", "OLDPWD", "LANG", "TOKENIZERS_PARALLELISM", "SSH_AUTH_SOCK"])
def test_names_that_do_not(name: str) -> None:
    assert not looks_secret(name)


def test_the_environment_gives_its_secrets() -> None:
    environ = {
        "API_KEY": "topsecret",
        "HOME": "/home/somebody",
        "USE_AUTH": "enabled",
        "MAX_TOKENS": "100000",
        "DATABASE_URL": "postgres://user:p%40ssword@db/x",
    }
    masker = Masker.of({"from suite": "suite-secret"}, environ)
    text = "topsecret /home/somebody enabled 100000 p%40ssword p@ssword suite-secret"
    assert masker.mask_text(text) == f"{MASKED} /home/somebody enabled 100000 {MASKED} {MASKED} {MASKED}"


def test_documents_lose_whole_values_under_credential_keys() -> None:
    document = {
        "api_key": "short",
        "my_token": 5,
        "A_SECRET": ["x"],
        "Password": {"nested": "x"},
        "SECRET": "kept",
        "max_tokens": 5,
        "headers": [{"Authorization": "Bearer abc", "x-api-key": "abc", "Accept": "text/html"}],
        "empty_token": None,
        "note": "uses topsecret",
    }
    assert Masker({"K": "topsecret"}).mask_document(document) == {
        "api_key": MASKED,
        "my_token": MASKED,
        "A_SECRET": MASKED,
        "Password": MASKED,
        "SECRET": MASKED,
        "max_tokens": 5,
        "headers": [{"Authorization": MASKED, "x-api-key": MASKED, "Accept": "text/html"}],
        "empty_token": None,
        "note": f"uses {MASKED}",
    }


_ENVIRON = {"A_KEY": "abc$def", "B_KEY": "$$${x}", "C_KEY": "abc$def$$${x}", "A_DATE": "2026-01-02"}
_PIECES = st.sampled_from(["$", "$$", "{", "}", "${", "A_KEY", "x", " ", *_ENVIRON.values(), "${A_KEY}"])


@given(st.lists(_PIECES).map("".join))
def test_expanding_placeholders_gives_the_text_back(text: str) -> None:
    stored = Masker(_ENVIRON).placeholders({"k": [text]})
    assert expand(stored, _ENVIRON) == {"k": [text]}
    assert "abc$def" not in stored["k"][0]


@given(st.lists(_PIECES).map("".join).filter(lambda text: "${A_KEY}" not in text))
def test_unresolved_placeholders_survive_being_stored_again(text: str) -> None:
    stored = Masker(_ENVIRON).placeholders([text])
    unresolved: dict[str, str] = {}
    read = expand(stored, {}, unresolved)
    again = Masker({}).placeholders(read, unresolved)
    assert expand(again, _ENVIRON) == [text]


def test_unresolved_placeholders_are_named() -> None:
    unresolved: dict[str, str] = {}
    assert expand({"a": "x ${MISSING_KEY}", "b": "$${LITERAL}"}, {}, unresolved) == {
        "a": "x ${MISSING_KEY}",
        "b": "${LITERAL}",
    }
    assert list(unresolved) == ["MISSING_KEY"]
    assert expand("${A_KEY} ${MISSING_KEY}", {"A_KEY": "abc"}, unresolved := {}) == "abc ${MISSING_KEY}"
    assert list(unresolved) == ["MISSING_KEY"]
    assert expand("${MISSING_KEY}", {}) == "${MISSING_KEY}"


def test_the_variables_of_placeholders_are_those_that_there_are() -> None:
    stored = {"a": "x ${A_KEY}", "b": ["$${B_KEY}", "${C_KEY:part}", "${MISSING_KEY}"]}
    environ = {"A_KEY": "1", "B_KEY": "2", "C_KEY": "3"}
    assert variables_in(stored, environ) == {"A_KEY": "1", "C_KEY": "3"}


def test_a_name_that_is_kept_gets_no_placeholder() -> None:
    masker = Masker({"A_KEY": "support-agent"}, keep=["support-agent"])
    assert masker.placeholders(["support-agent", "a support-agent"]) == ["support-agent", "a ${A_KEY}"]


def test_a_date_gets_no_placeholder_in_its_middle() -> None:
    masker = Masker({"YEAR": "2026"})
    assert masker.placeholders(["2026-11-30", "2026"]) == ["2026-11-30", "${YEAR}"]


@pytest.mark.parametrize(
    ("secret", "masked"),
    [
        ("abc", "abc xabcdefx abcd"),
        ("abcd", f"abc xabcdefx {MASKED}"),
        ("abcdef", f"abc x{MASKED}x abcd"),
    ],
)
def test_one_secret_is_masked_alone_and_within_words_only_if_it_is_long(secret: str, masked: str) -> None:
    assert masked_in("abc xabcdefx abcd", secret) == masked


def test_the_evaluator_that_a_gate_names_is_no_secret():
    assert Masker({}).mask_document({"metric_key": "polite"}) == {"metric_key": "polite"}


def test_values_of_a_suites_variables_are_masked_but_for_settings_and_paths_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hunter2").touch()
    values = ("hunter2", "/gone/hunter2", "/\0", "/\0/x", "4711", str(tmp_path), "true", "471", "")
    assert [value for value in values if may_be_secret(value)] == ["hunter2", "/gone/hunter2", "/\0/x", "4711"]


def test_a_secret_that_begins_with_another_one_gets_its_own_placeholder() -> None:
    masker = Masker({"A_KEY": "hunter2-first", "B_KEY": "hunter2-first-and-more"})
    assert masker.placeholders(["hunter2-first-and-more", "hunter2-first"]) == ["${B_KEY}", "${A_KEY}"]


def test_a_piece_of_a_text_is_masked_also_where_its_end_waits_for_the_next_one() -> None:
    masker = Masker({"LONG": "hunter2-and-more", "SHORT": "pin7"})
    assert masker.mask_begun("pin7 before hunter2-and-mor") == (f"{MASKED} before ", "hunter2-and-mor")
    assert masker.mask_begun("pin7 alone.") == (f"{MASKED} alone.", "")
