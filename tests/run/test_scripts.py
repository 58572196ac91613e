"""`python -m PACKAGE FILE` and `-m MODULE`: users' programs with names bound to ours."""

import subprocess
import sys

import pytest

from warm import run


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "usage: python -m evalwright.pixie FILE"),
        (["-m"], 2, "usage: python -m evalwright.pixie FILE"),
        (["gone.py"], 2, "there is no file 'gone.py'"),
        (["-m", "no_such.module"], 2, "there is no module 'no_such.module'"),
        (["-m", "no_such"], 2, "there is no module 'no_such'"),
        (["below/own.py", "--one", "2"], 0, "below beside ['below/own.py', '--one', '2'] __main__ evalwright"),
        (["-m", "below.main", "-m", "x"], 0, "['-m', 'x'] __main__ evalwright"),
    ],
)
def test_a_program_is_run_with_its_own_arguments_and_with_our_names(tmp_path, words, code, said):
    home = "import pixie; print(sys.argv[{0}:], __name__, pixie.wrap.__module__.partition('.')[0])"
    (tmp_path / "below").mkdir()
    first = "import os, sys; print(os.path.basename(sys.path[0]), end=' '); import neighbour; "
    (tmp_path / "below" / "own.py").write_text(first + home.format(0))
    (tmp_path / "below" / "neighbour.py").write_text("print('beside', end=' ')")
    (tmp_path / "below" / "main.py").write_text("import sys; " + home.format(1))
    done = run(["-m", "evalwright.pixie", *words], cwd=tmp_path)
    assert (done.returncode, said in done.stdout + done.stderr) == (code, True), (done.stdout, done.stderr)


def test_a_program_from_a_pipe_is_run(tmp_path):
    program = "import sys, pixie\nclass Own: pass\nprint(sys.argv[1:], sys.modules[Own.__module__].Own is Own)\n"
    words = [sys.executable, "-m", "evalwright.pixie", "/dev/stdin", "--one"]
    done = subprocess.run(words, cwd=tmp_path, input=program, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "['--one'] True\n"), done.stderr
