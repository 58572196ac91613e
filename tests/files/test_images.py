"""Images of files and texts as data URLs."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.files.images import LARGEST_IMAGE, image_url, inline_image, is_image

HEADS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF89a",
    "image/webp": b"RIFF\0\0\0\0WEBP",
}


@pytest.mark.parametrize(("kind", "head"), HEADS.items())
def test_the_bytes_say_what_an_image_is_whatever_its_name(tmp_path, kind, head):
    path = tmp_path / "image.txt"
    path.write_bytes(head + b"pixels")
    assert image_url(path.read_bytes()) == f"data:{kind};base64,{base64.b64encode(head + b'pixels').decode()}"
    assert is_image(path)
    path.write_bytes(b"x" + head)
    assert not is_image(path)
    assert not is_image(tmp_path / "gone")


@given(st.sampled_from(sorted(HEADS)), st.binary(max_size=50))
def test_base64_alone_is_an_image_too(kind, rest):
    encoded = base64.b64encode(HEADS[kind] + rest).decode()
    assert inline_image(encoded) == f"data:{kind};base64,{encoded}"


@given(st.text().filter(lambda text: not text.startswith("data:")))
def test_other_texts_are_none(text):
    assert inline_image(text) is None


@given(st.binary(max_size=20))
def test_other_data_urls_are_refused(content):
    with pytest.raises(ValueError, match="PNG"):
        inline_image("data:image/png;base64," + base64.b64encode(b"x" + content).decode())


def test_what_is_not_there_is_no_image(tmp_path):
    assert not is_image(tmp_path / "none.png")


@pytest.mark.parametrize("encoded", ["iVBOR!w0KGgo=", "iVBORw0KGg"], ids=["a foreign character", "cut off"])
def test_what_is_no_base64_is_no_image(encoded):
    with pytest.raises(ValueError, match="does not contain base64"):
        inline_image("data:image/png;base64," + encoded)
    assert inline_image(encoded) is None


def test_images_have_a_largest_size():
    head = HEADS["image/png"]
    assert image_url(head + bytes(LARGEST_IMAGE - len(head))).startswith("data:image/png")
    with pytest.raises(ValueError, match="larger than 20 MiB"):
        image_url(head + bytes(LARGEST_IMAGE + 1 - len(head)))
