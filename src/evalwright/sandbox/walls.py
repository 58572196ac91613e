"""Keeps foreign code from harming the machine, as far as the system allows. Imports the standard library only.

On Linux with namespaces such code has no network, sees no other process and can change files only in an empty folder
that disappears with it; as root it first becomes a user that has nothing. With Landlock it reads nothing but the
interpreter, installed packages and the system. Everywhere it has limits of memory, processor time, files and processes.
A wall that cannot be raised is reported, not required: containers often forbid namespaces.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from evalwright.sandbox.landlock import Landlock, places_of_python

__all__ = ["Walls"]

_MEMORY = 512 * 2**20
_LARGEST_FILE = 2**20
_MOST_PROCESSES = 16
_MOST_FILES = 64
_NOBODY = 65534
_PASSING_USERS = range(61_184, 65_520)
"""The range that systemd uses for transient users who own nothing."""
_SCRATCH = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))
"""Folders over which an empty one can be mounted: the first that contains no part of the interpreter."""

# Python has no names for these: CLONE_NEW* of unshare(2), MS_* of mount(2), mount_setattr(2) with its flags,
# PR_SET_* of prctl(2), and version 3 of capset(2) with CAP_DAC_READ_SEARCH.
_NEW_MOUNTS, _NEW_IPC, _NEW_USER, _NEW_PIDS, _NEW_NETWORK = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_PRIVATE, _RECURSIVE = 0x40000, 0x4000
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _READ_ONLY = 442, -100, 0x8000, 1
_DIE_WITH_PARENT, _DUMPABLE, _KEEP_CAPABILITIES, _REAPER, _NO_NEW_PRIVILEGES = 1, 4, 8, 36, 38
_AMBIENT, _AMBIENT_RAISE, _NUMBER_OF_READ_ALL = 47, 2, 2
_CAPABILITIES_VERSION, _READ_ALL = 0x20080522, 1 << _NUMBER_OF_READ_ALL
_REFUSED = frozenset({
    "socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "os.kill", "os.killpg",
    "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen", "os.remove",
    "os.rename", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.link", "os.symlink", "os.truncate",
})  # fmt: skip
"""Audit events that Python itself rejects if the system has no walls: only a fence, which code can get around."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Walls:
    """Raised once, in the process that forks for each piece of code; entered by each of its children."""

    def __init__(self, *readable: Path) -> None:
        """`readable`: places that the code needs besides the interpreter."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._root = os.geteuid() == 0
        self._apart = False
        self._read_only = False
        # The kernel counts processes by user, over the whole machine: `nobody` would share its limit with other runs.
        self._user = _PASSING_USERS[int.from_bytes(os.urandom(4)) % len(_PASSING_USERS)]
        self._counted = 0
        needed = places_of_python()
        self._landlock = Landlock([*needed, *readable])
        self._needs_reading = not all(map(_open_to_all, needed))
        self._wants_reading = not all(map(_open_to_all, readable))
        self._scratch = next((place for place in _SCRATCH if not _holds(place, needed)), None)

    def raise_up(self) -> list[str]:
        """Take from this process what its children must not have; returns what could not be taken away."""
        if sys.platform == "linux":
            self._prctl(_REAPER, 1)  # what a child leaves behind becomes ours, and can be killed
            self._apart = self._leave()
            self._read_only = self._apart and self._freeze_files()
            if not (self._root or self._apart):  # processes that the user already runs count, too
                self._counted = _running(os.geteuid())
            # Keeps code from reading our memory through /proc. Last, because the id maps above could not be written
            # afterwards.
            self._prctl(_DUMPABLE, 0)
        closed = self._landlock.holds
        held = (("network", self._apart), ("files", self._read_only or closed), ("reading", closed))
        return [what for what, is_held in held if not is_held]

    def enter(self, seconds: float) -> None:
        """Go behind the walls for good, in a child that runs code next; it gets `seconds` of processor time."""
        if sys.platform == "linux":
            self._prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if self._apart:
            self._enter_namespaces(self._scratch)
        if sys.platform == "linux":
            self._drop_privileges(self._scratch if self._read_only else None)
        # After the fork for the namespaces: the limit of processes counts all of this user's. The limit of processor
        # time is 2 s above the time limit that the parent watches, and only matters if the parent is gone.
        _limit(
            (resource.RLIMIT_AS, _MEMORY),
            (resource.RLIMIT_FSIZE, _LARGEST_FILE),
            (resource.RLIMIT_NPROC, self._counted + _MOST_PROCESSES),
            (resource.RLIMIT_CPU, int(seconds) + 2),
        )
        if not self._apart:
            sys.addaudithook(_refuse)

    def enter_to_stay(self) -> None:
        """Go behind the walls for good, in a process that becomes a program with its own limits of time and memory."""
        if self._apart:
            self._enter_namespaces(None)
        if sys.platform == "linux":
            self._drop_privileges(None)
        # No limit on address space, of which Node reserves far more than it uses; and its threads count as processes.
        _limit((resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NPROC, self._counted + 4 * _MOST_PROCESSES))

    def _leave(self) -> bool:
        namespaces = _NEW_MOUNTS | _NEW_IPC | _NEW_NETWORK
        if self._root and self._libc.unshare(namespaces) == 0:
            return True
        uid, gid = os.geteuid(), os.getegid()
        if self._root or self._libc.unshare(namespaces | _NEW_USER) != 0:
            return False
        # Without this the kernel lets no unprivileged process write its map of groups (user_namespaces(7)).
        with suppress(OSError):
            Path("/proc/self/setgroups").write_text("deny")
        with suppress(OSError):
            Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
            Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
        return True

    def _freeze_files(self) -> bool:
        # Private first: otherwise the change would spread to the mounts of the machine.
        if self._mount(None, b"/", None, _PRIVATE | _RECURSIVE, None) != 0:
            return False
        wanted = (ctypes.c_uint64 * 4)(_READ_ONLY, 0, 0, 0)
        size = ctypes.c_size_t(ctypes.sizeof(wanted))
        return bool(self._libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, b"/", _AT_RECURSIVE, wanted, size) == 0)

    def _enter_namespaces(self, scratch: Path | None) -> None:
        """Continue as the first process of a new namespace: when it ends, the kernel ends all others in there."""
        if self._libc.unshare(_NEW_MOUNTS | _NEW_PIDS) != 0:
            raise OSError(ctypes.get_errno(), "no namespace for the code")
        inner = os.fork()  # the caller of unshare itself stays outside; only its children are inside
        if inner:
            _end_as(os.waitpid(inner, 0)[1])
        self._prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if self._read_only:
            self._empty(Path("/proc"), b"size=4k,mode=555")  # the old one shows all processes of the machine
        if self._read_only and scratch is not None:
            self._empty(scratch, b"size=16m,mode=1777")
            os.chdir(scratch)

    def _empty(self, folder: Path, options: bytes) -> None:
        if self._mount(b"none", bytes(folder), b"tmpfs", 0, options) != 0:
            raise OSError(ctypes.get_errno(), f"no empty {folder} for the code")

    def _drop_privileges(self, scratch: Path | None) -> None:
        kept = 0
        if self._root:
            # An interpreter in a folder that only root can enter could not be imported from without the right to read
            # it. That is the right to read everything, so it is kept only where Landlock limits it.
            if self._needs_reading and not self._landlock.holds:
                needed = f"a Python that all users can read, not {sys.base_prefix}"
                raise PermissionError(f"checks run without the rights of root, and need {needed}")
            wanted = self._wants_reading and self._landlock.holds
            kept = _READ_ALL if self._needs_reading or wanted else 0
            self._prctl(_KEEP_CAPABILITIES, 1)  # changing the user would drop it
            with suppress(OSError):  # some containers have root only, without the right to become another user
                os.setgroups([])
            for user in (self._user, _NOBODY):  # some containers have few users
                with suppress(OSError):  # groups before the user: afterwards the right to change them is gone
                    os.setresgid(user, user, user)
                    os.setresuid(user, user, user)
                    break
        self._prctl(_NO_NEW_PRIVILEGES, 1)  # no set-user-ID program gives them back
        header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0)
        self._libc.capset(header, (ctypes.c_uint32 * 6)(kept, kept, kept, 0, 0, 0))
        if kept:  # ambient, because a program that this process becomes would otherwise lose it
            self._libc.prctl(_AMBIENT, _AMBIENT_RAISE, _NUMBER_OF_READ_ALL, 0, 0)
        self._prctl(_DIE_WITH_PARENT, signal.SIGKILL)  # cleared by the change of user
        self._prctl(_DUMPABLE, 0)
        if self._landlock.holds:
            self._landlock.restrict(scratch)

    def _prctl(self, what: int, value: int) -> None:
        self._libc.prctl(what, ctypes.c_ulong(value), 0, 0, 0)

    def _mount(self, source: bytes | None, target: bytes, kind: bytes | None, flags: int, data: bytes | None) -> int:
        return int(self._libc.mount(source, target, kind, ctypes.c_ulong(flags), data))


def _limit(*limits: tuple[int, int]) -> None:
    for what, most in (*limits, (resource.RLIMIT_NOFILE, _MOST_FILES), (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError, OSError):  # macOS does not enforce RLIMIT_AS
            resource.setrlimit(what, (most, most))


def _running(user: int) -> int:
    """Threads of a user's processes, as far as they can be seen."""
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            if process.stat().st_uid == user:
                count += sum(1 for _ in (process / "task").iterdir())
    return count


def _end_as(status: int) -> NoReturn:
    """End in the same way as a child did, so that our parent sees its exit code or signal."""
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the child has crashed, not we
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))


def _holds(folder: Path, needed: Iterable[Path]) -> bool:
    return not folder.is_dir() or any(path.resolve().is_relative_to(folder.resolve()) for path in needed)


def _open_to_all(folder: Path) -> bool:
    """Whether a user that owns nothing can reach the folder."""
    with suppress(OSError):
        path = folder.resolve()
        return all(place.stat().st_mode & stat.S_IXOTH for place in (path, *path.parents))
    return False


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _REFUSED or (event == "open" and _is_refused(*arguments)):
        raise PermissionError(f"checks may not do this: {event}")


def _is_refused(path: Any, _mode: str | None, flags: int) -> bool:
    if flags & _WRITING:
        return bool(path != os.devnull)
    # Files of /proc in which the run's secrets are.
    return isinstance(path, str | bytes) and Path(os.fsdecode(path)).name in ("environ", "mem")
