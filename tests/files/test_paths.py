from __future__ import annotations

from pathlib import Path

import pytest

from evalwright.files.paths import also_here, import_folders, named_in, safe_id, seen_from_here


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite file in a folder of its own beside the working directory."""
    for name in ("work", "suites"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "suites" / "eval.yaml"


def test_the_folder_of_the_suite_goes_first_and_that_is_told(suite: Path) -> None:
    Path("cases.yaml").touch()
    (suite.parent / "cases.yaml").touch()
    assert named_in(suite, "cases.yaml") == suite.parent / "cases.yaml"
    assert str(suite.parent / "cases.yaml") in also_here(suite, "cases.yaml")


def test_what_is_not_beside_the_suite_is_looked_for_in_the_working_directory(suite: Path) -> None:
    Path("cases.yaml").touch()
    assert named_in(suite, "cases.yaml") == Path.cwd() / "cases.yaml"
    assert named_in(Path("../suites/eval.yaml"), "cases.yaml") == Path("cases.yaml")
    assert also_here(suite, "cases.yaml") == ""


def test_one_file_under_two_names_is_one(suite: Path) -> None:
    Path("cases.yaml").touch()
    (suite.parent / "cases.yaml").symlink_to(Path("cases.yaml").resolve())
    assert named_in(suite, "cases.yaml") == Path.cwd() / "cases.yaml"
    assert also_here(suite, "cases.yaml") == ""


def test_modules_are_looked_for_beside_the_suite_first(suite: Path) -> None:
    assert import_folders(suite) == [str(suite.parent), str(Path.cwd())]
    assert import_folders(Path("eval.yaml")) == [str(Path.cwd())]


def test_what_is_nowhere_stays_as_it_is_named(suite: Path) -> None:
    assert named_in(suite, "cases.yaml") == Path("cases.yaml")


def test_an_absolute_path_stays(suite: Path) -> None:
    assert named_in(suite, str(suite)) == suite


@pytest.mark.parametrize("name", ["a" * 5000, "nul\0byte", "~nobody-has-this-name/x", ""])
def test_a_name_that_no_file_can_have_is_only_a_name(suite: Path, name: str) -> None:
    assert str(named_in(suite, name)) in (name, ".")


def test_only_what_is_below_the_working_directory_is_named_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert seen_from_here(tmp_path / "here" / "a" / "b") == Path("a/b")
    assert seen_from_here(tmp_path / "there") == tmp_path / "there"


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("2026_客服 a/b", "2026_客服-a-b"),
        ("u\u0308ber", "über"),
        ("हिन्दी", "हिन्दी"),
        ("..\u202eevil\ud800", "evil"),
        ("-.客\0服", "客-服"),
        ("🚀", "run"),
        ("客" * 100, "客" * 40),
        ("../..", "run"),
    ],
)
def test_a_folder_keeps_the_letters_of_a_name(name: str, folder: str) -> None:
    assert safe_id(name) == folder


def test_a_folder_has_ascii_alone_where_the_file_system_has_no_other_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsencode", lambda name: name.encode("latin-1"))
    assert [safe_id("x_客服"), safe_id("x_über")] == ["x_", "x_über"]
