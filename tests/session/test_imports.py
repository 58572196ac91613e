"""User code of several suites in one process: files are modules of their own, names are those of the run."""

import builtins
import sys
import threading
from contextvars import copy_context
from pathlib import Path

import pytest

from evalwright.errors import InputError
from evalwright.session import Session, import_from
from evalwright.session.imports import import_by_name, module_at


@pytest.fixture
def shops(tmp_path):
    """Two folders with files of the same names that say different things."""
    folders = []
    for place in ("one", "two"):
        (tmp_path / place / "session_depot").mkdir(parents=True)
        (tmp_path / place / "session_depot" / "__init__.py").write_text(f"PLACE = {place!r}\n")
        (tmp_path / place / "session_agent.py").write_text(
            f"from session_depot import PLACE as DEPOT\nPLACE = {place!r}\n"
        )
        folders.append(str(tmp_path / place))
    return folders


def loaded(folder):
    """What the module of a run in that folder says."""
    import_from([folder])
    module = import_by_name("session_agent")
    return module.PLACE, module.DEPOT


def test_a_later_run_gets_its_own_modules(shops):
    for folder, place in [*zip(shops, ("one", "two"), strict=True), (shops[0], "one")]:
        with Session():
            assert loaded(folder) == (place, place)


@pytest.mark.parametrize("in_session", [True, False])
def test_a_module_that_a_run_uses_is_refused_to_another_with_both_files(shops, in_session):
    refused = []

    def other():
        try:
            if in_session:
                with Session():
                    loaded(shops[1])
            else:
                loaded(shops[1])
        except InputError as error:
            refused.append(str(error))

    with Session():
        assert loaded(shops[0]) == ("one", "one")
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert import_by_name("session_agent").PLACE == "one"
    assert all(f"{folder}/session_" in refused[0] for folder in shops)


def in_folders(tmp_path, **files):
    """Folders with one file each, by their names, with `/` for `__`."""
    for place, text in files.items():
        folder, _, name = place.partition("__")
        file = tmp_path / folder / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return [str(tmp_path / folder) for folder in dict.fromkeys(place.partition("__")[0] for place in files)]


def test_a_later_run_does_not_find_what_only_an_earlier_one_has(tmp_path):
    folders = in_folders(tmp_path, one__session_stock="", two__session_till="import session_stock")
    with Session():
        import_from(folders[:1])
        import_by_name("session_stock")
    path = [*sys.path]
    with Session():
        import_from(folders[1:])
        with pytest.raises(ModuleNotFoundError, match="session_stock"):
            import_by_name("session_till")
    assert [folders[1], *path] == [sys.path[0], folders[0], *sys.path[1:]]


def test_a_package_that_the_program_has_blocked_ends_no_run(tmp_path, monkeypatch):
    """As `sys.modules[NAME] = None` does, which leaves what was imported of it before."""
    (tmp_path / "apart" / "blocked" / "inner").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path / "apart")
    import_by_name("blocked.inner")
    monkeypatch.setitem(sys.modules, "blocked", None)
    for folder in in_folders(tmp_path, one__session_before="", two__session_after=""):
        with Session():
            import_from([folder])
    assert import_by_name("session_after")
    monkeypatch.delitem(sys.modules, "blocked.inner")


def test_code_left_over_from_a_run_may_import_until_another_run_begins(tmp_path):
    (folder,) = in_folders(tmp_path, one__session_lately="")
    with Session():
        import_from([folder])
    assert import_by_name("session_lately").__name__ in sys.modules


def test_a_run_finds_its_modules_again_as_they_were(tmp_path):
    folders = in_folders(tmp_path, one__session_parts__counter="COUNT = []", two__session_parts__counter="COUNT = None")
    seen = []
    for folder in (folders[0], folders[1], folders[0]):
        with Session():
            import_from([folder])
            seen.append(__import__("session_parts.counter").counter.COUNT)
    assert seen[1] is None
    assert seen[0] is seen[2]


def test_modules_that_a_run_imports_late_are_its_own(tmp_path):
    text = "def say():\n    import session_late\n    return session_late.PLACE\n"
    folders = in_folders(
        tmp_path,
        one__session_says=text,
        one__session_late="PLACE = 1",
        two__session_says=text,
        two__session_late="PLACE = 2",
    )
    seen = []
    for folder in folders:
        with Session():
            import_from([folder])
            seen.append(import_by_name("session_says").say())
    assert seen == [1, 2]


def test_folders_that_the_program_itself_has_on_its_path_stay(tmp_path, monkeypatch):
    folders = in_folders(tmp_path, one__session_programs="", two__session_other="")
    monkeypatch.syspath_prepend(folders[0])
    for folder in folders:
        with Session():
            import_from([folder])
    assert import_by_name("session_programs")


def test_a_module_of_the_program_in_the_place_of_a_runs_own_is_named(tmp_path, monkeypatch):
    folders = in_folders(
        tmp_path, one__session_tools="", two__session_tools="", two__session_uses="def use(): import session_tools"
    )
    monkeypatch.syspath_prepend(folders[0])
    __import__("session_tools")
    for _ in range(2):  # the second attempt is no better
        with Session():
            import_from(folders[1:])
            with pytest.raises(ImportError) as refused:
                import_by_name("session_uses")
        assert all(f"{folder}/session_tools.py" in str(refused.value) for folder in folders)
        assert "session_uses.py imports 'session_tools'" in str(refused.value)


@pytest.mark.parametrize("loaded", [True, False])
def test_what_only_a_run_at_the_same_time_has_is_named(tmp_path, loaded):
    folders = in_folders(
        tmp_path, one__session_mine="", two__session_takes="try: import session_mine\nexcept ImportError: ..."
    )
    apart = copy_context()
    with Session():
        import_from(folders[:1])
        if loaded:
            import_by_name("session_mine")

        def other():
            with Session():
                import_from(folders[1:])
                import_by_name("session_takes")

        with pytest.raises(ImportError, match="'session_mine', which only another run"):
            apart.run(other)
    apart.run(other)


def test_two_runs_of_one_folder_share_its_modules(shops):
    seen = []
    with Session():
        loaded(shops[0])
        thread = threading.Thread(target=lambda: seen.append(loaded(shops[0])))
        thread.start()
        thread.join()
    assert seen == [("one", "one")]


def test_files_of_one_name_are_modules_of_their_own(shops):
    places = [module_at(Path(folder) / "session_depot" / "__init__.py").PLACE for folder in shops]
    assert places == ["one", "two"]


def test_a_file_that_many_threads_want_is_executed_once(tmp_path):
    file = tmp_path / "slow.py"
    file.write_text("import threading\nBEGUN.set()\nGO.wait(10)\nTIMES.append(1)\nREADY = True\n")
    begun, go, times, ready = threading.Event(), threading.Event(), [], []
    builtins.BEGUN, builtins.GO, builtins.TIMES = begun, go, times
    try:
        threads = [threading.Thread(target=lambda: ready.append(module_at(file).READY)) for _ in range(4)]
        for thread in threads:
            thread.start()
        begun.wait(10)
        go.set()
        for thread in threads:
            thread.join()
    finally:
        del builtins.BEGUN, builtins.GO, builtins.TIMES
    assert (times, ready) == ([1], [True] * 4)
