"""What sessions change for the whole process: the two streams, `os._exit` and, for the command line, `os.environ`.

For the command line the descriptor of standard output changes with its stream. The first session that needs a change
makes it, and the last one to close undoes it, whatever the order in which they close. The caller's context variable
tells at each call which session a print or an exit belongs to: saving and restoring like a stack would leave one run's
replacement behind when two runs overlap.

A process that is ours also hardly ever searches for garbage before the first user code, and as usual from then on.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import takewhile
from typing import NoReturn, Protocol

from evalwright.session.streams import DivertedOutput, MaskedStream, Router, SecretMask
from evalwright.user_code import code_of_others

__all__ = [
    "ExitRefused",
    "Holder",
    "Process",
    "end_child",
    "end_without_search",
    "is_owned",
    "only_ours",
    "returning",
    "users_begin",
    "working_directory",
]

_WHILE_OURS = 50_000
"""Objects made before the next garbage collection, as long as no user code has been imported."""
_usual: tuple[int, int, int] | None = None
"""The usual collection thresholds, kept until user code is imported; None afterwards."""
_newest = ""
"""The module that had been imported last when this process was declared ours."""
_owners = 0
"""The open sessions that own this process."""
_users_folder = ""
"""The working directory that users' code has chosen; empty as long as it chose none."""
_in_users_folder = False


def end_child(error: object = None) -> NoReturn:
    """End this process, a child that user code has forked, and which has come back from there to our code.

    It is a copy of all of ours: going on, it would call and record the rest of the run a second time. It ends with the
    status of a program: 0 or, after an `error`, that of SystemExit or 1.
    """
    status = 0 if error is None else 1
    if isinstance(error, SystemExit):
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    os._exit(status & 0xFF)


class ExitRefused(BaseException):
    """User code called `os._exit`, which would have ended the run without a word."""


class Holder(Protocol):
    """What the process needs to know about a session."""

    @property
    def owns_process(self) -> bool: ...

    @property
    def to_stderr(self) -> bool: ...

    @property
    def pid(self) -> int: ...

    @property
    def folders(self) -> set[str]: ...

    @property
    def secrets(self) -> Mapping[str, str]: ...

    @property
    def offline(self) -> bool: ...


