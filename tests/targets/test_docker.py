"""Containers as systems, with a stand-in for the docker command: where there is no engine, its words can be tested."""

import json
import os
import sys
from pathlib import Path

import pytest

from evalwright.errors import InputError
from evalwright.model.plan import Variant
from evalwright.registry import load
from living import left_after_a_moment
from targets.services import SERVICE, evalwright

STAND_IN = """#!{python}
# Stands in for the docker command: `run` starts the service of the tests in a process, `rm` kills it.
import json, os, signal, subprocess, sys
from pathlib import Path

words, state = sys.argv[1:], Path({state!r})
with (state / "calls").open("a") as calls:
    calls.write(json.dumps([words, os.environ.get("SHOP_TOKEN")]) + "\\n")
if words[0] == "version":
    print("27.0")
elif words[0] == "run":
    port, inside = words[words.index("--publish") + 1].split(":")[1:]
    name = words[words.index("--name") + 1]
    if words[-1] == "no/such:image":
        sys.exit("Unable to find image 'no/such:image' locally")
    command = [sys.executable, str(state / ("missing.py" if words[-1] == "broken" else "service.py")), port, {mark!r}]
    service = subprocess.Popen(
        command, env={{**os.environ, "PORT": port}}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    (state / name).write_text(str(service.pid))
    print(name)
elif words[0] == "inspect":
    lives = Path(f"/proc/{{(state / words[-1]).read_text()}}/exe").exists()
    print("running 0" if lives else "exited 2")
elif words[0] == "logs":
    print("cannot open missing.py")
elif words[0] == "rm":
    pid = state / words[-1]
    if pid.exists():
        os.killpg(int(pid.read_text()), signal.SIGKILL)
else:
    sys.exit(f"unknown: {{words}}")
"""

SUITE = """
eval: {name: container}
dataset: {type: yaml, path: cases.yaml}
systems:
  - name: s
    adapter: docker
    image: IMAGE
    container_port: 8080
    env: {SHOP_TOKEN: "${SHOP_TOKEN}", MODE: test}
    volumes: ["/data:/data:ro"]
    healthcheck: GET /health
    inner_adapter: http
    inner_config: {endpoint: "http://127.0.0.1:{port}/ask", provider: simple}
evaluators: [{name: says, type: contains_text, config: {all_of: [container]}}]
output: {type: local_files, path: runs}
"""


@pytest.fixture
def mark(tmp_path):
    return f"mark-{os.getpid()}-{tmp_path.name}"


def run(folder, mark, image="shop:1"):
    """What became of a run, and the calls of the stand-in."""
    state, programs = folder / "state", folder / "bin"
    state.mkdir()
    programs.mkdir()
    (state / "service.py").write_text(SERVICE.replace("BRANCH_NAME", "container"))
    (programs / "docker").write_text(STAND_IN.format(python=sys.executable, state=str(state), mark=mark))
    (programs / "docker").chmod(0o755)
    (folder / "eval.yaml").write_text(SUITE.replace("IMAGE", image))
    (folder / "cases.yaml").write_text("cases: [{id: a, input: {word: x}}]")
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    done = evalwright(folder, "run", "eval.yaml", PATH=path, SHOP_TOKEN="canary-token-51")
    return done, [json.loads(line) for line in (state / "calls").read_text().splitlines()]


def test_a_container_answers_and_is_removed(tmp_path, mark):
    done, calls = run(tmp_path, mark)
    assert done.returncode == 0, done.stderr
    assert [words[0] for words, _ in calls if words[0] != "inspect"] == ["version", "run", "rm"]
    [(words, _)] = [call for call in calls if call[0][0] == "run"]
    assert words[words.index("--publish") + 1].startswith("127.0.0.1:")
    assert words[words.index("--publish") + 1].endswith(":8080")
    assert words[words.index("--volume") + 1] == "/data:/data:ro"
    assert words[-2:] == ["--", "shop:1"]
    removed = next(words for words, _ in calls if words[0] == "rm")
    assert removed[-1] == words[words.index("--name") + 1]
    assert left_after_a_moment(mark) == []


def test_values_reach_the_container_without_being_seen_among_the_arguments(tmp_path, mark):
    _, calls = run(tmp_path, mark)
    [(words, token)] = [call for call in calls if call[0][0] == "run"]
    assert token == "canary-token-51"
    assert [words[i + 1] for i, word in enumerate(words) if word == "--env"] == ["SHOP_TOKEN", "MODE"]
    stored = [path for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    assert stored != []
    assert [path for path in stored if b"canary-token" in path.read_bytes()] == []


@pytest.mark.slow("waits for a container that does not come up")
@pytest.mark.parametrize(
    ("image", "told"),
    [
        ("no/such:image", "Unable to find image"),
        ("broken", "the container ended with exit code 2: cannot open missing.py"),
    ],
)
def test_a_container_that_does_not_come_up_is_removed_and_reported(tmp_path, mark, image, told):
    done, calls = run(tmp_path, mark, image)
    assert done.returncode == 2
    assert told in done.stderr
    assert calls[-1][0][0] == "rm"
    assert left_after_a_moment(mark) == []


def test_a_missing_docker_command_is_reported(tmp_path):
    (tmp_path / "eval.yaml").write_text(SUITE.replace("IMAGE", "x"))
    (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: {word: x}}]")
    done = evalwright(tmp_path, "run", "eval.yaml", PATH=str(tmp_path), SHOP_TOKEN="canary-token-51")
    assert done.returncode == 2
    assert "no command 'docker'" in done.stderr


@pytest.mark.skipif(
    not any((Path(folder) / "docker").exists() for folder in os.get_exec_path()), reason="there is no docker command"
)
def test_where_no_engine_answers_docker_itself_is_quoted(tmp_path):
    host = f"unix://{tmp_path}/none.sock"
    (tmp_path / "eval.yaml").write_text(SUITE.replace("IMAGE", "x"))
    (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: {word: x}}]")
    done = evalwright(tmp_path, "run", "eval.yaml", DOCKER_HOST=host, SHOP_TOKEN="canary-token-51")
    assert done.returncode == 2
    assert "docker daemon" in done.stderr.lower()


GOOD = {
    "image": "x",
    "inner_adapter": "http",
    "inner_config": {"endpoint": "http://127.0.0.1:{port}/ask", "provider": "simple"},
}


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"image": None}, "image"),
        ({"container_port": 0}, "container_port"),
        ({"container_port": "80"}, "container_port"),
        ({"env": ["A=1"]}, "env"),
        ({"volumes": ["/data"]}, "volumes"),
        ({"volumes": "/data:/data"}, "volumes"),
        ({"inner_adapter": "nothing"}, "inner_adapter"),
    ],
)
def test_mistakes_are_reported_by_key(changes, key):
    with pytest.raises(InputError) as refused:
        load("targets", "docker")(Variant("s", "docker", {**GOOD, **changes}))
    assert [problem.key for problem in refused.value.problems] == [key]


def test_a_good_configuration_needs_no_engine_to_be_checked(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert load("targets", "docker")(Variant("s", "docker", GOOD)) is not None
