"""Runs that end early, and how they go on."""

import asyncio
import os
import subprocess
import sys

import pytest

import evalwright as ew
from api import agents
from api.shouting import cli, evaluate

EVAL = """
eval: {{name: nightly}}
dataset: {{type: {kind}, path: {path}}}
systems: [{{name: s, adapter: python_function, target: "json:dumps"}}]
evaluators: [{{name: answered, type: answered}}]
output: {{type: local_files, path: runs}}
"""
YAML = "cases:\n- {id: a, input: {text: old}}\n- {id: b, input: {text: old}}\n"
JSONL = '{"id": "a", "input": {"text": "old"}}\n{"id": "b", "input": {"text": "old"}}\n'


def interrupted(folder, system=agents.upper, **options):
    """A run that ends early."""

    async def main():
        cases = [str(i) for i in range(30)]
        async with ew.stream(cases, system, evaluators=agents.loud, out=folder, concurrency=1, **options) as cells:
            await anext(cells)

    asyncio.run(main())
    [path] = folder.iterdir()
    return ew.open_run(path)


def counts(text):
    return "A"


def test_an_unfinished_run_is_continued(tmp_path):
    run = interrupted(tmp_path, counts, name="nightly")
    seen = []
    cases = [str(i) for i in range(30)]
    again = ew.evaluate(
        cases,
        counts,
        evaluators=agents.loud,
        out=tmp_path,
        name="nightly",
        resume=True,
        concurrency=1,
        on_cell=seen.append,
    )
    assert again.path == run.path
    assert (len(again), len(seen) < 30, again.stopped) == (30, True, None)
    fresh = ew.evaluate(cases, counts, evaluators=agents.loud, out=tmp_path, name="nightly", resume=True, concurrency=1)
    assert fresh.path != run.path


def test_another_configuration_is_another_run(tmp_path):
    run = interrupted(tmp_path, counts, name="nightly")
    again = ew.evaluate(["x"], counts, evaluators=agents.loud, out=tmp_path, name="nightly", resume=True)
    assert again.path != run.path


@pytest.mark.parametrize(
    ("name", "text"), [("cases.csv", "id,input.text\na,old\nb,old\n"), ("cases.jsonl", JSONL), ("cases.yaml", YAML)]
)
def test_a_run_of_other_cases_is_not_continued(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    (tmp_path / "eval.yaml").write_text(EVAL.format(path=name, kind=name.removeprefix("cases.")))
    asked, out = [], tmp_path / "runs"

    def answer(case):
        asked.append(case.input["text"])
        return "x"

    async def first():
        async with ew.stream(ew.load(tmp_path / "eval.yaml"), answer, out=out, concurrency=1) as cells:
            await anext(cells)

    asyncio.run(first())
    (tmp_path / name).write_text(text.replace("old", "new"))
    asked.clear()
    run = ew.evaluate(ew.load(tmp_path / "eval.yaml"), answer, out=out, resume=True)
    assert asked == ["new", "new"]
    assert len(list(out.iterdir())) == 2
    hashes = {path.read_text() for path in out.glob("*/config_hash.txt")}
    assert len(hashes) == (2 if name.endswith(".csv") else 1)
    assert len(run) == 2


@pytest.mark.slow("two runs, each gone on with")
def test_resuming_from_python_and_from_the_command_line(tmp_path):
    run = interrupted(tmp_path / "a", agents.upper)
    assert len(ew.resume(run.path)) == 30
    run = interrupted(tmp_path / "b", agents.upper)
    cli("resume", run.path, code=1)
    assert len(run) == 30


def test_a_lambda_cannot_be_resumed_elsewhere_and_says_which(tmp_path):
    run = interrupted(tmp_path, lambda text: "A")
    with pytest.raises(ew.InputError, match=r"<lambda>.*resume=True"):
        ew.resume(run)


def test_cells_with_errors_run_again():
    asked = []

    def broken_at_first(text):
        asked.append(text)
        if asked == ["a", "b"]:
            raise ConnectionError("once")
        return text.upper()

    run = evaluate(["a", "b"], broken_at_first, concurrency=1)
    assert [cell.status for cell in run] == ["pass", "error"]
    assert [cell.status for cell in ew.resume(run, retry_errors=True)] == ["pass", "pass"]
    assert asked == ["a", "b", "b"]


def test_a_run_in_memory_goes_on_too():
    async def main():
        async with ew.stream(["a", "b", "c"], agents.upper, evaluators=agents.loud, out=None, concurrency=1) as cells:
            return await anext(cells)

    assert asyncio.run(main()).case_id == "1"
    run = evaluate(["a"], lambda text: None)
    assert ew.resume(run, retry_errors=True).errors()


def test_ctrl_c_finishes_what_runs_and_the_run_can_be_resumed(tmp_path):
    script = (
        "import os, signal, evalwright as ew\n"
        "from api import agents\n"
        "agents.PAUSE = 0.02\n"  # else all could be done before a busy machine lets `hit` run
        "def hit(cell): os.kill(os.getpid(), signal.SIGINT)\n"
        "try:\n"
        "    cases = [str(i) for i in range(500)]\n"
        "    ew.evaluate(cases, agents.unhurried, evaluators=agents.loud, concurrency=1, on_cell=hit)\n"
        "except KeyboardInterrupt as error:\n"
        "    print('interrupted', *error.__notes__)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    [path] = (tmp_path / "runs").iterdir()
    run = ew.open_run(path)
    assert 0 < len(run) < 500
    how = f"evalwright.resume({str(path)!r}) or evaluate(..., resume=True) runs the rest"
    assert done.stdout == f"interrupted {len(run)} of 500 cells are stored; {how}\n"
    assert len(ew.resume(run)) == 500


def test_a_cancelled_run_says_how_to_go_on_and_one_in_memory_has_nothing_to_name(tmp_path):
    async def cancelled(out):
        begun = asyncio.Event()

        async def stuck(_):
            begun.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(ew.aevaluate(["a", "b"], stuck, evaluators=agents.loud, out=out))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as ended:
            await task
        return getattr(ended.value, "__notes__", [])

    [note] = asyncio.run(cancelled(tmp_path))
    [path] = tmp_path.iterdir()
    assert f"0 of 2 cells are stored; evalwright.resume({str(path)!r})" in note
    assert asyncio.run(cancelled(None)) == []
