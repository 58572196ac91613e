"""Secrets of the environment are in no file of a run, however they get near it."""

import base64
import json
import threading
import urllib.parse
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from faults.harness import Project

SECRETS = {
    f"SERVICE_{i}_{kind}": f's3cr3t/{i}+ü"{kind}&='
    for i in range(10)
    for kind in ("KEY", "TOKEN", "PASSWORD", "SECRET")
}
SENT = {
    f"REMOTE_{i}_{kind}": f"s3cr3t-{i}-{kind}-hush"
    for i in range(10)
    for kind in ("KEY", "TOKEN", "PASSWORD", "SECRET")
}
"""Secrets that may stand in an address as they are."""
AGENT = """
import base64, json, os, urllib.parse

def run(case, variant):
    secrets = [value for name, value in sorted(os.environ.items()) if name.startswith("SERVICE_")]
    config = json.dumps(variant["config"])
    how = case["input"]["how"]
    if how == "raise":
        raise RuntimeError(f"cannot log in with {secrets} {secrets!r}")
    if how == "url":
        quoted = [urllib.parse.quote(s, safe="") for s in secrets]
        return {"final_answer": " ".join(f"https://user:{s}@host/?key={s}" for s in quoted)}
    if how == "base64":
        return {"final_answer": " ".join(base64.b64encode(s.encode()).decode() for s in secrets)}
    return {
        "final_answer": " ".join(secrets) + config,
        "structured": {"headers": secrets, secrets[0]: config},
        "tool_calls": [{"name": "login", "arguments": {"key": s}} for s in secrets],
        "messages": [{"role": "user", "content": {"text": secrets}}],
        "extra": {"secrets": secrets},
    }
"""


@pytest.mark.slow("a run, and every command that shows it")
def test_forty_secrets_are_found_nowhere_on_disk_or_screen(tmp_path):
    names = sorted(SECRETS)
    (tmp_path / "agent.py").write_text(AGENT)
    cases = [{"id": how, "input": {"how": how, "note": "x"}} for how in ("raise", "url", "base64", "echo")]
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    suite = {
        "eval": {"name": "secrets"},
        "dataset": {"type": "jsonl", "path": "cases.jsonl"},
        "systems": [
            {
                "name": "main",
                "adapter": "python_function",
                "target": "agent:run",
                "headers": {name: f"Bearer ${{{name}}}" for name in names[:20]},
                "list": [f"prefix ${{{name}}} suffix" for name in names[20:]],
            }
        ],
        "evaluators": [
            {"name": f"says_{i}", "type": "contains_text", "config": {"all_of": [f"${{{name}}}"]}}
            for i, name in enumerate(names)
        ],
        "output": [{"type": "local_files", "path": "runs"}],
    }
    (tmp_path / "eval.yaml").write_text(yaml.safe_dump(suite))
    project = Project(tmp_path, dict(SECRETS))
    done = project.command("run", "eval.yaml")
    assert done.returncode == 3, done.stderr
    inspected = project.command("inspect", str(project.run_dir()), "--no-truncate")
    texts = {p.name: p.read_bytes() for p in project.run_dir().rglob("*") if p.is_file()}
    texts |= {"screen": (done.stdout + done.stderr + inspected.stdout + inspected.stderr).encode()}
    forms = {
        form
        for secret in SECRETS.values()
        for form in (
            secret,
            json.dumps(secret)[1:-1],
            json.dumps(secret, ensure_ascii=False)[1:-1],
            urllib.parse.quote(secret, safe=""),
            base64.b64encode(secret.encode()).decode().rstrip("="),
        )
    }
    listed = [(name, form) for name, text in texts.items() for form in forms if form.encode() in text]
    assert listed == []
    assert b"MASKED" in texts["traces.jsonl"]


