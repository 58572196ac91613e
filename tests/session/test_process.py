"""What sessions do to the process: for whom they do it, and that nothing of it stays."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from evalwright.session import ExitRefused, Session, environment, hide, learn, returning, session
from evalwright.session.streams import SecretMask


def in_thread(call):
    """What a call gives in a thread without the context of this one."""
    seen = []
    thread = threading.Thread(target=lambda: seen.append(call()))
    thread.start()
    thread.join()
    return seen[0]


def exit_here():
    """How `os._exit` ends in this thread; one that works is replaced in the test."""
    try:
        os._exit(7)
    except ExitRefused as refused:
        return str(refused)
    return "ended"


@pytest.fixture
def exits(monkeypatch):
    """Exits end nothing in the test."""
    monkeypatch.setattr(os, "_exit", lambda status: None)


@pytest.mark.parametrize(("owns_process", "elsewhere"), [(True, "isolation: process"), (False, "ended")])
def test_exits_are_refused_in_the_context_and_by_the_owner_everywhere(exits, owns_process, elsewhere):
    with Session(owns_process=owns_process, stdout="keep"):
        assert "isolation: process" in exit_here()
        assert elsewhere in in_thread(exit_here)
    assert exit_here() == "ended"


def test_a_forked_child_may_still_exit():
    with Session(owns_process=True, stdout="keep"):
        child = os.fork()
        if child == 0:
            os._exit(7)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7


def test_a_forked_child_with_a_session_of_its_own_refuses_until_that_closes():
    with Session(owns_process=True, stdout="keep"):
        child = os.fork()
        if child == 0:
            with Session(stdout="keep"):
                refused = exit_here()
            os._exit(7 if "isolation" in refused else 1)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7


def test_prints_go_to_stderr_for_who_owns_the_process_and_stay_for_all_others(capfd):
    with Session():
        print("of a run from Python")
        with Session(owns_process=True):
            print("of the command line")
            in_thread(lambda: print("of its thread"))
        print("of the first again")
    out, err = capfd.readouterr()
    assert out.splitlines() == ["of a run from Python", "of the first again"]
    assert err.splitlines() == ["of the command line", "of its thread"]


def test_a_session_keeps_its_prints_while_another_owns_the_process(capfd):
    opened, printed = threading.Event(), threading.Event()

    def own():
        with Session(owns_process=True):
            opened.set()
            printed.wait(10)

    thread = threading.Thread(target=own)
    with Session():
        thread.start()
        opened.wait(10)
        print("kept")
        in_thread(lambda: print("the owner's"))
        printed.set()
        thread.join()
    out, err = capfd.readouterr()
    assert (out, err) == ("kept\n", "the owner's\n")


def test_user_code_that_closes_its_stdout_takes_it_from_nobody(capfd):
    with Session(owns_process=True):
        sys.stdout.buffer.close()
        sys.stdout.close()
        print("still there")
        held = sys.stdout
    held.write("kept beyond the end\n")
    held.flush()
    out, err = capfd.readouterr()
    assert (out, err) == ("kept beyond the end\n", "still there\n")


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_secret_is_masked_that_is_printed_in_pieces(capfd, name):
    with Session(owns_process=True):
        hide({"WORD": "hush-hush-1234567890"})
        stream = getattr(sys, name)
        for piece in "my hush-hush-1234567890!\n":
            print(piece, end="", file=stream, flush=True)
        for piece in (b"its hush-", b"hush-12345", b"67890.\n"):
            stream.buffer.write(piece)
            stream.buffer.flush()
    out, err = capfd.readouterr()
    assert (out, sorted(err.splitlines())) == ("", ["its ***MASKED***.", "my ***MASKED***!"])


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_what_only_begins_like_a_secret_is_printed_in_the_end(capfd, name):
    with Session(owns_process=True):
        hide({"WORD": "hush-hush-1234567890"})
        print("all is hush", end="", file=getattr(sys, name))
    assert capfd.readouterr().err == "all is hush"


def test_a_session_within_the_owners_is_the_owners():
    with Session(owns_process=True, stdout="keep"), Session(stdout="keep") as inner:
        assert inner.owns_process


def test_models_are_those_of_the_nearest_session_that_has_some():
    with Session(models=lambda: "outer"), Session():
        assert session().models == "outer"
        with Session(models=lambda: "inner"):
            assert session().models == "inner"
        assert session().models == "outer"
    with pytest.raises(RuntimeError):
        session()
    with Session(), pytest.raises(RuntimeError):
        _ = session().models


@pytest.fixture
def variables(monkeypatch):
    """One variable that the process has; what else the test sets does not outlive it."""
    monkeypatch.setattr(os, "environ", {"SESSION_A": "of the process"})


def test_the_process_wins_over_the_suites_variables_which_stay_in_the_session(variables):
    before = dict(os.environ)
    with Session(environment={"SESSION_A": "1", "SESSION_B": "2"}):
        assert [environment()[f"SESSION_{key}"] for key in "AB"] == ["of the process", "2"]
        with Session():
            learn({"SESSION_B": "2"})
            assert environment()["SESSION_B"] == "2"
        assert os.environ == before
    assert "SESSION_B" not in environment()


def test_user_code_finds_them_in_the_process_that_is_ours_until_its_session_closes(variables):
    before = dict(os.environ)
    with Session(owns_process=True, stdout="keep"):
        learn({"SESSION_B": "0"})
        with Session(environment={"SESSION_A": "1", "SESSION_B": "2"}):
            assert [os.environ[f"SESSION_{key}"] for key in "AB"] == ["of the process", "2"]
            assert environment()["SESSION_B"] == "2"
        assert os.environ["SESSION_B"] == "0"
        os.environ["SESSION_B"] = "of user code"
    assert os.environ == {**before, "SESSION_B": "of user code"}


def test_prints_are_masked_with_what_the_environment_holds_by_then(monkeypatch):
    hide = SecretMask(dict)
    assert hide("a value-of-user-code") == "a value-of-user-code"
    monkeypatch.setenv("SOME_TOKEN", "value-of-user-code")
    assert hide("a value-of-user-code") == "a ***MASKED***"
    monkeypatch.setenv("SOME_TOKEN", "another-value")
    assert hide("now another-value") == "now ***MASKED***"


INTERRUPTED = """
import sys
from evalwright.session import Session

def interrupt(frame, event, argument):
    if event == "return" and frame.f_code.co_qualname == "DivertedOutput.end":
        raise KeyboardInterrupt
    return interrupt

try:
    with Session(owns_process=True, stdout="keep"):
        with Session(owns_process=True):
            sys.settrace(interrupt)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.cold
def test_what_ctrl_c_finds_undone_is_not_undone_again():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_a_folder_that_users_code_goes_to_is_kept_for_it_until_its_session_ends(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (there := tmp_path / "there").mkdir()

    def owning():
        return Session(owns_process=True, stdout="keep")

    with owning():
        with returning():
            os.chdir(there)
        before = Path.cwd()
        with returning():
            assert (before, Path.cwd()) == (tmp_path, there)
    with owning(), returning():
        assert Path.cwd() == tmp_path
    with returning():  # a process of someone else
        os.chdir(there)
    assert Path.cwd() == there
