"""Bodies of responses that are not JSON, are encoded strangely or never end."""

import gzip
import json
import tracemalloc

import pytest

from evalwright.errors import TargetError
from targets.loopback import GOOD, ask, failure, reply

CAP = 10 * 2**20


@pytest.mark.parametrize(
    "body",
    [
        b"", b"  \n", b"not json", b"<html></html>", b"{'single': 1}", b'{"answer": "cut', b'{"a": 1} junk',
        b'{"a": "\xff\xfe\xc3("}', b"[" * 100_000, b'{"a": ' + b"1" * 100_000 + b"}", b"\x1f\x8b\x08\x00broken",
    ],
    ids=lambda body: repr(body[:12]),
)  # fmt: skip
def test_a_body_that_is_not_json_is_an_error_that_says_so(body):
    error = failure(reply(body))
    assert error.type == "adapter_error"
    assert "JSON" in str(error)
    assert len(str(error)) < 1_000


WITHOUT_AN_ANSWER = [None, 42, "text", [], {}, {"error": None}, {"error": True}, {"answer": None}]


@pytest.mark.parametrize("document", WITHOUT_AN_ANSWER)
def test_json_without_an_answer_is_an_error_that_says_where_it_was_looked_for(document):
    with pytest.raises(TargetError, match=r"no answer: response_mapping.final_answer \$\.answer finds"):
        ask(reply(document))


@pytest.mark.parametrize("document", WITHOUT_AN_ANSWER)
def test_json_without_an_answer_has_none_where_the_suite_allows_it(document):
    assert ask(reply(document), allow_missing=["final_answer"]).output.final_answer is None


@pytest.mark.parametrize(
    ("body", "charset"),
    [
        ('{"answer": "café"}'.encode("latin-1"), "iso-8859-1"),
        (b"\xef\xbb\xbf" + '{"answer": "café"}'.encode(), "utf-8"),
        ('{"answer": "café"}'.encode(), "iso-8859-1"),
    ],
)
def test_declared_encodings_and_byte_order_marks_are_understood(body, charset):
    answer = ask(reply(body, headers=[f"Content-Type: application/json; charset={charset}"]))
    assert answer.output.final_answer == "café"


@pytest.mark.parametrize("charset", ["base64", "rot13", "no-such", "utf-8"])
def test_a_wrong_encoding_is_an_error(charset):
    headers = [f"Content-Type: application/json; charset={charset}"]
    assert "JSON" in str(failure(reply(b'{"answer": "\xff"}', headers=headers)))


def test_what_cannot_be_stored_is_replaced_and_noted():
    answer = ask(reply(b'{"answer": "a\\ud800b"}'))
    assert (answer.output.final_answer, len(answer.extra["replaced"])) == ("a\ufffdb", 1)
    assert [doubt.what for doubt in answer.doubts] == ["a value was replaced or left out"]


@pytest.mark.parametrize("size", [CAP - 20, CAP + 1])
def test_a_response_may_have_ten_mebibytes(size):
    body = json.dumps(GOOD).encode().ljust(size)
    if size <= CAP:
        assert ask(reply(body)).output.final_answer == "fine"
    else:
        assert "more than" in str(failure(reply(body)))


def test_an_endless_body_ends_at_the_cap():
    async def endless(writer):
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b" " * 65_536)
            await writer.drain()

    assert f"more than {CAP} bytes" in str(failure(endless))


def test_a_compressed_body_is_read():
    assert ask(reply(gzip.compress(json.dumps(GOOD).encode()), headers=["Content-Encoding: gzip"])).output.final_answer


@pytest.mark.parametrize("times", [1, 2])
def test_a_compressed_bomb_ends_at_the_cap(times):
    bomb = gzip.compress(b" " * (64 * 2**20), 9) * times
    tracemalloc.start()
    try:
        error = failure(reply(bomb, headers=["Content-Encoding: gzip"]))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert f"more than {CAP} bytes" in str(error)
    assert peak < 3 * CAP


def test_compressed_nothing_without_end_ends_at_the_cap():
    empty = b"\x00\x00\x00\xff\xff" * 10_000

    async def endless(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03")
        while True:
            writer.write(empty)
            await writer.drain()

    assert "more than 300000 bytes" in str(failure(endless, max_response_bytes=300_000))


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "x\x7f"])
def test_an_encoding_that_was_not_requested_is_an_error(encoding):
    assert "content-encoding" in str(failure(reply(b"abc", headers=[f"Content-Encoding: {encoding}"])))


def test_a_body_that_is_not_compressed_as_declared_is_an_error():
    assert "decompressed" in str(failure(reply(b"\x1f\x8b\x08\x00broken", headers=["Content-Encoding: gzip"])))
