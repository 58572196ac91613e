"""Images for models: known by their first bytes, whatever their names say, and bounded in size."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path

__all__ = ["MOST_BYTES", "check_image", "image_url", "inline_image", "is_image"]

MOST_BYTES = 20 * 2**20
"""Bytes of one image; providers may take less, and say so."""
_HEAD = 12
_DATA = "data:"


def is_image(path: Path) -> bool:
    """Whether a file begins as an image that models can see; one that cannot be read does not."""
    try:
        with path.open("rb") as file:
            return _media_type(file.read(_HEAD)) is not None
    except OSError:
        return False


def check_image(path: Path) -> None:
    """Raises ValueError where `image_url` would, OSError."""
    with path.open("rb") as file:
        _check(file.read(_HEAD), path.stat().st_size)


def image_url(path: Path) -> str:
    """The image of a file as a data URL. Raises ValueError when it is none, or too large, OSError."""
    with path.open("rb") as file:
        return _url(file.read(MOST_BYTES + 1))


def inline_image(text: str) -> str | None:
    """The image that a text itself holds, a data URL or base64, as a data URL; None for a text that is neither.

    Raises ValueError for a data URL that holds no such image.
    """
    written = text.startswith(_DATA)
    try:
        content = base64.b64decode("".join(text.partition(",")[2].split() if written else text.split()), validate=True)
    except (binascii.Error, ValueError):
        if written:
            raise ValueError("the data URL holds no base64") from None
        return None
    return _url(content) if written or _media_type(content) else None


def _url(content: bytes) -> str:
    _check(content, len(content))
    return f"{_DATA}{_media_type(content)};base64,{base64.b64encode(content).decode()}"


def _check(head: bytes, size: int) -> None:
    if _media_type(head) is None:
        raise ValueError("this is no PNG, JPEG, GIF or WebP image")
    if size > MOST_BYTES:
        raise ValueError(f"the image has more than {MOST_BYTES // 2**20} MiB")


def _media_type(content: bytes) -> str | None:
    """By the signatures of the formats that OpenAI, Anthropic and Google all take."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if content[:4] == b"RIFF" and content[8:12] == b"WEBP" else None
