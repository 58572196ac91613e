"""Who may read: hosts, tokens, methods, headers."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from starlette.testclient import TestClient

from evalwright.cli.viewed_runs import runs_at
from evalwright.viewer.access import Access
from evalwright.viewer.app import viewer
from viewer.runs import site

TOKEN = "t" * 32
CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'"


@pytest.fixture
def guarded(run):
    with site(run.parent, TOKEN) as client:
        yield client


def test_nothing_is_shown_without_the_token(run, guarded):
    answer = guarded.get("/")
    assert answer.status_code == 403
    assert run.name not in answer.text
    entered = guarded.get(f"/runs/{run.name}?token={TOKEN}&status=fail")
    assert (entered.status_code, entered.headers["location"]) == (303, f"/runs/{run.name}?status=fail")
    cookie = entered.headers["set-cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Strict", "Path=/", "evalwright_7766="))
    assert guarded.get("/").status_code == 200  # the client keeps the cookie
    guarded.cookies.clear()
    assert guarded.get("/", headers={"Cookie": f"evalwright_7766={TOKEN[:-1]}x"}).status_code == 403


def test_an_old_token_in_a_bookmark_does_not_keep_out_who_is_in(run, guarded):
    assert guarded.get(f"/runs/{run.name}?token=old").status_code == 403
    guarded.cookies.set("evalwright_7766", TOKEN)
    answer = guarded.get(f"/runs/{run.name}?token=old&status=fail")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{run.name}?status=fail")


def test_a_token_is_left_out_where_none_is_needed(run, client):
    assert client.get(f"/runs/{run.name}?token=old").headers["location"] == f"/runs/{run.name}"


def test_a_link_copied_from_the_source_of_a_page_works(run, client):
    assert client.get(f"/runs/{run.name}?status=fail&amp;trial=0").status_code == 200
    assert client.get(f"/runs/{run.name}?status=fail&amp;nothing=0").status_code == 400


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/", {"Host": "evil.example"}, 421),
        ("GET", "/", {"Host": "127.0.0.1:1"}, 421),
        ("PUT", "/", {}, 405),
        ("DELETE", "/", {}, 405),
        ("OPTIONS", "/", {}, 405),
        ("GET", "/?q=" + "x" * 9000, {}, 414),
        ("POST", "/runs/x/labels", {}, 403),
        ("POST", "/runs/x/labels", {"Origin": "http://evil.example"}, 403),
        ("GET", "/assets/..%2f..%2fapp.py", {}, 404),
        ("GET", "/runs/..%2f..%2f/cells/0", {}, 404),
        ("GET", "/runs/%2e%2e", {}, 404),
    ],
)
def test_requests_that_no_page_makes_are_refused(guarded, method, path, headers, status):
    guarded.cookies.set("evalwright_7766", TOKEN)
    answer = guarded.request(method, path, headers=headers)
    assert answer.status_code == status
    assert answer.headers["content-security-policy"].startswith(CSP)


def test_a_name_that_is_not_served_is_told_how_to_be(guarded):
    assert "--host" in guarded.get("/", headers={"Host": "machine.example:7766"}).text


def test_a_form_is_posted_to_the_host_that_its_page_is_from(run):
    access = Access(TOKEN, ("127.0.0.1:7766", "localhost:7766"), 7766)
    app = viewer(lambda: runs_at([run]), access, labeller="ann")
    client = TestClient(app, base_url="http://127.0.0.1:7766", cookies={access.cookie: TOKEN}, follow_redirects=False)
    form = {"form_token": access.form_token(), "evaluator": "says", "order": "suite", "verdict": "undo"}
    posted = [
        client.post(f"/runs/{run.name}/labels", data=form, headers={"Origin": f"http://{host}"}).status_code
        for host in access.hosts
    ]
    assert posted == [303, 403]


def test_every_answer_says_what_a_browser_may_do_with_it(client):
    answer = client.get("/")
    assert answer.headers["content-security-policy"].startswith(CSP)
    assert "unsafe" not in answer.headers["content-security-policy"]
    wanted = {
        "x-content-type-options": "nosniff",
        "referrer-policy": "same-origin",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "cache-control": "no-store",
    }
    assert {name: answer.headers[name] for name in wanted} == wanted
    assert "access-control-allow-origin" not in answer.headers


def test_assets_are_small_and_kept_by_the_browser(client):
    text = client.get("/").text
    for name in ("style", "viewer"):
        path = text[text.index(f"/assets/{name}.") :].partition('"')[0]
        answer = client.get(path)
        assert "immutable" in answer.headers["cache-control"]
        assert len(answer.content) <= 30_000


SCRIPT = """
import sys
from evalwright.cli import main
for words in (["--help"], ["run", "eval.yaml", "--quiet", "--exit-zero"]):
    try:
        main(words)
    except SystemExit as ended:
        assert not ended.code, ended.code
print(sorted({name.partition(".")[0] for name in sys.modules} & {"starlette", "uvicorn", "jinja2", "anyio"}))
"""


@pytest.mark.slow("an interpreter of its own")
def test_who_does_not_look_pays_nothing_for_the_viewer(tmp_path):
    (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: {q: hello}}]")
    (tmp_path / "agent.py").write_text("def answer(case):\n    return {'final_answer': 'hello'}\n")
    suite = {
        "eval": {"name": "x"},
        "dataset": {"type": "yaml", "path": "cases.yaml"},
        "systems": [{"name": "agent", "adapter": "python_function", "target": "agent:answer"}],
        "evaluators": [{"name": "short", "type": "contains_text", "config": {"all_of": ["hello"]}}],
        "output": {"type": "local_files", "path": "runs"},
    }
    (tmp_path / "eval.yaml").write_text(json.dumps(suite))
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
