"""What sessions change for the whole process: the two streams, `os._exit` and, for the command line, `os.environ`.

For the command line the descriptor of standard output changes with its stream. The first session that needs a change
makes it, and the last one to close undoes it, whatever the order in which they close. The caller's context variable
tells at each call which session a print or an exit belongs to: saving and restoring like a stack would leave one run's
replacement behind when two runs overlap.
"""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TextIO

if TYPE_CHECKING:
    from evalwright.files.masker import Masker

__all__ = [
    "ExitRefused",
    "Hiding",
    "Holder",
    "MaskedStream",
    "Process",
    "Router",
    "end_child",
    "open_closed_streams",
]


class _Unclosable(io.BufferedWriter):
    """Bytes with several writers: when one of them closes it, the others can still write."""

    ended = False

    def close(self) -> None:
        super().close() if self.ended else self.flush()


class Router(io.TextIOBase):
    """A `sys.stdout` that decides at each write where the text goes: to stderr, or to the original stream.

    User code that closes its standard output closes nothing of ours. A router may be kept beyond its end, as by a
    logging handler or `redirect_stdout`; it then writes where output went `before`.
    """

    def __init__(
        self, before: TextIO, goes_to_stderr: Callable[[], bool], mask: Callable[[str], str] = lambda text: text
    ) -> None:
        self.before = before
        self._goes_to_stderr, self._mask = goes_to_stderr, mask
        sys.stderr.flush()
        # a descriptor of its own, as user code may close sys.stderr
        self._bytes = _Unclosable(io.FileIO(os.dup(2), "wb"))
        self._prints = io.TextIOWrapper(self._bytes, encoding="utf-8", errors="backslashreplace", line_buffering=True)

    def end(self) -> None:
        """Give the descriptor back."""
        self._goes_to_stderr = _never
        self._bytes.ended = True
        with suppress(OSError, ValueError):  # user code may have closed the descriptor all the same
            self._prints.close()

    @property
    def _stream(self) -> TextIO:
        return self._prints if self._goes_to_stderr() else self.before

    def write(self, text: str) -> int:
        self._stream.write(self._mask(text))
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        with suppress(ValueError):  # the underlying stream may be closed by then
            self.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self._stream.errors

    @property
    def buffer(self) -> Any:
        """The bytes underneath."""
        return _MaskedBytes(self._stream.buffer, self._mask)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _MaskedBytes(io.BufferedIOBase):
    """The bytes underneath a masked stream, masked as text in UTF-8; closing them closes nothing of ours."""

    def __init__(self, before: Any, mask: Callable[[str], str]) -> None:
        self._before, self._mask = before, mask

    def write(self, data: Any) -> int:
        given = bytes(data)
        text = given.decode("utf-8", "surrogateescape")
        self._before.write(self._mask(text).encode("utf-8", "surrogateescape"))
        return len(given)

    def flush(self) -> None:
        self._before.flush()

    def close(self) -> None:
        with suppress(ValueError):  # the underlying bytes may be closed by then
            self.flush()

    def fileno(self) -> int:
        return int(self._before.fileno())

    def isatty(self) -> bool:
        return bool(self._before.isatty())

    def writable(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._before, name)


class Hiding:
    """Masks a text with the secrets known when it is written: those of suites, and of the environment, to which user
    code may add."""

    def __init__(self, secrets: Callable[[], Mapping[str, str]]) -> None:
        self._secrets = secrets
        self._known: tuple[Mapping[str, str], Mapping[Any, Any]] | None = None
        self._masker: Masker | None = None

    def __call__(self, text: str) -> str:
        if text.isspace():  # each print writes its end by itself
            return text
        known = dict(self._secrets()), _variables()
        if self._masker is None or known != self._known:
            from evalwright.files.masker import Masker

            self._known, self._masker = known, Masker.of(known[0], dict(os.environ))
        return self._masker.mask_text(text)


def _variables() -> Mapping[Any, Any]:
    """The environment as `os.environ` holds it: decoding all of it at each print costs far more than masking a line."""
    return dict(getattr(os.environ, "_data", os.environ))


