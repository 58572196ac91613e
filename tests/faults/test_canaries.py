"""No value that a suite took from a variable, or holds as a credential, is stored or shown, wherever it came in."""

from __future__ import annotations

import base64
import json
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from faults.harness import LOCAL_FILES, POSTGRES, SQLITE, Project
from postgres_server import fresh_schema, server_dsn

VARIABLES = (
    "PLAIN", "NESTED", "LISTED", "RAISED", "PRINTED", "LOGGED", "REPRED", "QUOTED", "ENCODED", "BODY_VALUE", "FIELD",
    "PATH_PART", "QUERY_PART", "QUERY_DICT", "USER_PART", "PASS_PART", "HEADER_ONE", "BEARER", "BASIC_PAIR", "COOKIES",
    "COMMAND_OUT", "COMMAND_ERR", "ARGUMENT", "STANDARD_IN", "FILE_TEXT", "FILE_NAME", "RULE", "REASON", "HOOK_PATH",
    "MIRROR_TAG", "BY_OPTION",
)  # fmt: skip
LITERALS = ("token", "pass", "secret", "accessKey", "apiKey", "credentials", "private_key_pem", "db_password")
SHORT = ("PIN", "CODE")
AGENT = """
import base64, json, logging, sys, urllib.parse
from pathlib import Path

def answer(case, variant):
    config, how = variant["config"], case["input"]["how"]
    print("telling", config["printed"])
    print("telling", config["printed"], file=sys.stderr)
    logging.getLogger("agent").warning("telling %s", config["logged"])
    if how == "raise":
        raise RuntimeError("cannot log in with " + config["raised"])
    if how == "forms":
        text = " ".join([repr(config), json.dumps(json.dumps(config)), urllib.parse.quote(config["quoted"], safe="")])
        return {"final_answer": text + base64.b64encode(("x:" + config["encoded"]).encode()).decode()}
    folder = Path(variant["_workspace_path"])
    (folder / ("kept-" + config["file_name"] + ".txt")).write_text(config["file_text"])
    return {
        "final_answer": json.dumps(config),
        "extra": {"echo": config, config["plain"]: 1},
        "tool_calls": [{"name": "login", "arguments": config}],
        "messages": [{"role": "user", "content": json.dumps(config)}],
    }
"""
CHECK = "def check(output):\n    return {'score': 0.0, 'reason': 'unexpected: ' + str(output)}\n"


class Canaries(dict[str, str]):
    """Values by name, each with what is told apart only when it is quoted."""

    def __init__(self) -> None:
        super().__init__({name: f"Cn{i:02d}/x y+{name.lower()}\"'" for i, name in enumerate((*VARIABLES, *LITERALS))})
        in_addresses = ("PATH_PART", "QUERY_PART", "USER_PART", "PASS_PART", "HOOK_PATH", "FILE_NAME", "COOKIES")
        plain = (*in_addresses, "HEADER_ONE", "BEARER", "MIRROR_TAG", "COMMAND_OUT", "COMMAND_ERR", "QUERY_DICT")
        self.update({name: f"Cn{name.lower().replace('_', '')}7q9" for name in plain})
        self.update({name: f"Q{i}f4a" for i, name in enumerate(SHORT)})
        self["BASIC_PAIR"] = base64.b64encode(b"CnAnn4711:CnHunter4711").decode()

    def forms(self) -> Iterator[tuple[str, str]]:
        for name, value in [*self.items(), ("BASIC_PAIR", "CnAnn4711"), ("BASIC_PAIR", "CnHunter4711")]:
            coded = base64.b64encode(value.encode()).decode().rstrip("=")
            for form in {value, json.dumps(value)[1:-1], urllib.parse.quote(value, safe=""), repr(value)[1:-1], coded}:
                yield name, form


