"""Whatever a target does, its cell has a record, all other cells are right and the process ends."""

import json
import os

import pytest
import yaml

from faults.harness import lines, make_project
from faults.project.hostile import HELD, MODES

ERRORS = {
    "raise", "raise_base", "raise_group", "raise_cancelled", "raise_stop_iteration", "keyboard_interrupt",
    "sys_exit", "os_exit", "abort", "sleep", "busy", "recursion", "none", "deep", "cyclic",
}  # fmt: skip
FAILURES = {"text"}
"""Answers of another word than the evaluators want."""


def statuses(project):
    return {v["case_id"].split("-", 1)[1]: v["status"] for v in lines(project.run_dir() / "verdicts.jsonl")}


@pytest.mark.parametrize(
    ("target", "isolation", "modes"),
    [
        pytest.param(
            *("hostile:run", "none", [m for m in HELD if m not in ("chdir", "clear_environment")]),
            marks=pytest.mark.slow("waits for the limits of calls that never end"),
        ),
        pytest.param(
            *("hostile:run_sync", "none", [m for m in HELD if m != "close_stdout"]),
            marks=pytest.mark.slow("five seconds for each call that never ends"),
        ),
        pytest.param(
            *("hostile:run", "process", sorted(MODES)),
            marks=pytest.mark.slow("a process for every kind of misbehaviour"),
        ),
    ],
)
def test_every_kind_of_misbehaviour_is_held(tmp_path, target, isolation, modes):
    order = ["fine", *modes, "fine"]
    project = make_project(tmp_path, order, target, timeout_seconds=5, isolation=isolation)
    done = project.command("run", "eval.yaml", timeout=90)
    expected = {mode: "error" if mode in ERRORS else "fail" if mode in FAILURES else "pass" for mode in order}
    assert statuses(project) == expected, done.stderr
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    judged = [mode for mode in order if mode not in ERRORS]  # evaluators see no trace of a system that raised
    assert len(lines(project.run_dir() / "results.jsonl")) == 3 * len(judged)


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_what_one_call_closes_is_open_for_the_next(tmp_path, isolation):
    project = make_project(tmp_path, ["close_stdout", "print"], concurrency=1, isolation=isolation)
    project.command("run", "eval.yaml", timeout=60)
    assert statuses(project) == {"close_stdout": "pass", "print": "pass"}


def test_code_that_changes_the_working_directory_misleads_neither_commands_nor_paths(tmp_path):
    project = make_project(tmp_path, ["fine", "fine"], concurrency=1)
    suite = yaml.safe_load((tmp_path / "eval.yaml").read_text())
    suite["systems"] = [{"name": "main", "adapter": "cli", "command": ["/bin/cat", "answer.txt"]}]
    suite["evaluators"] = [
        {"name": "goes", "type": "python_function", "config": {"function": "goes:goes"}},
        {"name": "judge", "type": "code_judge", "config": {"script": ["sh", "judge.sh"]}},
        {"name": "check", "type": "command", "config": {"cmd": ["/bin/cat", "answer.txt"], "cwd": "."}},
    ]
    (tmp_path / "eval.yaml").write_text(yaml.safe_dump(suite))
    (tmp_path / "answer.txt").write_text("fine")
    (tmp_path / "judge.sh").write_text("""echo '{"score": 1}'""")
    (tmp_path / "goes.py").write_text("import os\n\ndef goes(output):\n    os.chdir('/')\n    return True\n")
    done = project.command("run", "eval.yaml", "--quiet")
    run_dir = str(project.run_dir().relative_to(tmp_path))
    assert (done.returncode, done.stdout.strip()) == (0, run_dir), done.stderr
    again = project.command("re-evaluate", run_dir, "--quiet")
    assert (again.returncode, again.stdout.strip()) == (0, run_dir), again.stderr


