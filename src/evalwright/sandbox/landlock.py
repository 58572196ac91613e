"""Landlock: a process gives up access to files that it could otherwise open, even as root. Linux 5.13 and later.

Imports the standard library only. See landlock(7) and linux/landlock.h, the source of the numbers.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

__all__ = ["Landlock", "places_of_python"]

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_ALL_OF = {1: (1 << 13) - 1, 2: (1 << 14) - 1}
"""The kinds of access that the first versions know; from the third on there is also truncation. Later ones are not
needed."""
_ALL = (1 << 15) - 1
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | 1 << 14
_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/etc/ld.so.cache", "/etc/localtime"),
    *("/etc/mime.types", "/etc/nsswitch.conf", "/etc/passwd", "/etc/group", "/etc/ssl/openssl.cnf", "/etc/ssl/certs"),
    *("/etc/pki/tls/openssl.cnf", "/etc/pki/tls/certs", "/dev/zero", "/dev/random", "/dev/urandom"),
)
"""Programs, libraries and data of the system, which everyone may read."""


class _Rule(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"  # the only one that packs; Python 3.14 warns where it is not named
    _fields_ = (("access", ctypes.c_uint64), ("parent", ctypes.c_int32))


class Landlock:
    """What code may open: `readable` places and the system's for reading, and one folder for everything else.

    Created once, because it opens the places; each process that is to be restricted calls `restrict`.
    """

    def __init__(self, readable: Iterable[Path]) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        version = self._libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
        self.holds: bool = sys.platform == "linux" and version > 0
        """Whether this kernel restricts anything."""
        self._handled = _ALL_OF.get(version, _ALL)
        self._places: list[tuple[int, int]] = []
        if self.holds:
            reading = _READ_FILE | _READ_DIR | _EXECUTE
            for path in (*map(Path, _SYSTEM), *readable):
                self._add(path, reading)
            self._add(Path(os.devnull), _READ_FILE | _WRITE_FILE)

    def restrict(self, scratch: Path | None) -> None:
        """Give up all other files for good. The process must have set NO_NEW_PRIVS. Raises OSError."""
        ruleset = self._call(_CREATE_RULESET, ctypes.byref(ctypes.c_uint64(self._handled)), ctypes.c_size_t(8), 0)
        places = [*self._places]
        if scratch is not None:
            places.append((os.open(scratch, os.O_PATH | os.O_CLOEXEC), self._handled))
        for descriptor, access in places:
            self._call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(_Rule(access, descriptor)), 0)
        self._call(_RESTRICT_SELF, ruleset, 0)
        os.close(ruleset)
        for descriptor, _ in places:
            # our own process's descriptor: the parent, which forks and restricts others, keeps its own
            os.close(descriptor)

    def _add(self, path: Path, access: int) -> None:
        with suppress(OSError):
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
                access &= _OF_FILES
            self._places.append((descriptor, access & self._handled))

    def _call(self, number: int, *arguments: object) -> int:
        result = int(self._libc.syscall(number, *arguments))
        if result < 0:
            raise OSError(ctypes.get_errno(), "the files of others cannot be closed off")
        return result


def places_of_python() -> tuple[Path, ...]:
    """Where this interpreter is, with its standard library and the packages that are installed for it."""
    return Path(sys.prefix), Path(sys.base_prefix), Path(os.__file__).parent
