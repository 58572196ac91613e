"""Keys that a target does not read: each is refused with its place and the nearest one that it reads."""

import re
from pathlib import Path
from typing import Any

import pytest

from evalwright import registry
from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.targets.build import unread_of

DOCS = Path(__file__).parents[2] / "docs" / "targets.md"
SUITE = """\
eval: {name: t}
dataset: {type: yaml, path: cases.yaml}
systems:
  - %s
evaluators: [{name: says, type: contains_text}]
output: {type: local_files, path: runs}
"""
CLOSED = [
    name
    for name in registry.names("targets")
    if getattr(registry.load("targets", name), "config_keys", None) is not None and name not in registry.INTERNAL
]


def documented(target: str) -> set[str]:
    """The keys in the tables of the sections whose heading names the target."""
    sections = re.split(r"^## ", DOCS.read_text(), flags=re.M)
    listed = [section for section in sections if target in section.partition("\n")[0].split(", ")]
    rows = re.findall(r"^\| (`[^|]*`) \|", "".join(listed), flags=re.M)
    return {key for row in rows for key in re.findall(r"`(\w+)`", row)} - {"key"}


def refusals(tmp_path: Path, system: str, *, to_run: bool = True) -> dict[str, str]:
    (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: {q: hi}}]\n")
    (tmp_path / "eval.yaml").write_text(SUITE % system)
    with pytest.raises(InputError) as refused:
        load_suite(tmp_path / "eval.yaml", to_run=to_run)
    assert all(problem.line == 4 for problem in refused.value.problems)
    return {problem.key: problem.message for problem in refused.value.problems}


def test_every_target_but_functions_says_what_it_reads() -> None:
    free = set(registry.names("targets")) - set(CLOSED) - registry.INTERNAL
    assert free == {"python_function", "agentv", "letta_agent", "promptfoo"}  # these have what their formats read


@pytest.mark.parametrize("target", CLOSED)
def test_a_letter_less_in_any_key_is_noticed(target: str) -> None:
    keys = registry.load("targets", target).config_keys
    for key in keys:
        for position in range(len(key)):
            short = key[:position] + key[position + 1 :]
            if short not in keys:
                assert [place for place, _ in unread_of(target, {short: 1})] == [short]


@pytest.mark.parametrize("target", sorted(set(CLOSED) - {"subprocess", "replay"}))
def test_documented_keys_are_read_and_keys_that_are_read_documented(target: str) -> None:
    read = set(registry.load("targets", target).config_keys)
    assert documented(target) >= read - {"api_key"}
    assert list(unread_of(target, dict.fromkeys(read))) == []


@pytest.mark.parametrize("to_run", [True, False])
def test_all_misspelt_keys_are_named_at_once_with_the_nearest(tmp_path: Path, to_run: bool) -> None:
    system = "{name: c, adapter: cli, command: [/bin/cat], stdin_templat: x, timeout_second: 5, parse_as: json}"
    listed = refusals(tmp_path, system, to_run=to_run)
    assert listed.keys() == {"systems[0].stdin_templat", "systems[0].timeout_second", "systems[0].parse_as"}
    assert '"stdin_template"' in listed["systems[0].stdin_templat"]
    assert '"timeout_seconds"' in listed["systems[0].timeout_second"]


def test_other_mistakes_are_named_beside_them(tmp_path: Path) -> None:
    listed = refusals(tmp_path, "{name: c, adapter: cli, command: cat, stdin: x}")
    assert listed.keys() == {"systems[0].stdin", "systems[0].command"}


@pytest.mark.parametrize(
    ("system", "key"),
    [
        (
            "{name: s, adapter: http, endpoint: 'https://e.com', response_mapping: {final_answer: $.a, thinkin: $}}",
            "systems[0].response_mapping.thinkin",
        ),
        (
            "{name: s, adapter: http, endpoint: 'https://e.com', stream: true, stream_format: sse,"
            " stream_event_mapping: {token: $.t, dne: $.d}}",
            "systems[0].stream_event_mapping.dne",
        ),
        (
            "{name: s, adapter: user_simulator, user_model: m, user_persona_prompt: p,"
            " stopping_criterion: {type: turn_count, n: 1, m: 2}, inner_system: {adapter: cli, command: [/bin/cat]}}",
            "systems[0].stopping_criterion.m",
        ),
        (
            "{name: s, adapter: user_simulator, user_model: m, user_persona_prompt: p,"
            " stopping_criterion: {type: turn_count, n: 1},"
            " inner_system: {adapter: cli, command: [/bin/cat], timeout_seconds: 5}}",
            "systems[0].inner_system.timeout_seconds",
        ),
        (
            "{name: s, adapter: docker, image: i, inner_adapter: http,"
            " inner_config: {endpoint: 'http://127.0.0.1:{port}', provider: simple, header: {}}}",
            "systems[0].inner_config.header",
        ),
    ],
)
def test_keys_further_inside_are_named_by_their_path(tmp_path: Path, system: str, key: str) -> None:
    assert refusals(tmp_path, system).keys() == {key}


def test_a_target_of_a_plug_in_may_say_what_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    class Theirs:
        config_keys = ("url",)

    def load(kind: str, name: str) -> Any:
        return Theirs

    monkeypatch.setattr("evalwright.targets.build.load", load)
    monkeypatch.setattr("evalwright.targets.build.knows", lambda kind, name: True)
    assert [key for key, _ in unread_of("theirs", {"url": "x", "ulr": "y", "timeout_seconds": 3})] == ["ulr"]


def test_keys_of_a_function_are_its_own() -> None:
    assert list(unread_of("python_function", {"target": "a:b", "tone": "kind"})) == []


@pytest.mark.parametrize(
    ("agent", "limits", "keys"),
    [
        ("codex", {"max_turns": 5, "max_budget_usd": 1}, ["max_turns", "max_budget_usd"]),
        ("codex", {"max_turns": None}, []),
        ("claude", {"max_turns": 5, "max_budget_usd": 1}, []),
    ],
)
def test_a_limit_that_an_agent_does_not_have_is_named(agent: str, limits: dict[str, Any], keys: list[str]) -> None:
    assert [key for key, _ in unread_of("coding_agent", {"agent": agent, **limits})] == keys
