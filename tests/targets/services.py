"""A service in a repository, and suites whose system it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import warm

SERVICE = """
import json, os, subprocess, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Service(BaseHTTPRequestHandler):
    asked = 0

    def do_GET(self):
        Service.asked += 1
        self.send_response(200 if self.path == "/health" and Service.asked > 1 else 503)
        self.end_headers()

    def do_POST(self):
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        time.sleep(question.get("seconds", 0))
        answer = json.dumps({"output": BRANCH + " " + question["word"]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments):
        pass

BRANCH = "BRANCH_NAME"
port, mark = int(sys.argv[1]), sys.argv[2]
assert os.environ["PORT"] == sys.argv[1]
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", mark], start_new_session=False)
ThreadingHTTPServer(("127.0.0.1", port), Service).serve_forever()
"""

SUITE = """
eval: {{name: service}}
dataset: {{type: yaml, path: cases.yaml}}
systems:
  - name: s
    adapter: git_branch
    repo_path: repo
    branch: {branch}
    start_command: {command}
    healthcheck: {healthcheck}
    healthcheck_timeout_seconds: {patience}
    inner_adapter: http
    inner_config: {{endpoint: "http://127.0.0.1:{{port}}/ask", provider: simple}}
evaluators: [{{name: says, type: contains_text, config: {{all_of: [{branch}]}}}}]
output: {{type: local_files, path: runs}}
"""


def git(folder: Path, *words: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    named = ["-c", "user.name=t", "-c", "user.email=t@t", "-C", str(folder)]
    subprocess.run(["git", *named, *words], env=environment, check=True, capture_output=True)


def repository(folder: Path) -> Path:
    """A repository with the service on the branches `main` and `feature`, which say their names."""
    repo = folder / "repo"
    repo.mkdir()
    git(repo, "init", "--quiet", "--initial-branch=main")
    for branch in ("main", "feature"):
        if branch != "main":
            git(repo, "checkout", "--quiet", "-b", branch)
        (repo / "service.py").write_text(SERVICE.replace("BRANCH_NAME", branch))
        git(repo, "add", "--all")
        git(repo, "commit", "--quiet", "--message", branch)
    git(repo, "checkout", "--quiet", "main")
    return repo


def suite(
    folder: Path,
    mark: str,
    branch: str = "feature",
    patience: float = 20,
    healthcheck: str = "GET /health",
    script: str = "service.py",
) -> None:
    """The file of a suite with two cases in a folder."""
    command = f'["{sys.executable}", {script}, "{{port}}", "{mark}"]'
    text = SUITE.format(branch=branch, command=command, healthcheck=healthcheck, patience=patience)
    (folder / "eval.yaml").write_text(text)
    (folder / "cases.yaml").write_text("cases:\n  - {id: a, input: {word: x}}\n  - {id: b, input: {word: y}}\n")


def evalwright(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    settings = {**os.environ, "TMPDIR": str(temporary), **environment}
    return warm.run(["-m", "evalwright", *words], cwd=folder, env=settings)
