"""Access control by host and token, and the headers of every response."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["POLICY", "Access", "Gatekeeper"]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),  # with no-referrer Chromium sends `Origin: null` when a form is posted
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_LONGEST_LINE = 8 * 1024
_NO_HOST = "Not served under this name: open the address that `evalwright view` printed, or name this host by --host.\n"
_NO_ENTRY = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>No entry · evalwright</title></head><body><main><h1>No entry</h1>
<p>Open the address that <code>evalwright view</code> printed: it ends with the token of this session.</p></main></body>
</html>"""


@dataclass(frozen=True)
class Access:
    """How the viewer is reached."""

    token: str | None
    """None if reading needs no token."""
    hosts: tuple[str, ...]
    """The accepted values of the header `Host`, with the port."""
    port: int

    @property
    def cookie(self) -> str:
        return f"evalwright_{self.port}"

    def form_token(self) -> str:
        """The value in a form that lets only our pages post it; bound to the token."""
        return hmac.new((self.token or "").encode(), b"form", hashlib.sha256).hexdigest()[:32]

    def admits(self, token: str | None) -> bool:
        if self.token is None:
            return True
        return token is not None and hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())


class Gatekeeper:
    """Wraps the application: no run is read before host, method and token have been checked."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        # A link copied from a page's source has `&amp;` for `&`. An `&` in a value is `%26`.
        scope = {**scope, "query_string": scope["query_string"].replace(b"&amp;", b"&")}
        refused = self._refusal(scope)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name for name, _ in message["headers"]}
                more = [] if b"cache-control" in names else [(b"cache-control", b"no-store")]
                message["headers"] = [*message["headers"], *_HEADERS, *more]
            await send(message)

        await (refused or self._app)(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        access, headers = self._access, Headers(scope=scope)
        if headers.get("host", "").lower() not in access.hosts:
            return Response(_NO_HOST, 421, media_type="text/plain")
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return Response("Only GET, HEAD and POST.\n", 405, {"Allow": "GET, HEAD, POST"}, "text/plain")
        query = scope["query_string"]
        if len(scope.get("raw_path") or b"") + len(query) > _LONGEST_LINE:
            return Response("The address is too long.\n", 414, media_type="text/plain")
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
        token = next((value for name, value in pairs if name == "token"), None)
        is_in = access.admits(_cookie(headers.get("cookie", ""), access.cookie))
        if token is not None and (is_in or access.admits(token)):  # who is in may have a bookmark with an old one
            return self._redirect_without_token(scope, pairs)
        if not is_in:
            return Response(_NO_ENTRY, 403, media_type="text/html")
        if scope["method"] == "POST" and headers.get("origin") != f"http://{headers['host'].lower()}":
            return Response("The form was not posted by a page of this viewer.\n", 403, media_type="text/plain")
        return None

    def _redirect_without_token(self, scope: Scope, pairs: list[tuple[str, str]]) -> Response:
        """Redirect to the same address without the token, which is in a cookie from now on."""
        rest = urlencode([(name, value) for name, value in pairs if name != "token"])
        path = "/" + (scope.get("raw_path") or b"/").decode("latin-1").lstrip("/")  # `//host/` would lead elsewhere
        answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        if self._access.token is not None:
            answer.set_cookie(self._access.cookie, self._access.token, httponly=True, samesite="strict", path="/")
            answer.headers["set-cookie"] = answer.headers["set-cookie"].replace("SameSite=strict", "SameSite=Strict")
        return answer


def _cookie(header: str, name: str) -> str | None:
    try:
        cookie = SimpleCookie(header).get(name)
    except CookieError:
        return None
    return None if cookie is None else cookie.value
