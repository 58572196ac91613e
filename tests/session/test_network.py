"""Connections that leave this machine, refused for those who ask for that, and for nobody else."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from evalwright.errors import InputError
from evalwright.session import Session, is_offline, refuse_network
from evalwright.session.network import NetworkRefused, is_here

ELSEWHERE = "192.0.2.1"  # reserved for documentation: nobody answers


def connect(host: str) -> None:
    with socket.socket() as one:
        one.settimeout(0.01)
        one.connect((host, 9))


HERE = ["", "localhost", "api.localhost", "127.8.9.1", "::1", "[::1]", "::ffff:127.0.0.1", "0.0.0.0", "/run/pg"]


@pytest.mark.parametrize("host", HERE)
def test_this_machine_is_here(host: str) -> None:
    assert is_here(host)


@pytest.mark.parametrize("host", [ELSEWHERE, "example.com", "localhost.example.com", "::ffff:192.0.2.1", "127.example"])
def test_others_are_not(host: str) -> None:
    assert not is_here(host)


def test_what_leaves_the_machine_is_refused_until_the_session_ends() -> None:
    with Session():
        refuse_network()
        with pytest.raises(NetworkRefused, match=ELSEWHERE):
            connect(ELSEWHERE)
        with pytest.raises(NetworkRefused, match=r"example\.com"):
            socket.getaddrinfo("example.com", 443)
        with pytest.raises(NetworkRefused), Session():
            asyncio.run(asyncio.wait_for(asyncio.open_connection("example.com", 443), 5))
        with pytest.raises(ConnectionRefusedError) as nobody:
            connect("127.0.0.1")
        assert not isinstance(nobody.value, NetworkRefused)
    assert not is_offline()
    with pytest.raises((TimeoutError, OSError), match=r"timed out|unreachable|route|refused") as late:
        connect(ELSEWHERE)
    assert not isinstance(late.value, NetworkRefused)


def test_a_session_beside_it_is_not_held_back() -> None:
    with Session():
        refuse_network()
        found: list[bool] = []

        def beside() -> None:
            with Session():
                found.append(is_offline())

        thread = threading.Thread(target=beside)
        thread.start()
        thread.join()
    assert found == [False]


def test_a_database_elsewhere_is_refused_before_its_library_connects() -> None:
    pytest.importorskip("psycopg")
    from evalwright.stores.postgres.database import Database

    with Session():
        refuse_network()
        with pytest.raises(InputError, match=r"db\.example\.com"):
            Database("postgresql://u@db.example.com/x", "s", 1).connect()
