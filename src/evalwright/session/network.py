"""Refuses connections that leave this machine while a session wants that (`--no-network`).

Python reports every connection and every name look-up to a hook, whichever library makes them, so users' code is
restricted just like ours. A hook cannot be removed: it is set when the first session wants it, and checks at each call
whether any still does. Other programs, and libraries that connect without Python, are out of its reach.
"""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["NetworkRefused", "is_here", "listen"]

_TO_ADDRESS = ("socket.connect", "socket.sendto", "socket.sendmsg")
_LOOK_UP = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
_listening = False


class NetworkRefused(ConnectionRefusedError):
    """A connection that leaves this machine, of a session that allows none."""


def is_here(host: str) -> bool:
    """Whether a host, or the folder of a socket, is this machine."""
    name = host.strip("[]").rstrip(".").lower()
    if not name or name.startswith(("/", "@", "\0")) or name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return bool(mapped.is_loopback or mapped.is_unspecified)


def listen(refuses: Callable[[], bool]) -> None:
    """Refuse whatever leaves this machine whenever `refuses` says so, from the first call on."""
    global _listening
    if _listening:
        return
    _listening = True

    def on_audit_event(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _TO_ADDRESS:
            address = arguments[1]
        elif event in _LOOK_UP:
            address = arguments
        else:
            return
        host = address[0] if isinstance(address, tuple) and address else None
        if isinstance(host, bytes):
            host = host.decode("ascii", "replace")
        if isinstance(host, str) and not is_here(host) and refuses():
            raise NetworkRefused(f"--no-network rejects a connection to {host}")

    sys.addaudithook(on_audit_event)
