"""Images for models: recognised by their first bytes, not by their names, and limited in size."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path

__all__ = ["LARGEST_IMAGE", "check_image", "image_url", "inline_image", "is_image"]

LARGEST_IMAGE = 20 * 2**20
"""Bytes of one image; a provider that accepts fewer says so itself."""
_HEAD = 12
"""Bytes that tell the formats apart: WebP has its name in bytes 8 to 11."""
_DATA = "data:"


def is_image(path: Path) -> bool:
    """Whether a file begins like an image that models accept; False if it cannot be read."""
    try:
        with path.open("rb") as file:
            return _media_type(file.read(_HEAD)) is not None
    except OSError:
        return False


def check_image(path: Path) -> None:
    """Check a file without reading all of it. Raises ValueError where `image_url` would, and OSError."""
    with path.open("rb") as file:
        _check(file.read(_HEAD), path.stat().st_size)


def image_url(content: bytes) -> str:
    """The image in the bytes of a file as a data URL. Raises ValueError if they are not an image, or too many."""
    return _url(content)


def inline_image(text: str) -> str | None:
    """An image contained in the text itself, as a data URL or base64, in the form of a data URL; None if there is none.

    Raises ValueError for a data URL that does not contain such an image.
    """
    is_data_url = text.startswith(_DATA)
    encoded = text.partition(",")[2] if is_data_url else text
    try:
        content = base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError):
        if is_data_url:
            raise ValueError("the data URL does not contain base64") from None
        return None
    return _url(content) if is_data_url or _media_type(content) else None


def _url(content: bytes) -> str:
    _check(content, len(content))
    return f"{_DATA}{_media_type(content)};base64,{base64.b64encode(content).decode()}"


def _check(head: bytes, size: int) -> None:
    if _media_type(head) is None:
        raise ValueError("not a PNG, JPEG, GIF or WebP image")
    if size > LARGEST_IMAGE:
        raise ValueError(f"the image is larger than {LARGEST_IMAGE // 2**20} MiB")


def _media_type(content: bytes) -> str | None:
    """By the signatures of the formats that OpenAI, Anthropic and Google all take."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if content[:4] == b"RIFF" and content[8:12] == b"WEBP" else None
