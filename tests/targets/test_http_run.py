"""Whole runs against an endpoint that is slow, that fails twice, and that repeats the secret it was given."""

import json
import threading
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import yaml

from faults.harness import Project

KEY = "sk-hush-hush-0123456789"


@contextmanager
def service():
    """`/slow` waits for the end of the test, `/flaky` fails twice, `/echo` refuses with the header it was sent."""
    over, asked = threading.Event(), Counter()

    class Service(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            asked[self.path] += 1
            if self.path == "/slow":
                over.wait(60)
            status = {"/echo": 401, "/flaky": 503 if asked[self.path] < 3 else 200}.get(self.path, 200)
            body = json.dumps({"output": "fine", "login": self.headers["Authorization"]}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        server.handle_error = lambda *_: None  # calls that were given up
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_port, asked
        finally:
            over.set()
            server.shutdown()


def test_a_run_times_out_tries_again_and_keeps_secrets(tmp_path):
    names = ("slow", "flaky", "echo")
    (tmp_path / "cases.jsonl").write_text('{"id": "c", "input": {"q": 1}}\n')
    with service() as (port, asked):
        system = {"adapter": "http", "provider": "simple", "headers": {"Authorization": "Bearer ${SERVICE_KEY}"}}
        systems = [
            {"name": name, **system, "endpoint": f"http://127.0.0.1:{port}/{name}", "timeout_seconds": 1}
            for name in names
        ]
        suite = {
            "eval": {"name": "http"},
            "dataset": {"type": "jsonl", "path": "cases.jsonl"},
            "systems": systems,
            "run": {"retry": {"max_attempts": 3, "on": ["http_5xx"]}},
            "evaluators": [{"name": "fine", "type": "contains_text", "config": {"all_of": ["fine"]}}],
            "output": [{"type": "local_files", "path": "runs"}],
        }
        (tmp_path / "eval.yaml").write_text(yaml.safe_dump(suite))
        project = Project(tmp_path, {"SERVICE_KEY": KEY})
        done = project.command("run", "eval.yaml")
    lines = (project.run_dir() / "traces.jsonl").read_text().splitlines()
    traces = {trace["variant_name"]: trace for trace in map(json.loads, lines)}
    errors = {name: (traces[name]["error"] or {}).get("type") for name in names}
    assert errors == {"slow": "timeout", "flaky": None, "echo": "adapter_error"}, done.stderr
    assert asked == {"/slow": 1, "/flaky": 3, "/echo": 1}
    assert "401" in traces["echo"]["error"]["message"]
    written = b"".join(path.read_bytes() for path in project.run_dir().rglob("*") if path.is_file())
    assert KEY.encode() not in written + (done.stdout + done.stderr).encode()
