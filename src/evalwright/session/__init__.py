"""One piece of work on a run, and everything process-wide while it lasts.

Code that works for a session finds it by a context variable, which tasks, `asyncio.to_thread` and the threads of
targets and evaluators carry along: two runs in one process never see each other's models, money, variables or prints.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal

from evalwright.session.imports import leave, make_importable
from evalwright.session.process import ExitRefused, Process, returning, working_directory

if TYPE_CHECKING:
    from evalwright.model.chat import Models

__all__ = [
    "ExitRefused",
    "Session",
    "environment",
    "hidden",
    "hide",
    "import_from",
    "is_offline",
    "learn",
    "looking",
    "owns_process",
    "process_environment",
    "refuse_network",
    "returning",
    "session",
    "session_began",
    "session_path",
]


class Session:
    """One piece of work on a run: its models, its environment, and what it may do to the process.

    In the block, and in all tasks and threads that carry its context, `session()` is this one. Sessions may close in
    any order; afterwards `sys.stdout`, `os._exit` and `os.environ` are what they were.
    """

    def __init__(
        self,
        *,
        owns_process: bool = False,
        models: Callable[[], Models] | None = None,
        environment: Mapping[str, str] | None = None,
        stdout: Literal["stderr", "keep"] | None = None,
    ) -> None:
        """`models` makes them; `environment` has the variables of the suite's `.env` files; None: the surrounding
        session's.

        With `owns_process` the process is ours, as for the command line: there may be signal handlers and a timer,
        `os._exit` is refused in every thread, and the variables are in `os.environ`, too. A session within such a
        session owns the process as well. Any other changes nothing outside its own context. `stdout` says where prints
        go: to stderr for sessions that own the process, unless it is "keep".
        """
        self.owns_process: bool = owns_process
        self.pid: int = os.getpid()
        self.began: float = time.monotonic()
        """Seconds of `time.monotonic`."""
        self.folder: str = working_directory()
        """The working directory when this piece of work began; users' code may change that of the process. Empty if it
        is gone."""
        self._make_models = models
        self._models: Models | None = None
        self._making = threading.Lock()
        self._variables = environment
        self._stdout = stdout
        self._outer: Session | None = None
        self.folders: set[str] = set()
        """Where its code is imported from."""
        self.secrets: dict[str, str] = {}
        """Values that suites took from variables, by name: nothing that is written or shown may contain one."""
        self.offline: bool = False
        """Whether connections that leave this machine are rejected."""
        self._is_open = False

    def __enter__(self) -> Session:
        self._outer = outer = _innermost_session()
        if outer is not None:
            self.owns_process = self.owns_process or outer.owns_process
            self.offline = self.offline or outer.offline
            if self._variables is None:
                self._variables = outer._variables
            self.secrets = outer.secrets  # one set: what is learned inside is also masked by the surrounding sessions
        self._is_open = True
        _process.opened(self)
        _current.set(self)
        self.learn({})
        return self

    def __exit__(self, *_: object) -> None:
        self._is_open = False
        leave(self.folders)
        _process.closed(self)
        # no token: it would restore a session that has been closed meanwhile
        if _current.get() is self:
            _current.set(_innermost_session())

    @property
    def to_stderr(self) -> bool:
        """Whether prints go to stderr."""
        return self._stdout == "stderr" or (self._stdout is None and self.owns_process)

    @property
    def models(self) -> Models:
        """Made on first use, as most runs need none. Raises RuntimeError if none can be made."""
        if self._make_models is None:
            if self._outer is None:
                raise RuntimeError("this session has no models")
            return self._outer.models
        with self._making:
            if self._models is None:
                self._models = self._make_models()
            return self._models

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the process over those of the suite's `.env` files; a copy."""
        return {**(self._variables or {}), **_process.environment()}

    def learn(self, variables: Mapping[str, str]) -> None:
        """Add variables of the suite; known ones take precedence. Also in `os.environ`, if the process is ours."""
        self._variables = {**variables, **(self._variables or {})}
        if self.owns_process:
            _process.share(self, self._variables)

    def import_paths(self, folders: Sequence[str]) -> None:
        """Put folders at the front of the import path, the first one first, until a later session needs other ones.

        Raises InputError if another session that is open has imported a module that one of these has, too.
        """
        make_importable(folders, *self._folders_apart(), self._check)
        self.folders.update(folders)

    def _folders_apart(self) -> tuple[set[str], set[str]]:
        """The folders of this piece of work, and those of all others going on."""
        chain = self._chain()
        own = {folder for open_session in chain for folder in open_session.folders}
        return own, {folder for holder in _process.others(chain) for folder in holder.folders}

    def _check(self, name: str, loaded: Collection[str]) -> None:
        if self._is_open and not self.owns_process:  # nothing else imports modules in a process of ours
            from evalwright.session.module_conflicts import must_belong

            must_belong(name, loaded, *self._folders_apart())

    def _chain(self) -> list[Session]:
        """This session and the surrounding ones, which are one piece of work."""
        return [self, *(self._outer._chain() if self._outer is not None else ())]

    async def aclose(self) -> None:
        """Close what the models hold open, in the event loop of their calls; a later call makes them again."""
        models, self._models = self._models, None
        if (closing := getattr(models, "close", None)) is not None:
            await closing()