def test_a_run_with_secrets_can_go_on_from_the_environment(tmp_path):
    (tmp_path / "agent.py").write_text(
        "def run(case, variant):\n    return {'final_answer': str(len(variant['config']['api_key']))}\n"
    )
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "input": {}}\n')
    (tmp_path / "eval.yaml").write_text(
        "eval: {name: s}\ndataset: {type: jsonl, path: cases.jsonl}\n"
        "systems: [{name: v, adapter: python_function, target: 'agent:run', api_key: '${SHOP_API_KEY}'}]\n"
        "evaluators: [{name: e, type: contains_text, config: {all_of: ['11']}}]\n"
        "output: {type: local_files, path: runs}\n"
    )
    project = Project(tmp_path, {"SHOP_API_KEY": "abcdefghijk"})
    project.command("run", "eval.yaml", "--quiet")
    for name in ("traces.jsonl", "verdicts.jsonl", "results.jsonl"):
        (project.run_dir() / name).write_bytes(b"")
    without = Project(tmp_path).command("resume", str(project.run_dir()))
    assert without.returncode == 2
    assert "SHOP_API_KEY" in without.stderr
    assert project.command("resume", str(project.run_dir())).returncode == 0


def test_a_run_with_a_literal_credential_goes_on_while_its_suite_is_the_same(tmp_path):
    (tmp_path / "agent.py").write_text(
        "def run(case, variant):\n    key = variant['config']['api_key']\n"
        "    return {'final_answer': f'{len(key)} {key}'}\n"
    )
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "input": {}}\n')
    suite = (
        "eval: {name: s}\ndataset: {type: jsonl, path: cases.jsonl}\n"
        "systems: [{name: v, adapter: python_function, target: 'agent:run', api_key: abcdefghijk}]\n"
        "evaluators: [{name: e, type: contains_text, config: {all_of: ['11']}}]\n"
        "output: {type: local_files, path: runs}\n"
    )
    (tmp_path / "eval.yaml").write_text(suite)
    project = Project(tmp_path)
    project.command("run", "eval.yaml", "--quiet")
    for name in ("traces.jsonl", "verdicts.jsonl", "results.jsonl"):
        (project.run_dir() / name).write_bytes(b"")
    (tmp_path / "eval.yaml").write_text(suite.replace("[{name: e", "[{name: f"))
    refused = project.command("resume", str(project.run_dir()))
    assert refused.returncode == 2
    assert "api_key" in refused.stderr
    (tmp_path / "eval.yaml").write_text(suite)
    assert project.command("resume", str(project.run_dir())).returncode == 0
    files = [path for path in project.run_dir().rglob("*") if path.is_file()]
    assert [path.name for path in files if b"abcdefghijk" in path.read_bytes()] == []


@contextmanager
def echoing(status):
    """A service that repeats all that it was sent: address, headers and body, in text and in JSON."""

    class Service(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            seen.append(f"{self.path} {self.headers} {body}")
            said = {"output": seen[-1], "error": None if status == 200 else seen[-1]}
            answer = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *arguments):
            pass

    seen = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server.server_port, seen
        finally:
            server.shutdown()


@pytest.mark.slow("a run for each store")
@pytest.mark.parametrize("status", [200, 401, 500])
def test_forty_secrets_that_a_service_repeats_are_found_nowhere(tmp_path, status):
    names = sorted(SENT)
    in_url, in_query, in_headers, in_body = names[:10], names[10:20], names[20:30], names[30:]
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "input": {"q": 1}}\n')
    with echoing(status) as (port, seen):
        path = "/".join(f"${{{name}}}" for name in in_url)
        suite = {
            "eval": {"name": "secrets"},
            "dataset": {"type": "jsonl", "path": "cases.jsonl"},
            "systems": [
                {
                    "name": "main",
                    "adapter": "http",
                    "provider": "simple",
                    "endpoint": f"http://127.0.0.1:{port}/{path}",
                    "query_params": {f"q{i}": f"${{{name}}}" for i, name in enumerate(in_query)},
                    "headers": {f"X-H{i}": f"Bearer ${{{name}}}" for i, name in enumerate(in_headers)},
                    "body": {f"b{i}": f"<${{{name}}}>" for i, name in enumerate(in_body)},
                    "request_template": '{"q": {{ input.q | json }}}',
                }
            ],
            "evaluators": [{"name": "says", "type": "contains_text", "config": {"all_of": ["fine"]}}],
            "output": [
                {"type": "local_files", "path": "runs"},
                {"type": "webhook", "platform": "slack", "url": f"http://127.0.0.1:1/${{{names[0]}}}"},
            ],
        }
        (tmp_path / "eval.yaml").write_text(yaml.safe_dump(suite))
        project = Project(tmp_path, dict(SENT))
        done = project.command("run", "eval.yaml")
        inspected = project.command("inspect", str(project.run_dir()), "--no-truncate")
    assert [name for name in names if SENT[name] not in seen[0]] == [], done.stderr
    texts = {p.name: p.read_bytes() for p in project.run_dir().rglob("*") if p.is_file()}
    texts |= {"screen": (done.stdout + done.stderr + inspected.stdout + inspected.stderr).encode()}
    assert [(file, name) for file, text in texts.items() for name in names if SENT[name].encode() in text] == []
    assert b"MASKED" in texts["traces.jsonl"]
    assert b"webhook" in texts["summary.yaml"]