@contextmanager
def echoing() -> Iterator[tuple[int, list[str]]]:
    """A service that repeats what it was sent, in its answer or, for the case `raise`, in an error."""
    seen: list[str] = []

    class Service(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            token = (self.headers["X-Token"] or "").partition(" ")[2]
            seen.append(f"{self.path} {self.headers} {body} {token} {base64.b64decode(self.headers['X-Pair'][6:])!r}")
            answer = json.dumps({"text": seen[-1], "token": token}).encode()
            self.send_response(400 if '"raise"' in body else 200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server.server_port, seen
        finally:
            server.shutdown()


def suite(port: int, canaries: Canaries, output: list[dict[str, Any]]) -> dict[str, Any]:
    """A suite with a canary wherever one can come in."""
    python = {name.lower(): f"${{{name}}}" for name in VARIABLES[:10]} | {"listed": ["a", {"b": "<${LISTED}>"}]}
    python |= {name: canaries[name] for name in LITERALS}
    python |= {"file_text": "${FILE_TEXT}", "file_name": "${FILE_NAME}", "option": "${BY_OPTION}", "pin": "${PIN}"}
    http = {
        "endpoint": f"http://${{USER_PART}}:${{PASS_PART}}@127.0.0.1:{port}/${{PATH_PART}}/x?q=${{QUERY_PART}}",
        "query_params": {"d": "${QUERY_DICT}"},
        "headers": {
            "X-One": "${HEADER_ONE}",
            "X-Token": "Bearer ${BEARER}",
            "X-Pair": "Basic ${BASIC_PAIR}",
            "Cookie": "sid=${COOKIES}; theme=dark",
        },
        "body": {"b": "${BODY_VALUE}", "code": "${CODE}"},
        "request_template": '{"f": "fixed", "how": {{ input.how | json }}}',
        "response_mapping": {"final_answer": "$.text"},
    }
    told = 'printf "%s %s" "$OUT" "$1"; cat; printf "%s" "$ERR" >&2'
    command = {"env": {"OUT": "${COMMAND_OUT}", "ERR": "${COMMAND_ERR}", "PATH": "/usr/bin:/bin"}}
    return {
        "eval": {"name": "canaries"},
        "dataset": {"type": "jsonl", "path": "cases.jsonl"},
        "systems": [
            {"name": "python", "adapter": "python_function", "target": "agent:answer", **python},
            {"name": "http", "adapter": "http", **http},
            {"name": "cli", "adapter": "cli", "command": ["/bin/sh", "-c", told, "sh", "${ARGUMENT}"], **command},
            {"name": "bad", "adapter": "cli", "command": ["/bin/sh", "-c", f"{told}; exit 3"], **command},
        ],
        "evaluators": [
            {
                "name": "says",
                "type": "contains_text",
                "config": {"all_of": ["${RULE}", "<${REASON}>", "nothing of that"]},
            },
            {"name": "code", "type": "python_function", "config": {"function": "check:check"}},
        ],
        "workspace": {"type": "tempdir_snapshot"},
        "output": [
            *output,
            {"type": "webhook", "platform": "slack", "url": "http://127.0.0.1:1/services/${HOOK_PATH}"},
            {"type": "sqlite", "path": "mirror.sqlite", "run_namespace": {"tag": "${MIRROR_TAG}"}},
        ],
    }


def rows_of(schema: str) -> str:
    with psycopg.connect(server_dsn()) as connection:
        tables = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s", (schema,)
        ).fetchall()
        listed = [connection.execute(f'SELECT * FROM "{schema}"."{name}"').fetchall() for (name,) in tables]
    return "".join(
        bytes(value).decode("utf-8", "replace") if isinstance(value, (bytes, memoryview)) else str(value)
        for rows in listed
        for row in rows
        for value in row
    )


@pytest.mark.slow("a run, and every command that shows it, in each store")
@pytest.mark.parametrize("output", [LOCAL_FILES, SQLITE, POSTGRES], ids=lambda output: output["type"])
def test_no_canary_is_stored_or_shown(tmp_path: Path, output: dict[str, str]) -> None:
    canaries, schema = Canaries(), fresh_schema()
    stored: dict[str, Any] = {**output, "dsn": server_dsn(), "schema": schema} if output is POSTGRES else {**output}
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "check.py").write_text(CHECK)
    hows = ("echo", "forms", "raise")
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps({"id": h, "input": {"how": h}}) + "\n" for h in hows))
    environment = {name: canaries[name] for name in (*VARIABLES, *SHORT) if name != "BY_OPTION"}
    with echoing() as (port, seen):
        (tmp_path / "eval.yaml").write_text(yaml.safe_dump(suite(port, canaries, [stored])))
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        project = Project(tmp_path, environment)
        done = project.command("run", "eval.yaml", "--var", f"BY_OPTION={canaries['BY_OPTION']}")
        assert done.returncode == 3, done.stderr
        place = done.stdout.splitlines()[-1]
        looks = [["inspect", place, "--no-truncate"], ["list", "runs"], ["compare", place, place]]
        looks += [["report", place, "--format", form] for form in ("json", "html", "junit", "markdown", "agentv")]
        looks += [["export", place, "--format", form, "--out", form] for form in ("agentv", "promptfoo")]
        calls = [["retry", place, "--json"]]
        environment["BY_OPTION"] = canaries["BY_OPTION"]
        screens = [done, *(project.command(*words, "--suite", "eval.yaml") for words in looks + calls)]
    ended = [(screen.args, screen.returncode, screen.stderr[-200:]) for screen in screens]
    assert [one for one in ended if one[1] not in (0, 1, 3)] == []
    assert canaries["BEARER"] in seen[0]
    assert canaries["PATH_PART"] in seen[0]
    texts = {f"screen {i}": screen.stdout + screen.stderr for i, screen in enumerate(screens)}
    for path in tmp_path.rglob("*"):
        texts[f"name {path.name}"] = str(path.relative_to(tmp_path))
        if path.is_file() and before.get(path) != path.read_bytes():
            texts[str(path.relative_to(tmp_path))] = path.read_bytes().decode("utf-8", "replace")
    if output is POSTGRES:
        texts["database"] = rows_of(schema)
    leaks = {(where, name) for where, text in texts.items() for name, form in canaries.forms() if form in text}
    assert leaks == set()
    assert any("***MASKED***" in text for text in texts.values())


