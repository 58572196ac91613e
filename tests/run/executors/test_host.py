"""What a system meets at its worker: files, variables, models and prints; and what the run hears of it."""

from __future__ import annotations

import json
import shutil
import sys
from contextvars import Context
from pathlib import Path

import pytest
import yaml

from evalwright import built_in
from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.model.trace import Trace
from evalwright.run.origin import Trust
from evalwright.run.outcomes import Outcome
from evalwright.run.resumption import resume
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from run.executors.near_end import SECRET

AGENT = """
import asyncio, os, sys

if os.environ.get("PLAIN") == "refuse":
    raise RuntimeError("no model here")

async def telling(case, variant):
    await asyncio.sleep(0.1)
    print("heard", case["id"], os.environ["KEY"], flush=True)
    print("badly", file=sys.stderr)
    said = [os.getcwd(), os.environ["KEY"], os.environ["PLAIN"], os.listdir(), os.environ.get("OTHER")]
    return {"final_answer": "done", "structured": {"said": said}}

def changing(case, variant):
    path = variant["_workspace_path"]
    with open(os.path.join(path, "new.txt"), "w") as file:
        file.write(f"{case['id']} has " + os.environ["KEY"])
    with open(os.path.join(path, "large.bin"), "wb") as file:
        file.write(b"0123456789abcdef" * (9 << 16))
    os.remove(os.path.join(path, "old.txt"))
    return {"final_answer": "done"}

async def failing(case, variant):
    match case["id"]:
        case "c0": raise ValueError("nothing in " + os.environ["KEY"])
        case "c1": sys.exit(3)
        case "c2": return 7
        case "c3": os._exit(9)
        case "c4": asyncio.current_task().cancel(); await asyncio.sleep(9)
    return {"final_answer": "done"}

async def late(case, variant):
    if case["id"] == "c0":
        await asyncio.sleep(600)
    return {"final_answer": "done"}

async def doubting(case, variant):
    from evalwright.plugins import Answer, Doubt

    await asyncio.sleep(0.01)
    never = Doubt("$.a found nothing", if_all=True)
    return Answer.of("done", doubts=[never, Doubt("the end is missing", "cut off")] if case["id"] == "c1" else [never])

def model(request):
    return "done with " + request.messages[-1].content

class Packaged:
    def __init__(self, variant): ...

    async def run(self, case, trial):
        from evalwright.plugins import Answer

        return {"c0": None, "c1": Answer.of("done", extra=7)}.get(case.id, Answer.of("done"))

    async def close(self):
        if "busy" in os.environ["PLAIN"]:
            raise ValueError("busy with " + os.environ["KEY"])
        await asyncio.sleep(600)
"""
PACKAGE = {
    "METADATA": "Metadata-Version: 2.1\nName: packaged\nVersion: 1\n",
    "entry_points.txt": "[evalwright.targets]\npackaged = agent:Packaged\n",
}


def ran(
    folder: Path,
    cases: int,
    systems: dict[str, dict[str, object]],
    *,
    plain: str = "plain",
    places: int = 8,
    sent: bool = True,
    **more: object,
) -> Outcome:
    project = folder / "project"
    lines = [json.dumps({"id": f"c{n}", "input": {"user_message": f"say {n}"}}) for n in range(cases)]
    files = {"cases.jsonl": "\n".join(lines), "agent.py": AGENT, ".env": "OTHER=1"}
    (project / "start").mkdir()
    (project / "start" / "old.txt").write_text("old")
    for name, text in files.items():
        (project / name).write_text(text)
    suite = {
        "eval": {"name": "near"},
        "dataset": {"type": "jsonl", "path": "cases.jsonl"},
        "systems": [{"name": name, "ray": {"actors": 1}, **system} for name, system in systems.items()],
        "evaluators": [{"name": "says", "type": "contains_text", "config": {"all_of": ["done"]}}],
        "run": {
            "max_concurrency": 8,
            "executor": {
                "type": "ray",
                "address": "auto",
                "per_actor": places,
                **({} if sent else {"working_dir": None}),
                "runtime_env": {"env_vars": {"KEY": "${KEY_HERE}", "PLAIN": plain}},
            },
        },
        "output": [{"type": "local_files", "path": "runs"}],
    }
    (project / "eval.yaml").write_text(yaml.safe_dump({**suite, **more}))
    return run_suite(load_suite(project / "eval.yaml", None, {}))


def function(name: str, **more: object) -> dict[str, dict[str, object]]:
    return {name: {"adapter": "python_function", "target": f"agent:{name}", **more}}


def traces(outcome: Outcome) -> dict[str, Trace]:
    reader, _ = open_run(outcome.address)
    by_name = {f"{trace.case_id} {trace.variant_name}": trace for trace in reader.traces(Trace)}
    reader.close()
    return by_name


def kept(outcome: Outcome) -> bytes:
    return b"".join(path.read_bytes() for path in Path(outcome.run_dir).rglob("*") if path.is_file())


def test_ray_stores_no_secret_of_a_suite_that_was_read_before_the_run(tmp_path, near):
    Context().run(ran, tmp_path, 1, function("telling"))  # without a session, as in Python
    assert near.options["runtime_env"]["env_vars"] == {"PLAIN": "plain"}


@pytest.mark.parametrize("foreign", [False, True])
def test_ray_stores_no_secret_of_a_run_that_goes_on(tmp_path, near, monkeypatch, foreign):
    run_dir = ran(tmp_path, 1, function("telling")).run_dir
    for name in ("traces", "results", "verdicts"):
        (run_dir / f"{name}.jsonl").write_bytes(b"")
    if foreign:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of-another-account"))
    suite = Context().run(load_suite, tmp_path / "project" / "eval.yaml")
    shutil.rmtree(near.copy)
    Context().run(resume, run_dir, trust=Trust(suite))
    assert near.options["runtime_env"]["env_vars"] == {"PLAIN": "plain"}


def test_a_system_finds_its_files_its_variables_and_the_models_of_the_run(tmp_path, near, capsys):
    chat = {"adapter": "openai_chat", "model": "python:agent:model"}
    outcome = ran(tmp_path, 3, {**function("telling"), "chat": chat})
    by_case = traces(outcome)
    assert outcome.exit_code == 0
    folder, key, plain, files, other = by_case["c1 telling"].output.structured["said"]
    assert (folder, key, plain, other) == (str(near.copy), "***MASKED***", "plain", None)
    assert sorted({*files} - {"__pycache__"}) == ["agent.py", "cases.jsonl", "eval.yaml", "start"]
    assert near.options["runtime_env"]["env_vars"] == {"PLAIN": "plain"}
    assert near.options["log_to_driver"] is False  # Ray would show once more what is printed
    assert all(100 <= by_case[f"c{n} telling"].latency_ms < 60_000 for n in range(3))
    assert by_case["c2 chat"].output.final_answer == "done with say 2"
    assert SECRET.encode() not in kept(outcome)
    said = capsys.readouterr().err.splitlines()
    assert sorted(said) == sorted([f"[telling] heard c{n} ***MASKED***" for n in range(3)] + ["[telling] badly"] * 3)


def test_a_worker_is_where_the_run_is_in_the_folder_that_is_sent(tmp_path, near, monkeypatch):
    (tmp_path / "project" / "below").mkdir()
    (tmp_path / "project" / "below" / "file").write_text("x")
    monkeypatch.chdir(tmp_path / "project" / "below")
    [trace] = traces(ran(tmp_path, 1, function("telling"))).values()
    assert (trace.error, trace.output.structured["said"][0]) == (None, str(near.copy / "below"))


def test_where_no_folder_is_sent_a_worker_stays_where_it_was_started(tmp_path, near):
    outcome = ran(tmp_path, 1, function("telling"), sent=False)
    assert outcome.exit_code == 0
    [trace] = traces(outcome).values()
    assert trace.output.structured["said"][0] == str(tmp_path)
    assert "working_dir" not in near.options["runtime_env"]


