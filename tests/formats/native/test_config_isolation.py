"""What keeps a suite within its folder, and a system within the isolation that it asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalwright.formats.loading import load_suite
from formats.suites import changed, problems, refusal, write

FUNCTION = {"name": "s", "adapter": "python_function", "target": "agent:answer"}


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({"isolaton": "process"}, 'did you mean "isolation"'),
        ({"timeout_secnds": 3}, 'did you mean "timeout_seconds"'),
        ({"sandbox": "docker"}, "so nothing is run"),
        ({"dockerImage": "x"}, "so nothing is run"),
        ({"workspace": {"type": "git"}}, "at the top of the file"),
    ],
)
def test_a_function_is_not_run_without_the_isolation_that_its_system_seems_to_ask_for(
    tmp_path: Path, extra: dict[str, Any], said: str
) -> None:
    (tmp_path / "agent.py").write_text("def answer(case, variant):\n    return 'hi'\n")
    (problem,) = problems(tmp_path, changed("systems", [FUNCTION | extra]))
    assert problem.key == f"systems[0].{next(iter(extra))}"
    assert said in problem.message


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({"isolaton": "process"}, 'did you mean "isolation"'),
        ({"isolation": "process"}, "belongs to the system itself"),
        ({"timeout_seconds": 3}, "belongs to the system itself"),
        ({"sandbox": "docker"}, "so nothing is run"),
    ],
)
def test_nor_is_a_function_that_another_system_calls(tmp_path: Path, extra: dict[str, Any], said: str) -> None:
    (tmp_path / "agent.py").write_text("def answer(case, variant):\n    return 'hi'\n")
    function = {key: value for key, value in FUNCTION.items() if key != "name"}
    simulated = {
        "name": "s",
        "adapter": "user_simulator",
        "user_model": "claude-sonnet-4-5",
        "user_persona_prompt": "x",
        "stopping_criterion": {"type": "turn_count", "n": 2},
        "inner_system": function | extra,
    }
    served = {
        "name": "s",
        "adapter": "docker",
        "image": "x",
        "inner_adapter": "python_function",
        "inner_config": {"target": "agent:answer"} | extra,
    }
    for system, key in ((simulated, "inner_system"), (served, "inner_config")):
        (problem,) = problems(tmp_path, changed("systems", [system]))
        assert problem.key == f"systems[0].{key}.{next(iter(extra))}"
        assert said in problem.message


@pytest.mark.parametrize("key", ["hooks", "sandbox", "network_mode", "isolaton"])
def test_a_workspace_does_what_it_asks_for_or_nothing_is_run(tmp_path: Path, key: str) -> None:
    (problem,) = problems(tmp_path, changed("workspace", {"type": "tempdir_snapshot", key: "strict"}))
    assert problem.key == f"workspace.{key}"
    assert "so nothing is run" in problem.message


@pytest.mark.parametrize("value", ["none", "off", "unrestricted", False])
def test_a_workspace_may_say_that_there_is_no_isolation(tmp_path: Path, value: object) -> None:
    (tmp_path / "agent.py").write_text("def answer(case, variant):\n    return 'hi'\n")
    suite = {**changed("systems", [FUNCTION]), "workspace": {"type": "tempdir_snapshot", "sandbox": value}}
    (warning,) = load_suite(write(tmp_path, suite)).warnings
    assert (warning.key, warning.message) == ("workspace.sandbox", "nothing reads this key")


def test_other_keys_of_a_function_are_its_own(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("def answer(case, variant):\n    return 'hi'\n")
    own = {"tone": "kind", "environment": "staging", "timeout": 3, "workspace": "/data", "sandbox": False}
    suite = load_suite(write(tmp_path, changed("systems", [FUNCTION | own])))
    assert suite.variants[0].config.items() >= own.items()
    assert suite.warnings == []


@pytest.mark.parametrize(
    ("path", "value", "key"),
    [
        ("metrics", {"price_table_path": "../out/prices.yaml"}, "metrics.price_table_path"),
        ("workspace", {"type": "tempdir_snapshot", "copy_from": "../out"}, "workspace.copy_from"),
        ("evaluators.0", {"name": "e", "type": "command", "config": {"cmd": ["x"], "cwd": "../out"}}, "cwd"),
        ("evaluators.0", {"name": "e", "type": "git_diff", "config": {"expected_patch_path": "../out/p"}}, "path"),
    ],
)
def test_what_a_suite_names_lies_in_its_folder_unless_the_user_allows_more(
    tmp_path: Path, path: str, value: Any, key: str
) -> None:
    (tmp_path / "suite").mkdir()
    (tmp_path / "out").mkdir()
    for name in ("p", "prices.yaml"):
        (tmp_path / "out" / name).touch()
    file = write(tmp_path / "suite", changed(path, value))
    (problem,) = refusal(lambda: load_suite(file)).problems
    assert problem.key.endswith(key)
    assert f"--allow-outside {tmp_path / 'out'} allows it" in problem.message
    if path != "metrics":  # an empty table is a mistake by itself
        load_suite(file, options={"allow_outside": [tmp_path / "out"]})
