"""Images that cases show to chat models: where they may come from, and what is said of those that are not there."""

import base64

import pytest

from evalwright.errors import InputError, TargetError
from evalwright.model.snapshot import Case
from evalwright.targets.chat.images import Images

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 32
DATA = "data:image/png;base64," + base64.b64encode(PNG).decode()


def urls(photo, folders=(), place="input.photo"):
    images = Images([place], [str(folder) for folder in folders])
    return [part["image_url"]["url"] for part in images.parts(Case("c", {"photo": photo}))]


@pytest.mark.parametrize(
    ("photo", "sent"),
    [
        (None, []),
        ([], []),
        ("https://a.example/x.png", ["https://a.example/x.png"]),
        (DATA, [DATA]),
        ([base64.b64encode(PNG).decode(), "1.png"], [DATA, DATA]),
    ],
    ids=["none", "no", "address", "data", "several"],
)
def test_an_image_is_an_address_data_or_a_file(tmp_path, photo, sent):
    (tmp_path / "1.png").write_bytes(PNG)
    assert urls(photo, [tmp_path]) == sent


@pytest.mark.parametrize(
    ("photo", "message"),
    [
        ("2.png", r"input\.photo: there is no image '2\.png' in photos"),
        ("../secret.png", "there is no image"),
        ("link.png", "there is no image"),
        ("a" * 5000, "there is no image"),
        ("text.png", "input.photo: not a PNG, JPEG, GIF or WebP image"),
        (5, "expected an image as an address"),
        ([""], "expected an image as an address"),
    ],
)
def test_a_case_names_no_file_elsewhere(tmp_path, photo, message):
    folder = tmp_path / "photos"
    folder.mkdir()
    (tmp_path / "secret.png").write_bytes(PNG)
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "text.png").write_text("no image")
    with pytest.raises(TargetError, match=message):
        urls(photo, [folder])


def test_without_folders_files_are_not_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "1.png").write_bytes(PNG)
    with pytest.raises(TargetError, match="image_folders names some"):
        urls("1.png")


def test_mistakes_of_the_configuration():
    with pytest.raises(InputError, match=r"such as input\.photo, found 'photo'"):
        Images(["photo"], [])
    with pytest.raises(InputError, match="without 'images'"):
        Images([], ["photos"])
    with pytest.raises(TargetError, match=r"the case has no input\.picture"):
        urls("x", place="input.picture")
