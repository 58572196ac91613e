"""Texts of a cell on its page: each in full, or cut at a line with a link to the whole, within a common limit."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from evalwright.viewer.texts import Fold, folds, pretty, visible

__all__ = ["ROOM", "Blocks", "ShownText"]

ROOM = 60_000
"""Characters of all texts of a page together."""
_ONE = 20_000
_LEAST = 150
"""Characters of each text that are shown even if others have filled the page."""
_IMAGE = re.compile(r"data:(image/(?:png|jpeg|webp|gif));base64,([A-Za-z0-9+/=\s]+)\Z")
_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)[^,]{0,40},")
_LARGEST_IMAGE = 2_000_000
_IMAGES = 35
"""Bytes of all images of a page for each character of its room: 2 MB on the page of a cell."""
_MAGIC = {"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8", "image/webp": b"RIFF"}


class ShownText(NamedTuple):
    """A text on a page. If it is cut, `whole` is the address of the full text and `size` its number of characters."""

    text: str
    is_json: bool = False
    size: int = 0
    whole: str = ""
    image: str = ""
    """An image as a `data:` address, of a kind that cannot hold a script."""

    @property
    def folds(self) -> list[Fold]:
        return folds(self.text) if self.is_json else [Fold("", self.text)]


class Blocks:
    """Hands out the remaining room of a page."""

    def __init__(self, address: Callable[[str], str], room: int = ROOM) -> None:
        self._address, self._left = address, room
        self._images_left = _IMAGES * room

    @property
    def is_full(self) -> bool:
        """Whether there is no room for more than the beginning of each further text."""
        return self._left <= 0

    def elsewhere(self, part: str) -> ShownText:
        """Everything at a place of the records, as an address only."""
        return ShownText("", whole=self._address(part))

    @staticmethod
    def at(part: str, name: object) -> str:
        """The place of a key below a place."""
        return f"{part}/{str(name).replace('~', '~0').replace('/', '~1')}"

    def of(self, value: Any, part: str) -> ShownText:
        """The shown part of the value at a place of the records."""
        if (picture := _picture(value)) is not None:
            size = len(picture.image)
            if size > min(_LARGEST_IMAGE, self._images_left):
                return ShownText(picture.text, size=size, whole=self._address(part))
            self._images_left -= size
            return picture
        if isinstance(value, dict) and value.get("type") == "text" and isinstance(value.get("text"), str):
            value, part = value["text"], f"{part}/text"
        text, is_json = pretty(value), not isinstance(value, str)
        room = max(_LEAST, min(_ONE, self._left))
        if len(text) <= room:
            self._left -= len(text)
            return ShownText(visible(text), is_json)
        end = text.rfind("\n", room // 2, room) + 1
        cut = text[: end or room]
        self._left -= len(cut)
        return ShownText(visible(cut), is_json, len(text), self._address(part))


def _picture(value: Any) -> ShownText | None:
    """A placeholder for an image or sound in a message; an image of a kind that can do no harm comes with it."""
    if not isinstance(value, dict):
        return None
    inner = value.get("image_url") or value.get("input_audio") or value.get("source")
    address = inner.get("url") or inner.get("data") if isinstance(inner, dict) else inner
    if not isinstance(address, str) or not value.get("type"):
        return None
    kind = inner.get("media_type") or inner.get("format") or "" if isinstance(inner, dict) else ""
    if match := _DATA.match(address):
        kind = match[1]
    if not address.startswith("data:"):
        return ShownText(visible(f"[{value['type']} {kind or address[:200]}]"))
    image = ""
    if (match := _IMAGE.match(address)) and _is(match[1], match[2]):
        image = f"data:{match[1]};base64,{''.join(match[2].split())}"
    size = len(address.partition(",")[2].rstrip("=")) * 3 // 4
    return ShownText(visible(f"[{value['type']}, {kind}, {size:,} bytes]"), image=image)


def _is(kind: str, encoded: str) -> bool:
    try:
        return base64.b64decode(encoded[:16]).startswith(_MAGIC[kind])
    except (ValueError, binascii.Error):
        return False
