"""Commands that flood, hang, hide or refuse to end: bounded, and nothing of them is left."""

import asyncio
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from evalwright.errors import TargetError
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.processes import finished, run_command, ties
from evalwright.processes.process_table import writers
from evalwright.registry import load
from living import left_after_a_moment, living
from open_files import files

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="looks for processes in /proc")

LIMIT = 10 * 2**20
CASE = Case(id="c", input={"big": "x" * 5_000_000})
SLEEPER = (
    "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', MARK]{});"
)


@pytest.fixture
def mark(request, tmp_path):
    """A word in the arguments of every process of a test, by which they are found."""
    return f"mark-{os.getpid()}-{tmp_path.name}"


def target(program, mark, **config):
    command = [sys.executable, "-c", program.replace("MARK", repr(mark)), mark]
    return load("targets", "cli")(Variant("v", "cli", {"command": command, **config}))


def answer(program, mark, **config):
    return asyncio.run(asyncio.wait_for(target(program, mark, **config).run(CASE, 0), 60))


async def cancelled_when_started(made, mark, processes=1):
    call = asyncio.create_task(made.run(CASE, 0))
    while len(living(mark)) < processes and not call.done():
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


HANGING = {
    "sleeping": "import time; time.sleep(600)",
    "ignoring SIGTERM": "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)",
    "busy": "while True: pass",
    "stopped": "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
    "flooding": "import os\nwhile True: os.write(1, b'x' * 65536)",
    "closed its pipes": "import os, time; os.close(1); os.close(2); time.sleep(600)",
}


@pytest.mark.parametrize("program", HANGING.values(), ids=HANGING.keys())
def test_a_cancelled_command_is_dead(program, mark):
    asyncio.run(cancelled_when_started(target(program, mark), mark))
    assert left_after_a_moment(mark) == []


@pytest.mark.parametrize("how", ["", ", process_group=0", ", start_new_session=True"])
def test_a_cancelled_command_takes_its_children_along(mark, how):
    program = SLEEPER.format(how) + "p.wait()"
    asyncio.run(cancelled_when_started(target(program, mark), mark, processes=2))
    assert left_after_a_moment(mark) == []


@pytest.mark.parametrize("how", ["", ", process_group=0", ", start_new_session=True"])
def test_a_child_that_keeps_the_pipes_neither_delays_the_answer_nor_lives_on(mark, how):
    got = answer(SLEEPER.format(how) + "print('parent is done')", mark)
    assert got.output.final_answer == "parent is done"
    assert left_after_a_moment(mark) == []


@pytest.mark.parametrize("how", ["", ", process_group=0"])
def test_a_child_that_closed_its_pipes_is_dead_too(mark, how):
    silent = ", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL" + how
    assert answer(SLEEPER.format(silent) + "print('done')", mark).output.final_answer == "done"
    assert left_after_a_moment(mark) == []


def test_no_zombie_is_left(mark):
    asyncio.run(cancelled_when_started(target(HANGING["sleeping"], mark), mark))
    answer("print(1)", mark)
    assert zombies() == []


def zombies() -> list[str]:
    """Our dead children that nobody has waited for; children of other tests may be alive."""
    children = " ".join(path.read_text() for path in Path("/proc/self/task").glob("*/children")).split()
    stats = [Path(f"/proc/{child}/stat") for child in children]
    states = [stat.read_text().rpartition(")")[2].split()[0] for stat in stats if stat.exists()]
    return [state for state in states if state == "Z"]


def test_a_command_is_killed_before_the_run_when_memory_runs_out(mark):
    # The end of its input comes after the score is set.
    program = "import sys; sys.stdin.read(); print(open('/proc/self/oom_score_adj').read().strip())"
    assert answer(program, mark, stdin_template="{{ input.big }}").output.final_answer == "1000"


def test_stdin_that_is_never_read_does_not_block(mark):
    assert answer("print('did not look')", mark, stdin_template="{{ input.big }}").output.final_answer == "did not look"


def test_stdin_that_is_closed_early_does_no_harm(mark):
    program = "import os, sys; os.read(0, 10); os.close(0); print('enough')"
    assert answer(program, mark, stdin_template="{{ input.big }}").output.final_answer == "enough"


def test_a_large_stdin_arrives_whole_while_the_command_answers(mark):
    program = "import sys\nfor block in iter(lambda: sys.stdin.read(1000), ''): sys.stdout.write(block)"
    assert answer(program, mark, stdin_template="{{ input.big }}").output.final_answer == CASE.input["big"]


def test_a_stream_is_cut_at_the_limit_and_its_true_size_reported(mark):
    got = answer(f"import sys; sys.stdout.write('x' * {LIMIT + 5}); sys.stderr.write('e' * {LIMIT + 7})", mark)
    assert (got.output.final_answer, got.extra["stderr"]) == ("x" * LIMIT, "e" * LIMIT)
    assert got.extra["truncated"] == {
        "stdout": {"bytes": LIMIT + 5, "kept": LIMIT},
        "stderr": {"bytes": LIMIT + 7, "kept": LIMIT},
    }


def test_a_stream_of_just_the_limit_is_not_cut(mark):
    got = answer(f"import sys; sys.stdout.write('x' * {LIMIT})", mark)
    assert (len(got.output.final_answer), got.extra) == (LIMIT, {})


def test_a_cut_inside_a_character_is_not_taken_for_damage(mark):
    program = f"import os; os.write(1, b'a'); [os.write(1, b'\\xc3\\xa9' * 1024) for _ in range({LIMIT // 2048 + 1})]"
    got = answer(program, mark)
    assert (got.output.final_answer[-1], got.extra.keys()) == ("\ufffd", {"truncated"})


