"""The images that a case shows to a chat model: addresses, data in the case, or files in the suite's folders."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from evalwright.errors import InputError, Problem, TargetError
from evalwright.files.images import LARGEST_IMAGE, image_url, inline_image
from evalwright.files.key_paths import as_written
from evalwright.model.chat import ChatMessage
from evalwright.model.snapshot import Case

__all__ = ["Images", "without_data"]

_NOTHING = object()


class Images:
    """Images by their places in a case (`input.photo`), each one image or a list of them.

    A case is data: on this machine it may only name files in `folders`.
    """

    def __init__(self, places: Sequence[str], folders: Sequence[str]) -> None:
        wrong = [place for place in places if not place.startswith(("input.", "case.metadata."))]
        if wrong:
            expected = "expected places in the case, such as input.photo"
            raise InputError(Problem("", f"{expected}, found {as_written(wrong[0])}", key="images"))
        if folders and not places:
            raise InputError(Problem("", "nothing reads this key without 'images'", key="image_folders"))
        self._places, self._folders = places, [Path(folder).resolve() for folder in folders]

    def parts(self, case: Case) -> list[dict[str, Any]]:
        """The parts of a message that show them. Raises TargetError for what is missing or not an image."""
        return [
            {"type": "image_url", "image_url": {"url": self._url(image, place)}}
            for place in self._places
            for image in _images_at(case, place)
        ]

    def _url(self, image: str, place: str) -> str:
        if image.startswith(("https://", "http://")):
            return image
        try:
            return inline_image(image) or image_url(self._image_bytes(image, place))
        except ValueError as error:
            raise TargetError(f"{place}: {error}") from None

    def _image_bytes(self, name: str, place: str) -> bytes:
        for folder in self._folders:
            path = (folder / name).resolve()
            if path.is_relative_to(folder) and os.path.isfile(path):
                if path.stat().st_size > LARGEST_IMAGE:
                    raise ValueError(f"{name} is larger than {LARGEST_IMAGE // 2**20} MiB")
                return path.read_bytes()
        where = ", ".join(folder.name for folder in self._folders) or "no folder: image_folders names some"
        raise TargetError(f"{place}: there is no image {name[:200]!r} in {where}")


def without_data(message: ChatMessage) -> ChatMessage:
    """The message for the record, with each image replaced by its size: the case has it, or the folder."""
    if not isinstance(message.content, list):
        return message
    return msgspec.structs.replace(message, content=[_part(part) for part in message.content])


def _part(part: Any) -> Any:
    image = part.get("image_url") if isinstance(part, dict) else None
    url = image.get("url") if isinstance(image, dict) else None
    if not isinstance(url, str) or not url.startswith("data:"):
        return part
    kind, _, data = url.partition(",")
    return {**part, "image_url": {"url": f"{kind} ({len(data):,} characters)"}}


def _images_at(case: Case, place: str) -> Iterator[str]:
    """The images at a place; none for null, so that a case may have none."""
    value: Any = {"input": case.input, "case": {"metadata": case.metadata}}
    for key in place.split("."):
        value = value.get(key, _NOTHING) if isinstance(value, dict) else _NOTHING
    if value is _NOTHING:
        raise TargetError(f"the case has no {place}, which should hold its images (null for none)")
    images = [] if value is None else value if isinstance(value, list) else [value]
    for image in images:
        if not isinstance(image, str) or not image.strip():
            raise TargetError(f"{place}: expected an image as an address, a file or base64, found {as_written(image)}")
        yield image.strip()
