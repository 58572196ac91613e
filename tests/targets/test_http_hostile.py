"""Endpoints that misbehave: each call ends within bounds as one clear error."""

import asyncio
import gzip
import json
import socket
import ssl
import struct
import tracemalloc
from contextlib import asynccontextmanager

import pytest
import trustme

from evalwright.errors import InputError, TargetError
from targets.loopback import CASE, PATIENCE, Server, ask, chunked, listening, opened, reply, serving

CAP = 10 * 2**20
GOOD = {"answer": "fine"}
MAPPING = {"final_answer": "$.answer"}


def failure(script, **config):
    with pytest.raises(TargetError) as raised:
        ask(script, **config)
    return raised.value


def sending(data, end=True):
    async def script(writer):
        writer.write(data)
        await writer.drain()
        if not end:
            writer.write_eof()
            await asyncio.sleep(PATIENCE)

    return script


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 413, 422, 429])
def test_a_refusal_is_an_adapter_error_with_its_reason(status):
    error = failure(reply({"error": "too long"}, status, ["Retry-After: 99999999"]))
    assert error.type == "adapter_error"
    assert f"HTTP {status}" in str(error)
    assert "too long" in str(error)


@pytest.mark.slow("uses the second that a pattern may take")
def test_a_filter_with_a_catastrophic_pattern_is_ended():
    items = {"items": [{"name": "a" * 40 + "b", "text": "fine"}]}
    error = failure(reply(items), response_mapping={"final_answer": "$.items[?(@.name =~ '(a+)+$')].text"})
    assert error.type == "timeout"
    assert "response_mapping.final_answer: searching for '(a+)+$' took more than 1 s" in str(error)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 529, 599])
def test_a_failure_of_the_server_has_its_own_type(status):
    error = failure(reply(b"<html>\x1b[31m\nBad \x00 gateway</html>", status))
    assert (error.type, str(error).partition(": ")[2]) == ("http_5xx", f"HTTP {status}: <html> [31m Bad gateway</html>")


def test_a_status_beyond_the_known_ones_is_no_failure_of_the_server():
    assert failure(reply(b"denied", 999)).type == "adapter_error"


def test_a_failure_is_reported_at_once_although_its_body_breaks_off():
    assert failure(sending(b"HTTP/1.1 503 No\r\nContent-Length: 100\r\n\r\nover")).type == "http_5xx"


def test_a_failure_with_a_large_body_is_reported_briefly():
    assert len(str(failure(reply(b"x" * 2_000_000, 500)))) < 500


@pytest.mark.parametrize(
    "location",
    [
        "/ask", "/other", "http://169.254.169.254/latest/meta-data/", "https://evil.example/?q=1", "file:///etc/passwd",
        "//evil.example/x", "http://[::1", "javascript:alert(1)", "",
    ],
)  # fmt: skip
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(location, status):
    error = failure(reply(GOOD, status, [f"Location: {location}"]))
    assert error.type == "adapter_error"
    assert f"HTTP {status}" in str(error)


def test_a_redirect_is_named_without_its_query():
    error = failure(reply(b"", 302, ["Location: https://u:hush@other.example/next?token=hush"]))
    assert "redirect to https://other.example/next not followed" in str(error)
    assert "hush" not in str(error)


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


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"error": "too busy"}, "too busy"),
        ({"error": {"message": "too busy", "code": 7}}, "too busy"),
        ({"error": {"code": 7}, "answer": None}, '{"code": 7}'),
        ({"errors": [{"message": "too busy"}], "answer": ""}, "too busy"),
        ({"error": "key sk-hush-hush is wrong\n" + "x" * 9_000}, "key ***MASKED*** is wrong"),
    ],
)
def test_an_error_that_comes_with_status_200_is_one(document, reason):
    error = failure(reply(document), headers={"Authorization": "Bearer sk-hush-hush"})
    assert error.type == "adapter_error"
    assert "HTTP 200, but the body is an error: " in str(error)
    assert reason in str(error)
    assert len(str(error)) < 1_000


@pytest.mark.parametrize("error", [None, False, "", {}, [], True, "not the whole truth"])
def test_an_answer_counts_whatever_is_beside_it(error):
    assert ask(reply({**GOOD, "error": error})).output.final_answer == "fine"


def test_a_mapped_error_is_an_answer():
    answer = ask(reply({"error": "too busy"}), response_mapping={"final_answer": "$.error"})
    assert answer.output.final_answer == "too busy"


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


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 banana\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b'{"answer": "x"}',
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nnot a chunk\r\n",
        chunked(b'{"answer": "x"}', end=False),
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: v\r\n" % i for i in range(20_000)) + b"\r\n{}",
    ],
    ids=lambda data: repr(data[:40]),
)
def test_a_response_that_is_not_http_or_not_whole_is_an_error(data):
    assert failure(sending(data)).type == "adapter_error"


def test_headers_without_end_are_an_error():
    async def endless(writer):
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-Again: " + b"a" * 10_000 + b"\r\n")
            await writer.drain()

    assert failure(endless).type == "adapter_error"


