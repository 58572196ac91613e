"""What is said of a run on a stream that is no terminal."""

import io
import threading

from evalwright.run.cells import RunState
from evalwright.run.progress import progress_on
from targets.loopback import PATIENCE


class Heard(io.StringIO):
    """Tells when something was written."""

    def __init__(self):
        super().__init__()
        self.written = threading.Event()

    def flush(self):
        self.written.set()


def test_the_end_that_the_user_asks_for_is_answered_at_once():
    state, out = RunState(total=3), Heard()
    with progress_on(out)(state):
        state.stopping = True
        assert out.written.wait(PATIENCE)
    assert out.getvalue() == "finishing the last cells, press Ctrl-C again to stop now\n"