class Process:
    """The changes, and the open sessions that need them. `here` returns the caller's session."""

    def __init__(self, here: Callable[[], Holder | None]) -> None:
        self._here = here
        self._lock = threading.Lock()
        self._open: list[Holder] = []
        self._exit: Callable[[int], object] | None = None
        self._router: Router | None = None
        self._errors: MaskedStream | None = None
        self._diverted: DivertedOutput | None = None
        self._hiding = SecretMask(self._secrets)
        self._shared: dict[str, list[tuple[Holder, str]]] = {}
        """By variable, the values that sessions have set, newest last; the variable did not exist before."""
        # a child that was forked while another thread held the lock could never take it
        os.register_at_fork(
            before=self._lock.acquire, after_in_parent=self._lock.release, after_in_child=self._lock.release
        )

    def opened(self, session: Holder) -> None:
        """Make the changes that a session needs and that have not been made yet."""
        global _owners
        with self._lock:
            self._open.append(session)
            _owners += session.owns_process
            if self._exit is None:
                self._exit, os._exit = os._exit, self._end  # type: ignore[assignment]
            if session.to_stderr and self._router is None:
                with suppress(OSError, ValueError):
                    sys.stdout.flush()  # before its descriptor leads elsewhere
                self._router = Router(sys.stdout, self._goes_to_stderr, self._hiding)
                sys.stdout = self._router
            if session.owns_process and self._errors is None:
                # before any user code is imported: a logging handler keeps the stream that it finds then
                self._errors = MaskedStream(sys.stderr, self._hiding)
                sys.stderr = self._errors
            if session.to_stderr and session.owns_process and self._diverted is None:
                self._diverted = DivertedOutput()

    def closed(self, session: Holder) -> None:
        """Undo the changes that no open session needs any more."""
        global _owners, _users_folder
        with self._lock:
            self._open.remove(session)
            _owners -= session.owns_process
            if not _owners:
                _users_folder = ""
            self._withdraw(session)
            if not self._open and self._exit is not None:
                os._exit, self._exit = self._exit, None  # type: ignore[assignment]
            # Each is noted as undone first: the outer session closes, too, if Ctrl-C comes in between.
            if self._router is not None and not any(opened.to_stderr for opened in self._open):
                router, self._router = self._router, None
                sys.stdout = router.before
                router.end()
            if self._diverted is not None and not any(
                opened.to_stderr and opened.owns_process for opened in self._open
            ):
                diverted, self._diverted = self._diverted, None
                diverted.end()
            if self._errors is not None and not any(opened.owns_process for opened in self._open):
                errors, self._errors = self._errors, None
                sys.stderr = errors.before
                errors.end()

    def others(self, sessions: Collection[Holder]) -> list[Holder]:
        """The open sessions other than these."""
        with self._lock:
            return [session for session in self._open if session not in sessions]

    def folders(self) -> set[str]:
        """The folders of all open sessions."""
        return {folder for session in self.others(()) for folder in session.folders}

    def is_offline(self) -> bool:
        """Whether connections that leave this machine are refused here.

        Threads in which event loops look up names belong to no session: they are refused while any session wants it.
        """
        session = self._here()
        return any(opened.offline for opened in self._open) if session is None else session.offline

    def share(self, session: Holder, variables: Mapping[str, str]) -> None:
        """Put variables into `os.environ` until the session closes; values set there by others win."""
        with self._lock:
            for name, value in variables.items():
                put = self._shared.setdefault(name, [])
                if os.environ.get(name) == (put[-1][1] if put else None):
                    put.append((session, value))
                    os.environ[name] = value

    def environment(self) -> dict[str, str]:
        """`os.environ` without the values that sessions have set, which come from their own suites."""
        with self._lock:
            ours = {name: put[-1][1] for name, put in self._shared.items() if put}
            return {name: value for name, value in os.environ.items() if ours.get(name) != value}

    def _secrets(self) -> Mapping[str, str]:
        """The secrets of all open sessions: a thread without a session prints, too."""
        known = list({id(session.secrets): session.secrets for session in list(self._open)}.values())
        if len(known) == 1:
            return known[0]
        return {f"{number}:{name}": value for number, secrets in enumerate(known) for name, value in secrets.items()}

    def _withdraw(self, session: Holder) -> None:
        for name, put in self._shared.items():
            left = [entry for entry in put if entry[0] is not session]
            if len(left) < len(put) and os.environ.get(name) == put[-1][1]:  # else user code has set it since
                if left:
                    os.environ[name] = left[-1][1]
                else:
                    del os.environ[name]
            put[:] = left

    def _goes_to_stderr(self) -> bool:
        session = self._here()
        if session is not None:
            return session.to_stderr
        return any(opened.owns_process and opened.to_stderr for opened in self._open)

    def _end(self, status: int) -> None:
        """`os._exit` while a session is open. In children that user code has forked it behaves as usual."""
        pid = os.getpid()
        sessions = [opened for opened in self._open if opened.pid == pid]
        if sessions and (self._here() is not None or any(session.owns_process for session in sessions)):
            raise ExitRefused(f"the code called os._exit({status}); run it with isolation: process")
        assert self._exit is not None
        self._exit(status)


def is_owned() -> bool:
    """Whether some open session owns this process."""
    return _owners > 0


@contextmanager
def returning() -> Iterator[None]:
    """Users' code in the block may change the working directory of a process that is ours: it finds the one to which it
    went before, and relative paths that we read, write or print afterwards mean the one where the work began."""
    global _in_users_folder, _users_folder
    if _in_users_folder or not is_owned():
        yield
        return
    ours = working_directory()
    _change_to(_users_folder)
    _in_users_folder = True
    try:
        yield
    finally:
        _in_users_folder = False
        here = working_directory()
        if here != (_users_folder or ours):
            _users_folder = here
        _change_to(ours)


def working_directory() -> str:
    """That of the process; empty if it is gone."""
    try:
        return os.getcwd()  # noqa: PTH109 - no path is needed yet
    except OSError:
        return ""


def _change_to(folder: str) -> None:
    if folder:
        with suppress(OSError):  # it is gone
            os.chdir(folder)


def only_ours() -> None:
    """Spare this process, which is ours and has imported no user code yet, most garbage collections.

    The objects made at first are modules and a suite, which stay: searching them takes a tenth of a small run.
    """
    global _newest, _usual
    _newest = next(reversed(sys.modules))
    _usual = gc.get_threshold()
    gc.set_threshold(_WHILE_OURS)


def users_begin() -> None:
    """From now on collect garbage as users' code expects, but never search the objects that exist already."""
    global _usual
    if _usual is not None:
        gc.freeze()
        gc.set_threshold(*_usual)
        _usual = None


def end_without_search() -> None:
    """Spare the interpreter the final garbage collection of this process, which is ours: a fifth of a small run.

    If users' code was imported since it became ours, the objects it left are still searched: their finalisers may have
    something to do.
    """
    since = [*takewhile(lambda name: name != _newest, reversed(sys.modules))]
    files = [getattr(sys.modules[name], "__file__", None) for name in since]
    if all(file is None or file.startswith(code_of_others()) for file in files):
        gc.freeze()
