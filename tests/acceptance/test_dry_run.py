"""`run --dry-run`: what would be asked, and what it would cost."""

from __future__ import annotations

import json
import re

import pytest

from acceptance.projects import EVAL, project

JUDGED = EVAL.replace(
    "output:",
    """  - {name: judged, type: llm_judge, config: {model: gpt-4o-mini, nl_assertions: [a], samples: 3}}
metrics: {price_table_path: prices.yaml}
output:""",
).replace("evaluators:", "run: {trials: 2}\nevaluators:")
PRICES = """
table_version: "1"
freshness_date: 2026-01-01
models: {gpt-4o-mini: {input_per_million_tokens: 100, output_per_million_tokens: 1000}}
"""


def test_calls_are_counted_and_nothing_is_run(tmp_path):
    made = project(tmp_path, {"a": "thanks", "b": "thanks"}, JUDGED)
    (tmp_path / "prices.yaml").write_text(PRICES)
    ended = made.evalwright("run", "eval.yaml", "--dry-run")
    assert ended.code == 0
    assert ended.out.startswith("Dry run: 4 system calls, 12 judge calls, about $")
    assert not (tmp_path / "runs").exists()


def test_without_judges_there_is_nothing_to_pay(tmp_path):
    ended = project(tmp_path, {"a": "thanks"}).evalwright("run", "eval.yaml", "--dry-run")
    assert ended.out == "Dry run: 1 system call, 0 judge calls\n"


def test_members_that_ask_nobody_cost_nothing_together(tmp_path):
    together = """  - name: both
    type: composite
    config: {evaluators: [{name: a, type: contains_text, config: {all_of: [thanks]}}]}
output:"""
    made = project(tmp_path, {"a": "thanks"}, EVAL.replace("output:", together))
    assert made.evalwright("run", "eval.yaml", "--dry-run").out.startswith("Dry run: 1 system call, 0 judge calls")


def test_a_judge_among_members_is_counted(tmp_path):
    together = """  - name: both
    type: composite
    config: {evaluators: [{name: a, type: llm_judge, config: {model: gpt-x, nl_assertions: [x]}}]}
output:"""
    made = project(tmp_path, {"a": "thanks"}, EVAL.replace("output:", together))
    assert made.evalwright("run", "eval.yaml", "--dry-run").out.startswith("Dry run: 1 system call, 1 judge call")


def test_what_systems_and_judges_cost_is_told_apart_by_list_prices(tmp_path):
    suite = JUDGED.replace("metrics: {price_table_path: prices.yaml}\n", "")
    start = suite.index("systems:")
    chat = "systems:\n  - {name: s, adapter: openai_chat, model: gpt-4o-mini}\n"
    suite = suite[:start] + chat + suite[suite.index("run:") :]
    made = project(tmp_path, {"a": "thanks", "b": "thanks"}, suite)
    said = made.evalwright("run", "eval.yaml", "--dry-run").out
    assert re.search(r"12 judge calls, about \$0\.00\d+ \(\$0\.00\d+ for systems, \$0\.00\d+ for judges\)", said), said
    made = project(tmp_path, {"a": "thanks", "b": "thanks"}, suite.replace("gpt-4o-mini, nl", "gpt-house, nl"))
    said = made.evalwright("run", "eval.yaml", "--dry-run").out
    assert "No price is known for gpt-house" in said
    assert said.count("$") == 1, said


def test_a_forecast_as_json_sums_what_has_a_price_and_names_the_rest(tmp_path):
    suite = JUDGED.replace("model: gpt-4o-mini", "models: [gpt-4o-mini, gpt-x]").replace(", samples: 3", "")
    made = project(tmp_path, {"a": "thanks", "b": "thanks"}, suite)
    (tmp_path / "prices.yaml").write_text(PRICES)
    document = json.loads(made.evalwright("run", "eval.yaml", "--dry-run", "--json").out)
    assert document["exit_code"] == 0
    forecast = document["forecast"]
    assert (forecast["cells"], forecast["judge_calls"], forecast["unpriced"]) == (4, 8, ["gpt-x"])
    assert forecast["judge_cost_usd"] > 0
    said = made.evalwright("run", "eval.yaml", "--dry-run").out
    assert "for judges" in said
    assert "No price is known for gpt-x, whose cost is not included" in said


def test_a_forecast_finds_the_models_of_judges_among_targets_and_counts_calls_of_unnamed_ones(tmp_path):
    made = project(tmp_path, {"a": "thanks"}, "")
    (tmp_path / "EVAL.yaml").write_text("evalcases: [{id: a, input: hi, expected_outcome: greets}]\n")
    said = made.evalwright("run", "EVAL.yaml", "--dry-run").out
    assert "1 judge call\nThe suite names no model for 1 judge call, whose cost is not included\n" in said
    judge = "{name: gpt, provider: openai, model: gpt-4o-mini, api_key: '${{ KEY }}'}"
    (tmp_path / "targets.yaml").write_text(
        f"targets: [{{name: default, provider: mock, response: x, judge_target: gpt}}, {judge}]\n"
    )
    said = made.evalwright("run", "EVAL.yaml", "--dry-run", KEY="a key").out
    assert re.search(r"1 judge call, about \$0\.00\d+ for judges\n$", said), said


def test_every_judge_among_members_is_counted(tmp_path):
    member = "type: llm_judge, config: {model: gpt-x, nl_assertions: [x]}"
    together = f"""  - name: both
    type: composite
    config: {{evaluators: [{{name: a, {member}}}, {{name: b, {member}}}]}}
output:"""
    made = project(tmp_path, {"a": "thanks"}, EVAL.replace("output:", together))
    assert made.evalwright("run", "eval.yaml", "--dry-run").out.startswith("Dry run: 1 system call, 2 judge calls")


@pytest.mark.parametrize(("plan", "calls"), [("quality", "1 judge call"), ("trace", "2 judge calls")])
def test_recordings_in_which_a_judge_has_nothing_to_judge_cost_nothing(tmp_path, plan, calls):
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    cases = [{"id": str(number), "messages": messages} for number in range(7)]
    cases[0]["expected"] = {"goal": "The user is greeted."}
    step = {"id": "s", "run_id": "r", "name": "greet", "kind": "model", "status": "ok"}
    run = {"id": "r", "session_id": "x", "name": "agent"}
    cases[1]["trace"] = {"sessions": [{"id": "x"}], "runs": [run], "spans": [step], "events": []}
    made = project(tmp_path, {})
    (tmp_path / "recorded.json").write_text(json.dumps(cases))
    flags = ("--plan", plan, "--judge-model", "gpt-4o-mini")
    assert f"Dry run: 7 recorded answers, {calls}, " in made.evalwright("run", "recorded.json", "--dry-run", *flags).out
