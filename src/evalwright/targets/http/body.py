"""The body of a response, decompressed piece by piece and limited in size while it is read."""

from __future__ import annotations

import codecs
import json
import re
import zlib
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import Any, cast

import httpx

from evalwright.errors import TargetError

__all__ = ["EXCERPT_BYTES", "Interrupted", "error_in", "json_of", "pieces", "shortened"]

_PIECE = 65_536
"""Bytes that are decompressed at a time: a decompression bomb cannot exceed the cap by more than this."""
EXCERPT_BYTES = 4_000
"""Bytes of foreign text that are masked to show its start: more than is shown, so that no secret is cut in half."""
_EXCERPT = 300
_CUT_WORD = re.compile(r"""[^\s"'<>,;:&?(){}\[\]]+\Z""")


class Interrupted(TargetError):
    """The connection failed before the response was complete."""


async def pieces(response: httpx.Response, cap: int) -> AsyncGenerator[bytes, None]:
    """The decompressed body in pieces. Raises TargetError beyond `cap` bytes, Interrupted if it breaks off."""
    inflation = _inflation(response)
    received = size = 0
    try:
        async with aclosing(_raw(response)) as raw:
            async for data in raw:
                received += len(data)  # counted too: a stream of empty gzip members has no decompressed bytes at all
                for piece in (data,) if inflation is None else inflation.pieces(data):
                    size += len(piece)
                    if max(size, received) > cap:
                        raise TargetError(f"the response has more than {cap} bytes")
                    yield piece
                if received > cap:
                    raise TargetError(f"the response has more than {cap} bytes")
    except httpx.TimeoutException as error:
        raise Interrupted(f"the response stopped: {_error_name(error)}", "timeout") from None
    except httpx.HTTPError as error:
        raise Interrupted(f"the response is incomplete: {_error_name(error)}") from None
    except zlib.error as error:
        raise TargetError(f"the response cannot be decompressed: {error}") from None
    if inflation is not None and not inflation.whole:
        raise Interrupted("the response is incomplete: it cannot be decompressed to its end")


def _raw(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """The bytes as they arrive. httpx declares an iterator, but it is a generator and must be closed if left early."""
    return cast("AsyncGenerator[bytes, None]", response.aiter_raw())


def json_of(body: bytes, response: httpx.Response, masked: Callable[[str], str]) -> Any:
    """The document in a body. If it is not JSON, raises TargetError with the start of the body, `masked`."""
    if not body.strip():
        raise TargetError(f"expected JSON, found an empty body (HTTP {response.status_code})")
    try:
        return json.loads(_text(body, response))
    except RecursionError:
        raise TargetError("the JSON of the response is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise TargetError(f"the response is not valid JSON: not {error.encoding} at byte {error.start}") from None
    except ValueError as error:
        excerpt = shortened(masked(body[:EXCERPT_BYTES].decode(errors="replace")))
        raise TargetError(f"the response is not valid JSON ({error}): {excerpt}") from None


def error_in(document: Any) -> str | None:
    """The text of a top-level `error` (or `errors`), with which some services report failures at status 200; else
    None."""
    error = (document.get("error") or document.get("errors")) if isinstance(document, dict) else None
    if not error or isinstance(error, bool):
        return None
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) and message else json.dumps(error, ensure_ascii=False)


def _text(body: bytes, response: httpx.Response) -> str:
    """The text of a body. JSON is UTF-8; a different declared encoding counts only if the body is not valid UTF-8."""
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        declared = response.charset_encoding
        if declared is None or not _is_text_encoding(declared):
            raise
        return body.decode(declared)


def _is_text_encoding(name: str) -> bool:
    try:
        return codecs.lookup(name)._is_text_encoding
    except (LookupError, ValueError):
        return False


def shortened(text: str, longest: int = _EXCERPT) -> str:
    """The start of foreign text in one printable line, without a cut word: half a secret would not be recognised."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * longest]).split())
    return line if len(line) <= longest else _CUT_WORD.sub("", line[:longest]) + "..."


def _error_name(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _inflation(response: httpx.Response) -> _Inflation | None:
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding in ("", "identity"):
        return None
    if encoding in ("gzip", "x-gzip", "deflate"):
        return _Inflation()
    raise TargetError(f"the response has the content-encoding {shortened(encoding)!r}, expected gzip or none")


class _Inflation:
    """Decompresses gzip or zlib, also in several members, never more than a piece at a time."""

    def __init__(self) -> None:
        self._member = _new_member()
        self._begun = False

    @property
    def whole(self) -> bool:
        """Whether nothing has arrived, or everything."""
        return self._member.eof or not self._begun

    def pieces(self, data: bytes) -> Iterator[bytes]:
        more = self._begun = True
        while more:
            if self._member.eof:
                if not data:
                    return
                self._member = _new_member()
            piece = self._member.decompress(data, _PIECE)
            data = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            # A full piece means that more may be waiting inside, even if no input is left.
            more = bool(data) or len(piece) == _PIECE
            if piece:
                yield piece


def _new_member() -> Any:
    # 32 detects whether the data are gzip or zlib: `deflate` means either, depending on the server.
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
