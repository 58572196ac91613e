"""Looking at a run folder of somebody else connects nowhere, executes nothing and shows nothing of whoever looks."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.harness import Project, make_project

KEYS = {name: f"Cn-{name.lower()}-4711" for name in ("AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "GH_TOKEN", "PLAIN")}
LOOKS = (
    "inspect RUN --no-truncate", "report RUN --format json", "report RUN --format html", "report RUN --format junit",
    "report RUN", "compare RUN RUN", "compare RUN RUN --json", "drift RUN --baseline RUN", "promote RUN",
    "calibrate RUN --labels labels.csv", "list runs got", "list runs got --json", "index RUN", "report RUN --github",
    "decide RUN RUN", "view RUN --bundle RUN/pages",
)  # fmt: skip
EVIL = "import pathlib\npathlib.Path('{mark}').write_text('x')\n"


@pytest.fixture
def listener() -> Iterator[tuple[int, list[object]]]:
    """Nobody may connect to it."""
    server, callers = socket.create_server(("127.0.0.1", 0)), []

    def listen() -> None:
        while True:
            try:
                callers.append(server.accept()[1])
            except OSError:
                return

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    yield server.getsockname()[1], callers
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join(5)


def planted(folder: Path, port: int) -> Path:
    """A run whose plan and records name addresses, modules, files and variables wherever they can."""
    made = make_project(folder / "theirs", ["fine", "raise"], "hostile:run")
    assert made.command("run", "eval.yaml", "--quiet").returncode == 3
    run = folder / "got" / "r1"
    run.parent.mkdir(parents=True)
    found = made.run_dir()
    assert found is not None
    found.rename(run)
    url = f"http://${{GH_TOKEN}}:${{PLAIN}}@127.0.0.1:{port}/${{OPENAI_API_KEY}}"
    (folder / "evil.py").write_text(EVIL.format(mark=folder / "executed"))
    plan = json.loads((run / "plan.json").read_text())
    plan["name"] = "named-${PLAIN}"
    plan["config_path"] = str(folder / "evil.yaml")
    plan["import_paths"] = [str(folder)]
    plan["store"] = {"type": "postgres", "config": {"dsn": f"postgresql://${{PLAIN}}:x@127.0.0.1:{port}/db"}}
    plan["mirrors"] = [{"type": "webhook", "config": {"url": url, "platform": "slack"}}]
    plan["exports"] = [{"type": "agentv_results", "config": {"path": str(folder / "written.jsonl"), "report": "html"}}]
    plan["prices"] = {}
    plan["metadata"] = {"note": "${AWS_SECRET_ACCESS_KEY}", "nested": ["${PLAIN}"]}
    for variant in plan["variants"]:
        variant["config"] = {"target": "evil:run", "endpoint": url, "headers": {"K": "${AWS_SECRET_ACCESS_KEY}"}}
        variant["metadata"] = {"x": "${PLAIN}"}
    judge = {"model": "gpt-4o-mini", "nl_assertions": ["${PLAIN}"], "base_url": url, "api_key_env": "OPENAI_API_KEY"}
    extra = {"name": "judge-${PLAIN}", "type": "llm_judge", "config": judge}
    code = {"name": "code", "type": "python_function", "config": {"function": "evil:check"}}
    plan["evaluators"] += [{**plan["evaluators"][0], **one} for one in (extra, code)]
    (run / "plan.json").write_text(json.dumps(plan))
    lines = [json.loads(line) for line in (run / "cases.jsonl").read_text().splitlines()]
    for case in lines:
        case["input"] = {"secret": "${AWS_SECRET_ACCESS_KEY} ${PLAIN}"}
        case["placeholders"] = True
    (run / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in lines))
    (folder / "evil.yaml").write_text("eval: {name: evil}\n")
    (folder / ".env").write_text(f"OPENAI_BASE_URL={url}\nEVALWRIGHT_POSTGRES_DSN=postgresql://127.0.0.1:{port}/db\n")
    return run


def notes(folder: Path, port: int) -> None:
    """Runs that are said to be elsewhere, each in another way."""
    dsn = f"postgresql://${{AWS_SECRET_ACCESS_KEY}}:${{OPENAI_API_KEY}}@127.0.0.1:{port}/db"
    stores = {
        "dsn": {"type": "postgres", "config": {"dsn": dsn}},
        "plain": {"type": "postgres", "config": {"dsn": f"postgresql://u:p@127.0.0.1:{port}/db", "schema": "x"}},
        "file": {"type": "sqlite", "config": {"path": "/etc/passwd"}},
        "path": {"type": "local_files", "config": {"path": str(folder / "theirs")}},
        "module": {"type": "evil:store", "config": {}},
        "unset": {"type": "postgres", "config": {"dsn": "${NOT_SET}"}},
    }
    (folder / "suite.yaml").write_text(
        f"eval: {{name: e}}\noutput: {{type: postgres, dsn: 'postgresql://u:p@127.0.0.1:{port}/db'}}\n"
    )
    for name, store in stores.items():
        note = {"run_id": "x", "store": store, "config_path": str(folder / "suite.yaml"), "dialect": "evalh"}
        (folder / "got" / name).mkdir()
        (folder / "got" / name / "store.json").write_text(json.dumps(note))


@pytest.mark.slow("sixteen commands look at a run that is a trap")
def test_looking_connects_nowhere_executes_nothing_and_shows_no_variable(
    tmp_path: Path, listener: tuple[int, list[object]]
) -> None:
    port, callers = listener
    run = planted(tmp_path, port)
    notes(tmp_path, port)
    (tmp_path / "labels.csv").write_text("case_id,evaluator,verdict\n00000-fine,fine,pass\n")
    before = {path for path in tmp_path.rglob("*") if path.is_file() and run not in path.parents}
    project = Project(tmp_path, KEYS)
    said = []
    for words in LOOKS:
        done = project.command(*words.replace("RUN", str(run)).split())
        assert done.returncode in (0, 1, 2, 3), (words, done.stderr)
        assert "Internal error" not in done.stderr, words
        said.append((words, done.stdout + done.stderr))
    for folder in sorted((tmp_path / "got").iterdir()):
        if (folder / "store.json").exists():
            done = project.command("inspect", str(folder))
            assert done.returncode == 2, done.stdout
            said.append((folder.name, done.stdout + done.stderr))
    assert callers == []
    assert not (tmp_path / "executed").exists()
    after = {path for path in tmp_path.rglob("*") if path.is_file() and run not in path.parents}
    assert {path.name for path in after - before if "baselines" not in path.parts} == set()
    texts = said + [(path.name, path.read_text(errors="replace")) for path in run.rglob("*") if path.is_file()]
    assert [(where, name) for where, text in texts for name, value in KEYS.items() if value in text] == []