def test_what_a_module_does_to_its_process_when_imported_is_kept_for_its_calls_and_misleads_no_command(tmp_path):
    project = make_project(tmp_path, ["fine"], "goes:answer", concurrency=1)
    suite = yaml.safe_load((tmp_path / "eval.yaml").read_text())
    suite["evaluators"] = [{"name": "stays", "type": "python_function", "config": {"function": "stays:stays"}}]
    (tmp_path / "eval.yaml").write_text(yaml.safe_dump(suite))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "words.txt").write_text("fine")
    (tmp_path / "goes.py").write_text(
        "import os, sys\n\nos.chdir('data')\nsys.stdout = sys.stderr = None\n"
        "if child := os.fork():\n    os.waitpid(child, 0)\n\n"
        "def answer(case, variant):\n    return {'final_answer': open('words.txt').read()}\n"
    )
    (tmp_path / "stays.py").write_text(
        "import os\n\nos.chdir(os.path.join(os.path.dirname(__file__), 'data'))\n\n"
        "def stays(output):\n    return open('words.txt').read() == str(output)\n"
    )
    done = project.command("run", "eval.yaml", "--quiet")
    run_dir = str(project.run_dir().relative_to(tmp_path))
    assert (done.returncode, done.stdout.strip()) == (0, run_dir), done.stderr
    again = project.command("re-evaluate", run_dir, "--suite", "eval.yaml", "--quiet")
    assert (again.returncode, again.stdout.strip()) == (0, run_dir), again.stderr
    audited = project.command("audit", run_dir, "--suite", "eval.yaml")
    assert audited.returncode == 0, audited.stdout  # no evaluator had an error


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("import os\nos.close(2)", "os.close(2) would close files of the run itself"),
        ("import asyncio\nraise asyncio.CancelledError", "CancelledError"),
    ],
)
def test_a_module_that_would_end_the_command_when_imported_is_a_mistake_of_the_suite(tmp_path, statement, why):
    project = make_project(tmp_path, ["fine"], "ends:answer")
    (tmp_path / "ends.py").write_text(f"{statement}\n\ndef answer(case, variant):\n    return 'fine'\n")
    done = project.command("run", "eval.yaml")
    assert done.returncode == 2
    assert "systems[0].target  'ends:answer' cannot be imported: " in done.stderr
    assert why in done.stderr


@pytest.mark.cold
def test_imports_that_users_code_has_broken_end_with_the_code_of_an_internal_error(tmp_path):
    project = make_project(tmp_path, ["fine"], "breaks:answer")
    (tmp_path / "breaks.py").write_text(
        "import sys\n\ndef answer(case, variant):\n    sys.meta_path.clear()\n    return {'final_answer': 'fine'}\n"
    )
    process = project.start("run", "eval.yaml")
    _, errors = process.communicate()
    assert process.returncode == 4
    assert b"Internal error: ModuleNotFoundError" in errors


@pytest.mark.cold
@pytest.mark.slow("five seconds for a thread that never ends")
def test_a_thread_that_a_target_has_started_does_not_keep_the_process(tmp_path):
    project = make_project(tmp_path, ["fine"], "starts:answer")
    (tmp_path / "starts.py").write_text(
        "import threading\n\ndef answer(case, variant):\n"
        "    threading.Thread(target=threading.Event().wait, name='stays', daemon=False).start()\n"
        "    return {'final_answer': 'fine'}\n"
    )
    process = project.start("run", "eval.yaml", "--quiet")
    try:
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, output.decode().strip()) == (0, str(project.run_dir().relative_to(tmp_path)))
    assert b"not waited for: threads of the suite's code that still run (stays)" in errors


def test_a_call_that_ignores_its_cancellation_is_left_behind(tmp_path):
    project = make_project(
        tmp_path, ["stubborn", "fine", "fine"], "hostile:ignores_cancellation", timeout_seconds=1, concurrency=1
    )
    done = project.command("run", "eval.yaml", timeout=30)
    assert statuses(project) == {"stubborn": "error", "fine": "pass"}, done.stderr
    assert done.returncode == 3


def test_a_target_that_aborts_the_process_never_looks_like_success(tmp_path):
    project = make_project(tmp_path, ["fine", "abort", "fine"], "hostile:run", concurrency=1)
    done = project.command("run", "eval.yaml")
    assert done.returncode != 0


def test_case_ids_never_reach_the_file_system(tmp_path):
    project = make_project(tmp_path / "inside", ["fine"])
    names = ["../../escaped", "/etc/escaped", "a/b", "nul\0byte", "x" * 5000, "..", "CON"]
    (project.folder / "cases.jsonl").write_text(
        "".join(json.dumps({"id": name, "input": {"mode": "fine"}}) + "\n" for name in names)
    )
    before = {p for p in tmp_path.rglob("*") if project.folder not in p.parents}
    done = project.command("run", "eval.yaml", "--quiet")
    assert done.returncode == 0, done.stderr
    assert {v["case_id"] for v in lines(project.run_dir() / "verdicts.jsonl")} == set(names)
    assert {p for p in tmp_path.rglob("*") if project.folder not in p.parents} == before
    assert all(os.sep not in p.name for p in project.run_dir().rglob("*"))