LITERAL = (
    "eval: {name: s}\ndataset: {type: jsonl, path: cases.jsonl}\n"
    "systems: [{name: v, adapter: python_function, target: 'agent:run'}]\n"
    "evaluators: [{name: e, type: contains_text, config: {all_of: ['fine']}}]\n"
    "output:\n  - {type: local_files, path: runs}\n"
    "  - {type: webhook, platform: slack, url: 'http://joe:hunter2pass@127.0.0.1:1/T00/hush-path?token=hush-token'}\n"
)


def test_a_literal_address_of_a_webhook_is_in_no_file_and_the_run_goes_on_with_it(tmp_path):
    (tmp_path / "agent.py").write_text("def run(case, variant):\n    return {'final_answer': 'fine'}\n")
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "input": {}}\n')
    (tmp_path / "eval.yaml").write_text(LITERAL)
    project = Project(tmp_path)
    done = project.command("run", "eval.yaml")
    for name in ("traces.jsonl", "verdicts.jsonl", "results.jsonl"):
        (project.run_dir() / name).write_bytes(b"")
    resumed = project.command("resume", str(project.run_dir()))
    assert (done.returncode, resumed.returncode) == (0, 0), resumed.stderr
    assert "the webhook could not be reached" in (project.run_dir() / "summary.yaml").read_text()
    texts = [done.stdout, resumed.stdout, resumed.stderr]
    texts += [path.read_text() for path in project.run_dir().rglob("*") if path.is_file()]
    assert [text for text in texts for part in ("hunter2pass", "hush", "127.0.0.1") if part in text] == []


def test_a_run_whose_webhook_is_not_at_hand_is_not_gone_on_with(tmp_path):
    (tmp_path / "agent.py").write_text("def run(case, variant):\n    return {'final_answer': 'fine'}\n")
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "input": {}}\n')
    (tmp_path / "eval.yaml").write_text(LITERAL)
    project = Project(tmp_path)
    project.command("run", "eval.yaml")
    (tmp_path / "eval.yaml").write_text(LITERAL.replace("name: s", "name: t"))
    refused = project.command("resume", str(project.run_dir()))
    assert refused.returncode == 2
    assert "'webhook' needs the secret url" in refused.stderr


def test_a_secret_in_a_name_is_refused(tmp_path):
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "input": {}}\n')
    (tmp_path / "eval.yaml").write_text(LITERAL.replace("name: v", "name: '${SHOP_API_KEY}'"))
    refused = Project(tmp_path, {"SHOP_API_KEY": "abcdefghijk"}).command("run", "eval.yaml")
    assert refused.returncode == 2
    assert "eval.yaml:3  systems[0].name    names are stored: 'SHOP_API_KEY' is a secret" in refused.stderr
    assert "abcdefghijk" not in refused.stderr


@pytest.mark.parametrize("output", ["runs/${SHOP_API_KEY}", "${SHOP_API_KEY}.db"])
def test_a_secret_in_the_path_of_an_output_is_refused(tmp_path, output):
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "input": {}}\n')
    kind = "sqlite" if output.endswith(".db") else "local_files"
    suite = LITERAL.partition("output:")[0] + f"output: {{type: {kind}, path: '{output}'}}\n"
    (tmp_path / "eval.yaml").write_text(suite)
    refused = Project(tmp_path, {"SHOP_API_KEY": "abcdefghijk"}).command("run", "eval.yaml")
    assert refused.returncode == 2
    assert "paths are stored: 'SHOP_API_KEY' is a secret" in refused.stderr
    assert not [path for path in tmp_path.rglob("*") if "abcdefghijk" in path.name]