def test_a_half_closed_connection_is_an_error():
    error = failure(sending(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{", end=False))
    assert "incomplete" in str(error)


def test_a_connection_that_is_reset_is_an_error():
    async def reset(writer):
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()

    assert "no answer: ReadError: [Errno 104] Connection reset by peer" in str(failure(reset))


def test_nobody_listening_is_an_error():
    assert "no answer" in str(failure(reply(GOOD), endpoint="http://127.0.0.1:1/x"))


@asynccontextmanager
async def connected(*scripts):
    """A server and a target that asks it."""
    async with (
        serving(*scripts) as server,
        opened(endpoint=f"http://127.0.0.1:{server.port}/", response_mapping=MAPPING) as target,
    ):
        yield server, target


def test_a_slow_answer_is_left_when_the_call_is_cancelled():
    async def slow(writer):
        for byte in reply(GOOD):
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.05)

    async def check():
        async with connected(slow) as (server, target):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(target.run(CASE, 0), 0.2)
            async with asyncio.timeout(PATIENCE):
                while server.open:
                    await asyncio.sleep(0.01)
            return server.connections

    assert asyncio.run(check()) == 1


def test_there_are_never_more_connections_than_calls_at_once_and_they_are_used_again():
    async def check():
        async with connected(reply(GOOD)) as (server, target):
            places = asyncio.Semaphore(3)

            async def call():
                async with places:
                    return await target.run(CASE, 0)

            answers = await asyncio.gather(*(call() for _ in range(40)))
            return server, answers

    server, answers = asyncio.run(check())
    assert {answer.output.final_answer for answer in answers} == {"fine"}
    assert (len(server.requests), server.connections) == (40, 3)


def test_a_storm_of_failures_does_not_use_up_connections():
    scripts = (reply(b"no", 503), sending(b"HTTP/1.1 200"), reply(b"x" * 100_000, 500), reply(GOOD))

    async def check():
        types = []
        async with connected(*scripts) as (server, target):
            for _ in range(3):
                with pytest.raises(TargetError) as raised:
                    await target.run(CASE, 0)
                types.append(raised.value.type)
            answer = await target.run(CASE, 0)
            return types, answer.output.final_answer, server.most_open, len(server.requests)

    assert asyncio.run(check()) == (["http_5xx", "adapter_error", "http_5xx"], "fine", 1, 4)


def test_cells_share_no_cookies():
    async def check():
        async with connected(reply(GOOD, headers=["Set-Cookie: session=1; Path=/"])) as (server, target):
            await target.run(CASE, 0)
            await target.run(CASE, 1)
            return ["cookie" in request["headers"] for request in server.requests]

    assert asyncio.run(check()) == [False, False]


def test_proxies_and_logins_of_the_environment_are_not_used(monkeypatch, tmp_path):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password hush-hush\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert ask(reply(GOOD)).output.final_answer == "fine"


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("before", range(280, 304, 4))
def test_no_half_of_a_secret_is_at_the_end_of_an_excerpt(status, before):
    text = b"." * 2 + b" " + b"x" * (before - 3) + b" sk-hush-hush-hush and more " * 20
    assert "sk-" not in str(failure(reply(text, status), headers={"Authorization": "Bearer sk-hush-hush-hush"}))


def test_secrets_that_a_server_repeats_are_not_in_the_error():
    said = {"error": "bad key sk-hush-hush, login let-me-in, token tok-hush-hush", "url": "?api_key=query-hush"}
    error = failure(
        reply(said, 401),
        endpoint="http://me:let-me-in@127.0.0.1:{port}/x?api_key=query-hush",
        headers={"Authorization": "Bearer sk-hush-hush", "X-Token": "tok-hush-hush"},
    )
    assert "HTTP 401" in str(error)
    assert not [secret for secret in ("hush", "let-me-in") if secret in str(error)]


@pytest.fixture(scope="module")
def authority():
    """An authority of one's own, as companies have them."""
    return trustme.CA()


def _opened_at(address):
    return opened(endpoint=address, response_mapping=MAPPING)


async def _asked_by_tls(authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    server = Server(reply(GOOD))
    async with listening(server, context), _opened_at(f"https://localhost:{server.port}") as target:
        return await target.run(CASE, 0)


def test_a_certificate_of_an_unknown_authority_is_refused(authority):
    with pytest.raises(TargetError, match=r"no answer: ConnectError: .*CERTIFICATE_VERIFY_FAILED"):
        asyncio.run(_asked_by_tls(authority))


def test_authorities_of_the_environment_are_trusted(authority, monkeypatch, tmp_path):
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    assert asyncio.run(_asked_by_tls(authority)).output.final_answer == "fine"


def test_certificates_that_cannot_be_read_are_named(monkeypatch):
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such.pem")
    with pytest.raises(InputError, match=r"certificates of SSL_CERT_FILE=/no/such\.pem cannot be read: .*No such file"):
        ask(reply(GOOD))


class _Plain:
    """A service that knows no TLS, and answers what it does not understand."""

    port = 0

    async def handle(self, reader, writer):
        writer.write(reply(status=400))
        writer.close()


async def _asked_without_tls():
    async with listening(_Plain()) as server, _opened_at(f"https://127.0.0.1:{server.port}") as target:
        return await target.run(CASE, 0)


def test_a_service_without_tls_has_another_error_than_an_unreachable_one():
    with pytest.raises(TargetError, match=r"no answer: ConnectError: \[SSL"):
        asyncio.run(_asked_without_tls())
