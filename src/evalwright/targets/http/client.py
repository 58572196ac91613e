"""The client that calls services under test: it keeps nothing between cells, and calls no other place than asked."""

from __future__ import annotations

import os
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ssl import SSLContext, create_default_context

import httpx

from evalwright.errors import InputError, TargetError
from evalwright.targets.http.body import shortened
from evalwright.targets.http.config import place_of

__all__ = ["new_client"]

_IDLE_SECONDS = 2.0
"""Servers close idle connections after 5 seconds or more; a request sent just then would fail a cell needlessly."""


def new_client() -> httpx.AsyncClient:
    """A client that opens connections as needed and reuses them, so there are never more than concurrent calls.

    A redirect is a TargetError. Of the environment it reads SSL_CERT_FILE and SSL_CERT_DIR only; raises InputError if
    the certificates that they name cannot be read.
    """
    return httpx.AsyncClient(
        timeout=None,
        headers={"Accept-Encoding": "gzip"},  # httpx asks for zstd and br, too, where these are installed
        trust_env=False,
        verify=_certificates(os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", "")),
        event_hooks={"response": [_refuse_redirect]},
        # A session of the server would make a cell depend on earlier ones.
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        # No limit here: the runner has one, and a call waiting for a connection would use up its time limit.
        limits=httpx.Limits(max_connections=None, keepalive_expiry=_IDLE_SECONDS),
    )


async def _refuse_redirect(response: httpx.Response) -> None:
    """Reject redirects, which could send keys in headers to another host. Called before httpx reads the location."""
    if response.has_redirect_location:
        raise TargetError(f"HTTP {response.status_code}: redirect to {_location(response)} not followed")


def _location(response: httpx.Response) -> str:
    try:
        return shortened(place_of(str(response.url.join(response.headers["location"]))))
    except (httpx.InvalidURL, ValueError):
        return "an invalid URL"


@cache
def _certificates(file: str, folder: str) -> SSLContext:
    """What servers are trusted by: the certificates of a file or a folder, or of certifi if neither is named.

    Read once for all systems: it takes as long as dozens of calls. Raises InputError.
    """
    if not file and not folder:
        return httpx.create_ssl_context(trust_env=False)
    try:
        return create_default_context(cafile=file or None, capath=folder or None)
    except OSError as error:  # without the name of the file
        named = " or ".join(filter(None, (file and f"SSL_CERT_FILE={file}", folder and f"SSL_CERT_DIR={folder}")))
        raise InputError(f"the certificates of {named} cannot be read: {error}") from None
