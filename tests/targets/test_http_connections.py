"""Connections to endpoints: broken, cancelled, reused, through proxies and by TLS."""

import asyncio
import socket
import ssl
import struct
from contextlib import asynccontextmanager

import pytest
import trustme

from evalwright.errors import InputError, TargetError
from targets.loopback import (
    CASE,
    GOOD,
    PATIENCE,
    Server,
    ask,
    chunked,
    failure,
    listening,
    opened,
    reply,
    sending,
    serving,
)

MAPPING = {"final_answer": "$.answer"}


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


@pytest.fixture(scope="module")
def authority():
    """An authority of one's own, as companies have them."""
    return trustme.CA()


def _opened_at(address):
    return opened(endpoint=address, response_mapping=MAPPING)


async def _answer_by_tls(authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    server = Server(reply(GOOD))
    async with listening(server, context), _opened_at(f"https://localhost:{server.port}") as target:
        return await target.run(CASE, 0)


def test_a_certificate_of_an_unknown_authority_is_refused(authority):
    with pytest.raises(TargetError, match=r"no answer: ConnectError: .*CERTIFICATE_VERIFY_FAILED"):
        asyncio.run(_answer_by_tls(authority))


def test_authorities_of_the_environment_are_trusted(authority, monkeypatch, tmp_path):
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    assert asyncio.run(_answer_by_tls(authority)).output.final_answer == "fine"


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


async def _answer_without_tls():
    async with listening(_Plain()) as server, _opened_at(f"https://127.0.0.1:{server.port}") as target:
        return await target.run(CASE, 0)


def test_a_service_without_tls_has_another_error_than_an_unreachable_one():
    with pytest.raises(TargetError, match=r"no answer: ConnectError: \[SSL"):
        asyncio.run(_answer_without_tls())