class MaskedStream(io.TextIOBase):
    """A `sys.stderr` that masks its text; it may be kept beyond its session, as by a logging handler."""

    def __init__(self, before: TextIO, mask: Callable[[str], str]) -> None:
        self.before: TextIO = before
        self._mask = mask

    def write(self, text: str) -> int:
        self.before.write(self._mask(text))
        return len(text)

    def flush(self) -> None:
        self.before.flush()

    def close(self) -> None:
        with suppress(ValueError):  # the underlying stream may be closed by then
            self.flush()

    def fileno(self) -> int:
        return self.before.fileno()

    def isatty(self) -> bool:
        return self.before.isatty()

    def writable(self) -> bool:
        return True

    @property
    def buffer(self) -> Any:
        """The bytes underneath."""
        return _MaskedBytes(self.before.buffer, self._mask)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.before.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self.before.errors

    def __getattr__(self, name: str) -> Any:
        return getattr(self.before, name)


def _never() -> bool:
    return False


class _Diverted:
    """Standard output itself leads to stderr: writes that bypass Python would corrupt a document printed later."""

    def __init__(self) -> None:
        self._kept: int | None = None
        with suppress(OSError):  # there may be no standard output
            self._kept = os.dup(1)
            os.dup2(2, 1)

    def end(self) -> None:
        if self._kept is not None:
            os.dup2(self._kept, 1)
            os.close(self._kept)


def open_closed_streams() -> None:
    """Connect standard streams that the caller closed (`2>&-`) to nowhere, for the whole life of a process of ours.

    Python has no objects for them then, and the next files opened get their numbers: output of a child of ours would
    end up in a file of the run.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


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
        self._diverted: _Diverted | None = None
        self._mask = Hiding(self._secrets)
        self._shared: dict[str, list[tuple[Holder, str]]] = {}
        """By variable, the values that sessions have set, newest last; the variable did not exist before."""
        # a child that was forked while another thread held the lock could never take it
        os.register_at_fork(
            before=self._lock.acquire, after_in_parent=self._lock.release, after_in_child=self._lock.release
        )

    def opened(self, session: Holder) -> None:
        """Make the changes that a session needs and that have not been made yet."""
        with self._lock:
            self._open.append(session)
            if self._exit is None:
                self._exit, os._exit = os._exit, self._end  # type: ignore[assignment]
            if session.to_stderr and self._router is None:
                with suppress(OSError, ValueError):
                    sys.stdout.flush()  # before its descriptor leads elsewhere
                self._router = Router(sys.stdout, self._goes_to_stderr, self._mask)
                sys.stdout = self._router
            if session.owns_process and self._errors is None:
                # before any user code is imported: a logging handler keeps the stream that it finds then
                self._errors = MaskedStream(sys.stderr, self._mask)
                sys.stderr = self._errors
            if session.to_stderr and session.owns_process and self._diverted is None:
                self._diverted = _Diverted()

    def closed(self, session: Holder) -> None:
        """Undo the changes that no open session needs any more."""
        with self._lock:
            self._open.remove(session)
            self._withdraw(session)
            if not self._open and self._exit is not None:
                os._exit, self._exit = self._exit, None  # type: ignore[assignment]
            if self._router is not None and not any(one.to_stderr for one in self._open):
                sys.stdout = self._router.before
                self._router.end()
                self._router = None
            if self._diverted is not None and not any(one.to_stderr and one.owns_process for one in self._open):
                self._diverted.end()
                self._diverted = None
            if self._errors is not None and not any(one.owns_process for one in self._open):
                sys.stderr, self._errors = self._errors.before, None

    def others(self, sessions: Collection[Holder]) -> list[Holder]:
        """The open sessions other than these."""
        with self._lock:
            return [one for one in self._open if one not in sessions]

    def folders(self) -> set[str]:
        """The folders of all open sessions."""
        return {folder for one in self.others(()) for folder in one.folders}

    def is_offline(self) -> bool:
        """Whether connections that leave this machine are refused here.

        Threads in which event loops look up names belong to no session: they are refused while any session wants it.
        """
        session = self._here()
        return any(one.offline for one in self._open) if session is None else session.offline

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
        known = list({id(one.secrets): one.secrets for one in list(self._open)}.values())
        if len(known) == 1:
            return known[0]
        return {f"{number}:{name}": value for number, one in enumerate(known) for name, value in one.items()}

    def _withdraw(self, session: Holder) -> None:
        for name, put in self._shared.items():
            left = [one for one in put if one[0] is not session]
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
        return any(one.owns_process and one.to_stderr for one in self._open)

    def _end(self, status: int) -> None:
        """`os._exit` while a session is open. In children that user code has forked it behaves as usual."""
        pid = os.getpid()
        mine = [one for one in self._open if one.pid == pid]
        if mine and (self._here() is not None or any(one.owns_process for one in mine)):
            raise ExitRefused(f"the code called os._exit({status}); run it with isolation: process")
        assert self._exit is not None
        self._exit(status)