def test_a_secret_in_the_id_of_a_case_is_in_no_file_name_and_its_trace_is_judged_again(tmp_path):
    (tmp_path / "agent.py").write_text(
        "from pathlib import Path\n\ndef run(case, variant):\n"
        "    (Path(variant['_workspace_path']) / case['id']).write_text('x')\n    return {'final_answer': 'fine'}\n"
    )
    (tmp_path / "cases.jsonl").write_text('{"id": "x-abcdefghijk-y", "input": {}}\n')
    changed = LITERAL.partition("  - {type: webhook")[0].replace(
        "evaluators: [", "workspace: {type: tempdir_snapshot}\nevaluators: [{name: changed, type: git_diff}, "
    )
    (tmp_path / "eval.yaml").write_text(changed)
    project = Project(tmp_path, {"SHOP_API_KEY": "abcdefghijk"})
    done = project.command("run", "eval.yaml")
    again = project.command("re-evaluate", str(project.run_dir()))
    assert (done.returncode, again.returncode) == (0, 0), done.stderr + again.stderr
    stored = [(path, path.read_text() if path.is_file() else "") for path in project.run_dir().rglob("*")]
    assert len([path for path, _ in stored if path.name == "artifact.json"]) == 1
    assert [path for path, text in stored if "abcdefghijk" in f"{path.relative_to(tmp_path)} {text}"] == []


def test_a_log_that_is_set_up_when_the_system_is_imported_is_masked_too(tmp_path):
    (tmp_path / "agent.py").write_text(
        "import logging\n\nlogging.basicConfig(level=logging.DEBUG)\n\ndef run(case, variant):\n"
        "    logging.info('login with %s', variant['config']['note'])\n    return {'final_answer': 'fine'}\n"
    )
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "input": {}}\n')
    suite = LITERAL.partition("  - {type: webhook")[0].replace("name: v,", "name: v, note: '${WORD}',")
    (tmp_path / "eval.yaml").write_text(suite)
    done = Project(tmp_path, {"WORD": "abcdefghijk"}).command("run", "eval.yaml")
    assert (done.returncode, "login with ***MASKED***" in done.stderr) == (0, True), done.stderr
    assert "abcdefghijk" not in done.stderr


def test_bytes_that_a_system_writes_to_standard_streams_are_masked_too(tmp_path):
    (tmp_path / "agent.py").write_text(
        "import io, os, sys\n\ndef run(case, variant):\n    said = os.environ['SOME_API_KEY'].encode()\n"
        "    for stream in (sys.stdout, sys.stderr):\n        assert stream.buffer.fileno() == stream.fileno()\n"
        "        stream.buffer.write(b'bytes ' + said + b'\\n')\n        stream.buffer.flush()\n"
        "        text = io.TextIOWrapper(stream.buffer, encoding='utf-8')\n"
        "        print('text', said.decode(), file=text)\n        text.flush()\n"
        "    return {'final_answer': 'fine'}\n"
    )
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "input": {}}\n')
    (tmp_path / "eval.yaml").write_text(LITERAL.partition("  - {type: webhook")[0])
    done = Project(tmp_path, {"SOME_API_KEY": "abcdefghijk"}).command("run", "eval.yaml")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("text ***MASKED***\n") == 2
    assert done.stderr.count(" ***MASKED***\n") == 4
    assert "abcdefghijk" not in done.stdout + done.stderr


def test_what_a_system_prints_is_masked_whoever_set_the_variable(tmp_path):
    (tmp_path / "agent.py").write_text(
        "import os\n\nprint('hello', os.environ['SOME_API_KEY'])\n\n"
        "def run(case, variant):\n    print('first', os.environ['SOME_API_KEY'])\n"
        "    os.environ['OTHER_TOKEN'] = 'qwertyuiop'\n    print('then', os.environ['OTHER_TOKEN'])\n"
        "    return {'final_answer': 'fine'}\n"
    )
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "input": {}}\n')
    (tmp_path / "eval.yaml").write_text(LITERAL.partition("  - {type: webhook")[0])
    done = Project(tmp_path, {"SOME_API_KEY": "abcdefghijk"}).command("run", "eval.yaml")
    assert "first ***MASKED***\nthen ***MASKED***\n" in done.stderr
    assert "hello ***MASKED***\n" in done.stderr
    assert "hello" not in done.stdout
