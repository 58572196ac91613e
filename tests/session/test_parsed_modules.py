"""Users' code that is looked for and parsed, and never executed."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from evalwright.errors import InputError
from evalwright.session import import_from
from evalwright.session.imports import import_by_name, module_at, nothing_imported
from evalwright.session.named_objects import named_object

CANARY = "import pathlib\npathlib.Path(__file__).with_name('CANARY').write_text('x')\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of users' code, in which executing anything shows."""
    (tmp_path / "evil.py").write_text(CANARY + "def answer(case): ...\nNUMBER = 3\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text(CANARY)
    (tmp_path / "package" / "inner.py").write_text(CANARY + "class Agent:\n    def run(self): ...\n")
    return tmp_path


def looked_at(folder: Path, place: str) -> object:
    with nothing_imported():
        import_from([str(folder)])
        found = named_object(place)
    assert not list(folder.rglob("CANARY"))
    return found


@pytest.mark.parametrize("place", ["evil:answer", "package.inner:Agent", "package.inner:Agent.run", "json:loads"])
def test_what_is_there_is_found_without_being_executed(folder: Path, place: str) -> None:
    assert callable(looked_at(folder, place))


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("evil:answr", "answr"),
        ("evil_not_there:answer", "evil_not_there"),
        ("package.outer:Agent", "package.outer"),
        ("no_library_of_this_name:x", "no_library_of_this_name"),
    ],
)
def test_what_is_missing_is_told(folder: Path, place: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        looked_at(folder, place)


def test_what_stands_in_for_an_original_counts_as_installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "an_original", ModuleType("an_original"))
    (folder / "graders.py").write_text("from an_original.graders import grader\ndef judge(): ...\n")
    assert callable(looked_at(folder, "graders:judge"))


def test_a_literal_is_no_function(folder: Path) -> None:
    assert not callable(looked_at(folder, "evil:NUMBER"))


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("if True:\n    def made(): ...\n", True),
        ("try:\n    from json import loads as made\nexcept ImportError: ...\n", True),
        ("from json import *\n", True),
        ("globals()['made'] = 1\n", True),
        ("def __getattr__(name): ...\n", True),
        ("made, other = print, print\n", True),
        ("def other():\n    made = 1\n", False),
        ("class Other:\n    made = 1\n", False),
    ],
)
def test_names_that_a_text_may_bind_are_there(tmp_path: Path, text: str, there: bool) -> None:
    (tmp_path / "bound.py").write_text(text)
    with nothing_imported():
        assert hasattr(module_at(tmp_path / "bound.py"), "made") is there


def test_a_package_that_is_missing_is_named_unless_the_code_does_without(tmp_path: Path) -> None:
    (tmp_path / "needs.py").write_text("import no_library_of_this_name\ndef go(): ...\n")
    (tmp_path / "maybe.py").write_text("try:\n    import no_library_of_this_name\nexcept ImportError: ...\n")
    with nothing_imported():
        import_from([str(tmp_path)])
        with pytest.raises(ModuleNotFoundError, match="no_library_of_this_name"):
            import_by_name("needs")
        import_by_name("maybe")


def test_broken_code_is_told(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def go(:\n")
    with nothing_imported(), pytest.raises(SyntaxError):
        module_at(tmp_path / "broken.py")


def test_afterwards_code_is_imported_again(folder: Path) -> None:
    looked_at(folder, "evil:answer")
    assert module_at(folder / "evil.py").NUMBER == 3
    assert (folder / "CANARY").exists()