def test_json_that_is_too_long_is_an_error_with_its_size(mark):
    with pytest.raises(TargetError, match=str(LIMIT + 2)):
        answer(f"import sys; sys.stdout.write('\"' + 'x' * {LIMIT} + '\"')", mark, parse_stdout_as="json")


FLOOD = """
import asyncio, resource, sys
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.registry import load

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

program = "import os\\nfor _ in range({size} // 65536): os.write({stream}, b'x' * 65536)"
target = load("targets", "cli")(Variant("v", "cli", {{"command": [sys.executable, "-c", program]}}))
before = peak()
answer = asyncio.run(target.run(Case(id="c", input={{}}), 0))
size = answer.extra["truncated"]["{name}"]["bytes"]
print(size, peak() - before)
"""


@pytest.mark.slow("a command prints a gigabyte")
@pytest.mark.parametrize(("stream", "name", "size"), [(1, "stdout", 2**30), (2, "stderr", 2**28)])
def test_a_flood_costs_little_memory_and_ends(stream, name, size):
    program = FLOOD.format(stream=stream, name=name, size=size)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    seen, kibibytes = map(int, done.stdout.split())
    assert seen == size
    assert kibibytes < 64 * 1024


async def two_hundred(made):
    return await asyncio.gather(*[made.run(CASE, 0) for _ in range(200)])


@pytest.mark.slow("starts two hundred commands")
def test_two_hundred_commands_at_the_same_time_leave_no_descriptor(descriptors):
    made = load("targets", "cli")(Variant("v", "cli", {"command": ["/bin/cat"], "stdin_template": "{{ case_id }}"}))
    asyncio.run(made.run(CASE, 0))  # the first command of a process starts what ends them all, and keeps it
    before = descriptors()
    answers = asyncio.run(two_hundred(made))
    assert [given.output.final_answer for given in answers] == ["c"] * 200
    assert not descriptors().items() - before.items()


def test_commands_that_cannot_be_started_or_are_cancelled_leave_no_descriptor(mark, descriptors):
    answer("print(1)", mark)  # as above
    before = descriptors()
    with pytest.raises(TargetError):
        asyncio.run(load("targets", "cli")(Variant("v", "cli", {"command": ["/no/such/program"]})).run(CASE, 0))
    asyncio.run(cancelled_when_started(target(HANGING["flooding"], mark, stdin_template="{{ input.big }}"), mark))
    assert not descriptors().items() - before.items()


def test_a_loop_that_ends_in_the_middle_of_a_call_takes_the_command_along(mark):
    async def leave():
        call = asyncio.create_task(target(HANGING["ignoring SIGTERM"], mark).run(CASE, 0))
        while not living(mark):
            await asyncio.sleep(0.02)
        return call

    assert asyncio.run(leave()).cancelled()
    assert left_after_a_moment(mark) == []


@pytest.mark.parametrize("then", ["exit", "exec sleep 600"])
def test_a_process_that_left_the_session_of_a_short_command_does_not_hold_it_up(mark, then):
    words = ["/bin/sh", "-c", f'setsid sh -c "sleep 600; exit" $0 & {then}', mark]
    with pytest.raises(TimeoutError):
        finished(words, env=os.environ, patience=0.5)
    assert not left_after_a_moment(mark)


def test_a_command_whose_start_is_interrupted_is_dead(mark, descriptors):
    class Interrupted(asyncio.SelectorEventLoop):
        def add_reader(self, *arguments):
            raise KeyboardInterrupt

    words = [sys.executable, "-c", "import time; time.sleep(600)", mark]
    asyncio.run(run_command(["true"], env=os.environ))  # as above
    with closing(Interrupted()) as loop:
        before = descriptors()
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(run_command(words, env=os.environ))
        assert not descriptors().items() - before.items()
    assert not left_after_a_moment(mark)


def test_where_only_some_of_its_pipes_can_be_made_none_is_left(descriptors):
    asyncio.run(run_command(["true"], env=os.environ))  # as above

    async def refused():
        lowest_free = os.open(os.devnull, os.O_RDONLY)
        os.close(lowest_free)
        before = descriptors()
        with files(lowest_free + 3), pytest.raises(OSError, match="Too many open files"):
            await run_command(["true"], env=os.environ)
        assert not descriptors().items() - before.items()

    asyncio.run(refused())


def test_only_strangers_that_can_write_to_a_pipe_are_its_writers():
    """Killing others would end this process, or what only reads along."""
    reading, writing = os.pipe()
    started = [
        subprocess.Popen(["sleep", "600"], pass_fds=[end], start_new_session=alone)
        for end, alone in ((writing, True), (writing, False), (reading, True))
    ]
    try:
        assert set(writers({os.fstat(reading).st_ino})) == {started[0].pid}
    finally:
        for process in started:
            process.kill()
            process.wait()
        os.close(reading)
        os.close(writing)


def test_what_has_ended_is_no_longer_tied():
    """Its number may become that of another process, which would end with this one."""
    before = list(ties._reaper._kept)
    asyncio.run(run_command(["true"], env=os.environ))
    finished(["true"], env=os.environ, patience=60)
    with pytest.raises(OSError, match="No such file"):
        finished(["/no/such/program"], env=os.environ, patience=60)
    assert list(ties._reaper._kept) == before


def test_only_what_comes_on_stdout_is_heard():
    heard = []
    words = ["/bin/sh", "-c", "echo out; echo err >&2"]
    ended = asyncio.run(run_command(words, env=os.environ, on_stdout=heard.append))
    assert (b"".join(heard), bytes(ended.stdout.kept), bytes(ended.stderr.kept)) == (b"out\n", b"out\n", b"err\n")
