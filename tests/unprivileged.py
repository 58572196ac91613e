"""Work done as a user who may write nothing of what a test has made."""

from __future__ import annotations

import os
from collections.abc import Callable

_NOBODY = 65534


def as_nobody(work: Callable[[], str]) -> str:
    """What `work` returns in a process of that user, or the exception that it raises; as root, tests may write all."""
    receive, send = os.pipe()
    if (child := os.fork()) == 0:
        try:
            if os.getuid() == 0:
                os.setuid(_NOBODY)
            os.write(send, work().encode())
        except BaseException as error:
            os.write(send, repr(error).encode())
        finally:
            os._exit(0)
    os.close(send)
    with os.fdopen(receive) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer
