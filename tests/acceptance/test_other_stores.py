"""Runs outside of folders, with the real command: what `run` prints is what every other command takes."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import psycopg
import pytest
import yaml

from faults.harness import LOCAL_FILES, POSTGRES, SQLITE, Project, make_project
from postgres_server import server_dsn

PASSWORD = "hunter22-and-more"


def run(project: Project, *arguments: str, code: int = 0) -> str:
    done = project.command(*arguments)
    assert done.returncode == code, done.stderr
    return done.stdout


@pytest.fixture(params=[SQLITE, POSTGRES], ids=lambda output: output["type"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    return make_project(tmp_path, ["fine", "fine", "raise"], "hostile:run", output=request.param)


@pytest.mark.slow("every command in each store")
def test_every_command_takes_what_run_prints(project: Project) -> None:
    place = run(project, "run", "eval.yaml", code=3).splitlines()[-1]
    mine = ("--suite", "eval.yaml")
    assert "3 shown" in run(project, "inspect", place, *mine)
    assert "Changed cases, worse: 0" in run(project, "compare", place, place, *mine)
    assert "**" in run(project, "report", place, *mine)
    run(project, "export", place, "--format", "agentv", "--out", "agentv", *mine)
    assert (project.folder / "agentv" / "results.jsonl").read_bytes().count(b"\n") == 3
    assert run(project, "retry", place, "--quiet", *mine, code=3).strip() == place
    assert "re-evaluated 3 traces" in run(project, "re-evaluate", place, "--trust-run", code=3)
    assert "nothing to do" in run(project, "resume", place, *mine, code=3)
    listed = run(project, "list", "runs", place.partition("/")[0], *mine)
    assert re.search(rf"{Path(place).name} .*complete", listed)


def test_a_file_stands_for_its_newest_run(tmp_path: Path) -> None:
    project = make_project(tmp_path, ["fine"], output=SQLITE)
    first, second = (run(project, "run", "eval.yaml", "--quiet").strip() for _ in range(2))
    assert first != second
    assert run(project, "resume", "runs.sqlite", "--quiet").strip() == second
    missing = project.command("inspect", f"{first}x")
    assert missing.returncode == 2
    assert f'did you mean "{Path(first).name}"?' in missing.stderr


@pytest.mark.slow("several runs in each store")
def test_out_keeps_the_run_in_a_folder_whatever_the_suite_says(project: Project) -> None:
    place = run(project, "run", "eval.yaml", "--quiet", "--out", "elsewhere", code=3).strip()
    assert (project.folder / place / "traces.jsonl").is_file()
    assert place.startswith("elsewhere/")


def suite_with_literal_dsn(tmp_path: Path) -> Project:
    project = make_project(tmp_path, ["fine", "raise"], "hostile:run", output=POSTGRES)
    suite = yaml.safe_load((tmp_path / "eval.yaml").read_text())
    suite["output"][0]["dsn"] = server_dsn().replace("postgres:@", f"postgres:{PASSWORD}@")
    (tmp_path / "eval.yaml").write_text(yaml.safe_dump(suite))
    return project


@pytest.mark.slow("walks through every command with a database")
def test_a_literal_connection_string_stays_in_its_suite(tmp_path: Path) -> None:
    project = suite_with_literal_dsn(tmp_path)
    project.environment = {}
    done = project.command("run", "eval.yaml")
    place = done.stdout.splitlines()[-1]
    texts = [path.read_text() for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    with psycopg.connect(server_dsn()) as connection:
        schema = yaml.safe_load((tmp_path / "eval.yaml").read_text())["output"][0]["schema"]
        for table in ("runs", "documents", "traces", "results", "summaries"):
            rows = connection.execute(f"SELECT * FROM {schema}.{table}").fetchall()
            texts.append(str(rows) + "".join(str(bytes(row[2])) for row in rows if table == "documents"))
    assert [text for text in [*texts, done.stdout, done.stderr] if PASSWORD in text] == []
    assert f"evalwright retry {place} --suite eval.yaml" in done.stdout
    assert run(project, "retry", place, "--quiet", "--suite", "eval.yaml", code=3).strip() == place
    assert "promoted" in run(project, "promote", place, "--suite", "eval.yaml")
    assert "Baseline: " in run(project, "drift", place, "--suite", "eval.yaml"), "the suite says where both are"
    unnamed = project.command("inspect", place)
    assert unnamed.returncode == 2
    assert "name your suite with --suite FILE, set EVALWRIGHT_POSTGRES_DSN, or pass --trust-run" in unnamed.stderr
    (tmp_path / "eval.yaml").unlink()
    lost = project.command("inspect", place, "--trust-run")
    assert lost.returncode == 2
    assert re.search(r"set the environment variable \S*dsn|expected a connection string", lost.stderr)


def test_a_run_in_a_database_is_found_from_anywhere(tmp_path: Path) -> None:
    project = make_project(tmp_path / "here", ["fine"], output=POSTGRES)
    place = run(project, "run", "eval.yaml", "--quiet").strip()
    schema = json.loads((project.folder / place / "store.json").read_text())["store"]["config"]["schema"]
    (tmp_path / "there").mkdir()
    elsewhere = Project(tmp_path / "there", {"EVALWRIGHT_POSTGRES_DSN": server_dsn()})
    address = f"postgres:{schema}/{Path(place).name}"
    assert "1 shown" in run(elsewhere, "inspect", address)
    assert "1 shown" in run(elsewhere, "inspect", f"postgres:{schema}")
    assert Path(place).name in run(elsewhere, "list", "runs", f"postgres:{schema}")
    assert "re-evaluated 1 trace" in run(elsewhere, "re-evaluate", address)
    without = Project(tmp_path / "there").command("inspect", address)
    assert without.returncode == 2
    assert "EVALWRIGHT_POSTGRES_DSN" in without.stderr


def test_a_run_in_a_database_that_left_no_folder_is_found_and_resumed_through_its_suite(tmp_path: Path) -> None:
    project = suite_with_literal_dsn(tmp_path)
    project.environment = {}
    place = run(project, "run", "eval.yaml", "--quiet", code=3).strip()
    schema = json.loads((tmp_path / place / "store.json").read_text())["store"]["config"]["schema"]
    shutil.rmtree(tmp_path / "runs")  # as if it had been killed before the folder was there
    mine = ("--suite", "eval.yaml")
    assert Path(place).name in run(project, "list", "runs", f"postgres:{schema}", *mine)
    assert "2 shown" in run(project, "inspect", f"postgres:{schema}/{Path(place).name}", *mine)
    assert "nothing to do" in run(project, "resume", f"postgres:{schema}", *mine, code=3)
    suite = yaml.safe_load((tmp_path / "eval.yaml").read_text())
    (tmp_path / "local.yaml").write_text(yaml.safe_dump({**suite, "output": [LOCAL_FILES]}))
    other = project.command("inspect", f"postgres:{schema}", "--suite", "local.yaml")
    assert other.returncode == 2
    assert "the suite keeps its runs in a store of type 'local_files'" in other.stderr


def test_a_mistake_in_the_store_is_told_with_its_line(tmp_path: Path) -> None:
    project = make_project(tmp_path, ["fine"], output={"type": "sqlite", "path": "runs.sqlite", "namespace": "p"})
    refused = project.command("run", "eval.yaml")
    assert refused.returncode == 2
    assert re.search(r'output\[0\]\.namespace +unknown key; did you mean "run_namespace"', refused.stderr)


def test_a_mirror_holds_what_the_run_holds(tmp_path: Path) -> None:
    project = make_project(tmp_path, ["fine", "raise", "fine"], "hostile:run", output=LOCAL_FILES)
    suite = yaml.safe_load((tmp_path / "eval.yaml").read_text())
    suite["output"].append({**SQLITE, "run_namespace": {"project": "p"}})
    (tmp_path / "eval.yaml").write_text(yaml.safe_dump(suite))
    place = run(project, "run", "eval.yaml", "--quiet", code=3).strip()
    run(project, "retry", place, "--quiet", code=3)
    compared = run(project, "compare", place, f"runs.sqlite/{Path(place).name}")
    assert "Changed cases, worse: 0" in compared
    assert "2 cases" in compared
    assert run(project, "inspect", "runs.sqlite") == run(project, "inspect", place)
