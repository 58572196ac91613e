"""Sessions that open within and beside each other and close in any order: each keeps what is its own, nothing stays."""

import io
import os
import signal
import sys
import tempfile
from contextvars import Context

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from evalwright.session import ExitRefused, Session, environment, session

VARIABLE = "SESSION_MACHINE"


class Opened:
    """An open session, the context in which it is current, and what it must see there."""

    def __init__(self, number, owns, stdout, outer):
        self.number, self.outer, self.open = number, outer, True
        self.owns = owns or (outer is not None and outer.owns)
        self.to_stderr = stdout == "stderr" or (stdout is None and self.owns)
        self.context = Context() if outer is None else outer.context.copy()
        self.session = Session(
            owns_process=owns, stdout=stdout, models=lambda: number, environment={VARIABLE: str(number)}
        )
        self.context.run(self.session.__enter__)

    def current(self):
        """The session that its context has now."""
        found = self
        while found is not None and not found.open:
            found = found.outer
        return found

    def close(self):
        self.context.run(self.session.__exit__)
        self.open = False


class Sessions(RuleBasedStateMachine):
    opened = Bundle("opened")

    @initialize()
    def begin(self):
        self.all = []
        self.kept, self.stdout = io.StringIO(), sys.stdout
        self.exits, self.exit = [], os._exit
        self.stderr, self.file = os.dup(2), tempfile.TemporaryFile()  # noqa: SIM115 - closed in teardown
        os.dup2(self.file.fileno(), 2)
        sys.stdout, os._exit = self.kept, self.ended
        self.before = self.process()

    def ended(self, status):
        self.exits.append(status)

    def process(self):
        """What of the process a session might change."""
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
        handlers = [signal.getsignal(number) for number in numbers]
        return sys.stdout, os._exit, handlers, signal.getitimer(signal.ITIMER_REAL), os.environ.get(VARIABLE)

    @rule(target=opened, owns=st.booleans(), stdout=st.sampled_from([None, "stderr", "keep"]))
    def open_beside(self, owns, stdout):
        return self.add(owns, stdout, None)

    @rule(target=opened, owns=st.booleans(), stdout=st.sampled_from([None, "stderr", "keep"]), outer=opened)
    def open_within(self, owns, stdout, outer):
        return self.add(owns, stdout, outer.current())

    def add(self, owns, stdout, outer):
        one = Opened(len(self.all), owns, stdout, outer)
        self.all.append(one)
        return one

    @rule(one=consumes(opened))
    def close(self, one):
        one.close()

    @invariant()
    def each_has_its_own(self):
        for opened in self.all:
            if (current := opened.current()) is not None:
                assert opened.context.run(lambda: session().models) == current.number
                assert opened.context.run(environment)[VARIABLE] == str(current.number)
                assert opened.context.run(self.printed) == current.to_stderr
                assert opened.context.run(self.refused)

    @invariant()
    def others_are_left_alone_unless_the_process_is_ours(self):
        still = [opened for opened in self.all if opened.open]
        assert Context().run(self.printed) == any(one.owns and one.to_stderr for one in still)
        assert Context().run(self.refused) == any(one.owns for one in still)
        assert (VARIABLE in os.environ) == any(one.owns for one in still)

    @invariant()
    def nothing_stays_of_the_last_one(self):
        if not any(opened.open for opened in self.all):
            assert self.process() == self.before

    def printed(self):
        """Whether a print goes to stderr."""
        sizes = self.file.seek(0, io.SEEK_END), len(self.kept.getvalue())
        print("x")
        now = self.file.seek(0, io.SEEK_END), len(self.kept.getvalue())
        assert sorted(b - a for a, b in zip(sizes, now, strict=True)) == [0, 2]
        return now[0] > sizes[0]

    def refused(self):
        """Whether an exit is refused."""
        before = len(self.exits)
        try:
            os._exit(1)
        except ExitRefused:
            return True
        assert len(self.exits) == before + 1
        return False

    def teardown(self):
        for opened in self.all:
            if opened.open:
                opened.close()
        try:
            assert self.process() == self.before
        finally:
            sys.stdout, os._exit = self.stdout, self.exit
            os.dup2(self.stderr, 2)
            os.close(self.stderr)
            self.file.close()


TestSessions = Sessions.TestCase
TestSessions.settings = settings(max_examples=40, stateful_step_count=20)
