"""Which tests and columns are run, by the options of the command line and of the file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from formats.promptfoo.runs import ECHO, SCENARIOS, run, run_at, write


@pytest.mark.parametrize(
    ("option", "value", "left"),
    [
        ("filter_pattern", "^fir", ["a"]),
        ("filter_pattern", ".*", ["a"]),
        ("filter_first_n", 2, ["a", "b"]),
        ("filter_metadata", ["area=x"], ["b", "c"]),
        ("filter_metadata", ["area=x", "area=y"], ["b"]),
        ("filter_range", "1:", ["b", "c"]),
        ("filter_range", ":1", ["a"]),
        ("filter_failing", True, ["a", "c"]),
        ("filter_failing_only", True, ["a"]),
        ("filter_errors_only", True, ["c"]),
    ],
)
def test_tests_can_be_chosen(tmp_path, option, value, left):
    if value is True:
        value = tmp_path / "before.json"
        rows = [
            {"testCase": {"vars": {"q": q}, **more}, "success": q == "b", "failureReason": reason}
            for q, reason, more in (("a", 1, {"description": "first"}), ("b", 0, {}), ("c", 2, {}))
        ]
        value.write_text(json.dumps({"results": {"results": rows}}))
    tests = [
        {"vars": {"q": "a"}, "description": "first"},
        {"vars": {"q": "b"}, "metadata": {"area": ["x", "y"]}},
        {"vars": {"q": "c"}, "metadata": {"area": "x"}},
    ]
    cases = load_suite(write(tmp_path, {**ECHO, "tests": tests}), options={option: value}).cases
    assert [case.input["q"] for case in cases] == left


def test_a_sample_is_the_one_that_promptfoo_takes(tmp_path):
    """As the original takes with `--filter-sample 4` of ten tests, with two seeds."""
    config = {**ECHO, "tests": [{"vars": {"q": str(i)}} for i in range(10)]}
    for seed, taken in ((7, "1278"), (123, "5679")):
        options = {"filter_sample": 4, "filter_sample_seed": seed}
        cases = load_suite(write(tmp_path, config), options=options).cases
        assert "".join(case.input["q"] for case in cases) == taken


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"filter_pattern": "(?i)a"}, "not a regular expression"),
        ({"filter_providers": "("}, "not a regular expression"),
        ({"filter_prompts": "none"}, "matches 'none'"),
        ({"filter_metadata": ["x"]}, "expected KEY=VALUE"),
        ({"filter_range": "3"}, "expected START:END"),
        ({"filter_range": "3:1"}, "the start is after the end"),
        ({"filter_pattern": "zzz"}, "leaves none of 1 test"),
        ({"filter_failing": Path("gone.json")}, "does not exist"),
    ],
)
def test_a_filter_that_cannot_be_used_or_leaves_nothing_is_refused(tmp_path, options, said):
    with pytest.raises(InputError, match=re.escape(said)):
        load_suite(write(tmp_path, {**ECHO, "tests": [{"vars": {"q": "a"}}]}), options=options)


def test_command_line_options_of_the_file_go_before_its_evaluate_options(tmp_path):
    config = {
        **ECHO,
        "evaluateOptions": {"repeat": 3},
        "commandLineOptions": {"repeat": 2, "filterRange": "1:3", "verbose": True},
        "tests": [{"vars": {"q": x}, "assert": [{"type": "contains", "value": x}]} for x in "abcd"],
    }
    suite = load_suite(write(tmp_path, config))
    assert ([case.input["q"] for case in suite.cases], suite.run.trials) == (["b", "c"], 2)
    assert [warning.key for warning in suite.warnings] == ["commandLineOptions.verbose"]
    run(tmp_path, config, options={"output": tmp_path / "out.json"})
    rows = json.loads((tmp_path / "out.json").read_text())["results"]["results"]
    assert sorted((row["testIdx"], row["vars"]["q"]) for row in rows) == [(0, "b"), (1, "b"), (2, "c"), (3, "c")]


def test_a_filter_leaves_the_names_of_columns(tmp_path):
    tests = [{"vars": {"q": "x"}, "assert": [{"type": "contains", "value": "two"}]}]
    prompts = [{"raw": f"{name} {{{{q}}}}", "label": name} for name in ("one", "two")]
    config = {"prompts": prompts, "providers": ["echo", {"id": "echo"}], "tests": tests}
    every = [*run(tmp_path, config, options={"output": tmp_path / "out.json"}).verdicts]
    only = run_at(tmp_path / "promptfooconfig.yaml", tmp_path, {"filter_prompts": "two"})
    assert [*only.verdicts] == [key for key in every if "two" in key[1]] == [
        ("test-0", "echo@two", 0), ("test-0", "echo@two#2", 0),
    ]  # fmt: skip
    options = {"filter_prompts": "two", "cached": tmp_path / "out.json"}
    assert run_at(tmp_path / "promptfooconfig.yaml", tmp_path, options).outputs == ["two x", "two x"]


def test_a_test_that_is_not_for_a_column_has_no_latency_there(tmp_path):
    prompts = [{"raw": f"{name} {{{{q}}}}", "label": name} for name in ("one", "two")]
    tests = [{"vars": {"q": "x"}}, {"vars": {"q": "y"}, "prompts": ["one"]}]
    result = run(tmp_path, {**ECHO, "prompts": prompts, "tests": tests})
    assert sorted(result.statuses) == ["pass", "pass", "pass", "skip"]
    assert [variant.latency_n for variant in result.outcome.summary.variants] == [2, 1]


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({"filter_first_n": 1}, "ax bx ay by p1 q1 p2 q2"),
        ({"filter_pattern": "one"}, "ax bx ay by r1 r2"),
        ({"filter_range": "1:3"}, "z p1 q1"),
        ({"filter_sample": 1, "filter_sample_seed": 5}, "z p1 q1 p2 q2"),
    ],
)
def test_filters_count_tests_and_not_what_their_lists_of_values_give(tmp_path, options, left):
    """As the original chooses of the same configuration."""
    cases = load_suite(write(tmp_path, SCENARIOS), options=options).cases
    assert [f"{case.input['n']}{case.input['k']}{case.input['s']}" for case in cases] == left.split()


def test_a_provider_that_is_an_address_is_named_without_its_secrets(tmp_path):
    address = "http://me:hunter22@127.0.0.1:9/ask?api_key=k123456"
    config = {**ECHO, "providers": [address, {address: {"config": {"method": "POST", "body": {"q": "{{prompt}}"}}}}]}
    suite = load_suite(write(tmp_path, config))
    shown = "http://me:***@127.0.0.1:9/ask?api_key=***"
    assert [variant.name for variant in suite.variants] == [shown, f"{shown}#2"]
    assert {"hunter22", "k123456"} <= set(suite.secrets.values())


AGENTS = ["anthropic:claude-agent-sdk", "openai:moderation", "nosuch:m"]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_provider_that_is_left_out_need_not_be_supported(tmp_path, agent):
    """promptfoo does not load it, either."""
    tests = [{"vars": {"q": "a"}, "assert": [{"type": "equals", "value": "a"}]}]
    path = write(tmp_path, {**ECHO, "providers": [{"id": agent, "label": "agent"}, "echo"], "tests": tests})
    for pattern in (None, "agent"):
        with pytest.raises(InputError, match=re.escape(repr(agent))):
            load_suite(path, options={"filter_providers": pattern})
    assert run_at(path, tmp_path, {"filter_providers": "echo"}).statuses == ["pass"]


def test_recorded_outputs_of_any_provider_are_judged(tmp_path):
    rows = [
        {"testCase": {"vars": {"q": "a"}}, "vars": {"q": "a"}, "promptIdx": i, "response": {"output": output}}
        for i, output in enumerate(("a", "b", "a"))
    ]
    (tmp_path / "out.json").write_text(json.dumps({"results": {"results": rows}}))
    tests = [{"vars": {"q": "a"}, "assert": [{"type": "equals", "value": "a"}]}]
    path = write(tmp_path, {**ECHO, "providers": AGENTS, "tests": tests})
    assert run_at(path, tmp_path, {"cached": tmp_path / "out.json"}).statuses == ["pass", "fail", "pass"]
    grader = [{"type": "llm-rubric", "value": "a", "provider": AGENTS[0]}]
    path = write(tmp_path, {**ECHO, "providers": AGENTS, "tests": [{"vars": {"q": "a"}, "assert": grader}]})
    with pytest.raises(InputError, match=r"assert\[0\]\.provider .*is not supported"):
        load_suite(path, options={"cached": tmp_path / "out.json"})


def test_recorded_columns_of_a_provider_that_is_not_supported_are_those_of_its_prompts(tmp_path):
    rows = [
        {"testCase": {"vars": {"q": "a"}}, "vars": {"q": "a"}, "promptIdx": i, "response": {"output": output}}
        for i, output in enumerate("xyz")
    ]
    (tmp_path / "out.json").write_text(json.dumps({"results": {"results": rows}}))
    prompts = [{"raw": "{{q}}", "label": label} for label in ("one", "two")]
    agent = {"id": "wss://me:hunter22@localhost/?api_key=k123456", "prompts": ["two"]}
    path = write(tmp_path, {"prompts": prompts, "providers": [agent, "echo"], "tests": [{"vars": {"q": "a"}}]})
    ran = run_at(path, tmp_path, {"cached": tmp_path / "out.json"})
    columns = ["wss://me:***@localhost/?api_key=***@two", "echo@one", "echo@two"]
    assert dict(zip((name for _, name, _ in ran.traces), ran.outputs, strict=True)) == dict(
        zip(columns, "xyz", strict=True)
    )
