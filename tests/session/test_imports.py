"""User code of several suites in one process: files are modules of their own, names are those of the run."""

import builtins
import threading
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


def test_two_runs_of_one_folder_share_its_modules(shops):
    found = []
    with Session():
        loaded(shops[0])
        thread = threading.Thread(target=lambda: found.append(loaded(shops[0])))
        thread.start()
        thread.join()
    assert found == [("one", "one")]


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
