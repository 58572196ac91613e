"""Writing as the program does, without the wait for the disk: no test cuts the power, and the disk takes longer to
answer all the syncs of a session than the processors take for its tests.

Interpreters that tests start sync for real.
"""

from __future__ import annotations

import os
import stat

__all__ = ["fsync"]

_fsync = os.fsync


def fsync(descriptor: int) -> None:
    """Fails as `os.fsync` does: for what is closed, and for what cannot be synced."""
    mode = os.fstat(descriptor).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        _fsync(descriptor)