def test_files_of_workspaces_come_back_without_secrets(tmp_path, near):
    workspace = {"type": "tempdir_snapshot", "copy_from": "start"}
    outcome = ran(tmp_path, 2, function("changing"), workspace=workspace)
    assert outcome.exit_code == 0
    folder = Path(outcome.run_dir)
    [first, second] = [json.loads(path.read_text()) for path in folder.rglob("artifact.json")]
    assert first["diff"]["added"] == second["diff"]["added"] == ["large.bin", "new.txt"]
    assert first["diff"]["removed"] == ["old.txt"]
    assert SECRET.encode() not in kept(outcome)
    assert {path.read_text() for path in folder.rglob("after/new.txt")} == {f"c{n} has ***MASKED***" for n in (0, 1)}
    assert {path.stat().st_size for path in folder.rglob("after/large.bin")} == {9 << 20}


def test_doubts_about_answers_come_back_and_are_counted_by_the_run(tmp_path, near):
    outcome = ran(
        tmp_path, 6, {"main": {"adapter": "python_function", "target": "agent:doubting", "ray": {"actors": 2}}}
    )
    said = ["main: $.a found nothing in any of 6 replies", "main: the end is missing in 1 of 6 replies: cut off"]
    assert outcome.summary.warnings == said


def test_what_systems_do_wrong_is_an_error_of_the_cell(tmp_path, near):
    by_case = traces(outcome := ran(tmp_path, 6, function("failing")))
    assert outcome.exit_code == 3
    errors = [by_case[f"c{n} failing"].error for n in range(6)]
    said = [error and error.message.partition(" in agent.py")[0] for error in errors]
    assert said[0] == "ValueError: nothing in ***MASKED***"
    assert said[1] == "SystemExit: 3"
    assert "found int" in said[2]
    assert "os._exit(9)" in said[3]
    assert (said[4], said[5]) == ("CancelledError", None)
    assert len(near.workers) == 1
    assert all("retried" not in trace.extra for trace in by_case.values())


def test_a_late_call_comes_to_its_end_and_leaves_its_place(tmp_path, near):
    by_case = traces(outcome := ran(tmp_path, 6, function("late", timeout_seconds=1), places=1))
    assert outcome.exit_code == 3
    assert {name: trace.error.type for name, trace in by_case.items() if trace.error} == {"c0 late": "timeout"}
    assert len(near.workers) == 1


def test_a_worker_of_another_version_refuses_the_run(tmp_path, near, monkeypatch):
    monkeypatch.setattr("evalwright.run.executors.ray.installed_version", lambda: "9.9")
    with pytest.raises(InputError, match=r"the worker has evalwright \S+, this run 9\.9"):
        ran(tmp_path, 1, function("telling"))


def test_a_system_that_cannot_be_set_up_at_its_worker_refuses_the_run(tmp_path, near):
    with pytest.raises(InputError, match="no model here"):
        ran(tmp_path, 1, function("telling"), plain="refuse")


@pytest.mark.parametrize(
    ("plain", "said"),
    [
        ("busy", "main: closing it raised ValueError: busy with " + SECRET + " in agent.py"),
        ("hangs", "main: was not closed within 5 seconds"),
    ],
)
def test_what_a_plug_in_does_wrong_at_its_worker_is_told_as_in_the_run_s_own_process(
    tmp_path, near, monkeypatch, plain, said
):
    (package := tmp_path / "project" / "packaged-1.dist-info").mkdir()
    for name, text in PACKAGE.items():
        (package / name).write_text(text)
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setitem(built_in.KINDS["targets"], "packaged", "agent:Packaged")
    monkeypatch.delitem(sys.modules, "agent", raising=False)
    outcome = ran(tmp_path, 3, {"main": {"adapter": "packaged"}}, plain=plain)
    by_case = traces(outcome)
    assert [by_case[f"c{n} main"].error is None for n in range(3)] == [False, False, True]
    assert "must return an Answer, found NoneType" in by_case["c0 main"].error.message
    assert "cannot be stored: Expected `object`, got `int` - at `$.extra`" in by_case["c1 main"].error.message
    assert outcome.exit_code == 3
    [warning] = outcome.summary.warnings
    assert warning.partition(".py:")[0] + ".py" * (".py:" in warning) == said
    assert SECRET.encode() not in kept(outcome)