def test_what_may_hold_answers_is_read_by_its_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("def answer(case, variant):\n    return 'fine'\n")
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "input": {}}\n')
    document = {
        "eval": {"name": "private"},
        "dataset": {"type": "jsonl", "path": "cases.jsonl"},
        "systems": [{"name": "v", "adapter": "python_function", "target": "agent:answer"}],
        "evaluators": [{"name": "says", "type": "contains_text", "config": {"all_of": ["fine"]}}],
        "workspace": {"type": "tempdir_snapshot"},
        "output": [{"type": "local_files", "path": "runs"}, {"type": "sqlite", "path": "mirror.sqlite"}],
    }
    (tmp_path / "eval.yaml").write_text(yaml.safe_dump(document))
    made = set(tmp_path.rglob("*"))
    project = Project(tmp_path)
    assert project.command("run", "eval.yaml", "--record", "calls.jsonl").returncode == 0
    run = project.run_dir()
    assert run is not None
    assert project.command("re-evaluate", str(run)).returncode == 0
    assert run.stat().st_mode & 0o777 == 0o700
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path not in made]
    assert {path.name for path in files} >= {"traces.jsonl", "results.jsonl", "mirror.sqlite", "calls.jsonl"}
    inside = [path for path in files if {"artifacts", "__pycache__"}.isdisjoint(path.parts)]
    assert [(path.name, oct(path.stat().st_mode)) for path in inside if path.stat().st_mode & 0o077] == []