_current: ContextVar[Session | None] = ContextVar("evalwright_session", default=None)


def _innermost_session() -> Session | None:
    """The session of this context; those that were closed elsewhere are left out."""
    current = _current.get()
    while current is not None and not current._is_open:
        current = current._outer
    return current


_looked_at: set[str] = set()
"""Folders of the code that is being looked at outside any session."""

# Code that a session left running may still print and exit: the closed session then answers for it.
_process = Process(lambda: _innermost_session() or _current.get())


def session() -> Session:
    """The session of this task or thread. Raises RuntimeError outside of a run."""
    current = _innermost_session()
    if current is None:
        raise RuntimeError("there is no run here: models can be called within a Session only")
    return current


def session_began() -> float:
    """When the current session began, in seconds of `time.monotonic`; outside any, this moment."""
    current = _innermost_session()
    return time.monotonic() if current is None else current.began


def session_path(path: str = ".") -> str:
    """A path that is relative to where the current session began to work, whatever users' code has done since."""
    current = _innermost_session()
    return path if current is None else os.path.join(current.folder, path)  # noqa: PTH118 - as it was written


def environment() -> Mapping[str, str]:
    """The variables that code called here should see: the current session's, or, outside a run, the process's."""
    current = _innermost_session()
    return os.environ if current is None else current.environment


def refuse_network() -> None:
    """Reject connections that leave this machine, in the current session and those within it."""
    from evalwright.session.network import listen

    session().offline = True
    listen(_process.is_offline)


def is_offline() -> bool:
    """Whether the current session rejects connections that leave this machine."""
    return _process.is_offline()


def owns_process() -> bool:
    """Whether the process is ours, as it is for the command line."""
    current = _innermost_session()
    return current is not None and current.owns_process


def process_environment() -> Mapping[str, str]:
    """The variables of the process, without those that sessions have added from their suites' `.env` files."""
    return _process.environment()


def learn(variables: Mapping[str, str]) -> bool:
    """Tell the current session about a suite's variables; False outside any session.

    User code that is loaded afterwards finds them in `os.environ`, if the session owns the process.
    """
    current = _innermost_session()
    if current is not None:
        current.learn(variables)
    return current is not None


def hide(secrets: Mapping[str, str]) -> None:
    """Tell the current session about a suite's secrets; without a session, the caller that loaded the suite has
    them."""
    current = _innermost_session()
    if current is not None:
        for name, value in secrets.items():
            if value not in current.secrets.values():
                # a number is appended if another suite uses the name for something else
                current.secrets[name if name not in current.secrets else f"{name}_{len(current.secrets)}"] = value


def hidden() -> Mapping[str, str]:
    """The secrets that the current session knows of."""
    current = _innermost_session()
    return {} if current is None else current.secrets


def import_from(folders: Sequence[str]) -> None:
    """`Session.import_paths` of the current session; outside any, for code that is only looked at."""
    current = _innermost_session()
    if current is not None:
        current.import_paths(folders)
    else:
        make_importable(folders, _looked_at, _process.folders(), _check_outside)
        _looked_at.update(folders)


def _check_outside(name: str, loaded: Collection[str]) -> None:
    from evalwright.session.module_conflicts import must_belong

    must_belong(name, loaded, _looked_at, _process.folders())


@contextmanager
def looking() -> Iterator[None]:
    """Code that is imported in the block, outside any session, is looked at: nothing needs its folders afterwards."""
    try:
        yield
    finally:
        if _innermost_session() is None:
            leave(_looked_at)
            _looked_at.clear()
