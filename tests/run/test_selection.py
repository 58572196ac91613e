"""A suite without cases to run is an error, in every format and whatever left it without them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.model.plan import Price
from evalwright.run.forecast import forecast
from evalwright.run.options import RunOptions
from evalwright.run.selection import chosen_cases

NATIVE = """
eval: {name: t}
dataset: %s
systems: [{name: s, adapter: replay}]
evaluators: [{name: says, type: contains_text}]
output: {type: local_files, path: runs}
"""
CASES = "cases: [{id: a, input: {q: 1}, tags: [t], metadata: {tier: basic, deep: {k: 1}}}]\n"
LETTA = """
name: l
dataset: data.jsonl
sample_tags: %s
target: {kind: agent, agent_script: "agent.py:Agent"}
graders: {g: {kind: tool, function: contains, extractor: last_assistant}}
gate: {metric_key: g, op: gte, value: 0.5}
"""
SAMPLE = '{"input": "hi", "ground_truth": "x", "tags": ["math"]}\n'
TARGETS = "targets: [{name: t, provider: mock, response: hello}]\n"
AGENTV = "description: x\nexecution: {target: t}\nevalcases: []\n"

EMPTY = {
    "yaml": {"cases.yaml": "cases: []\n", "eval.yaml": NATIVE % "{type: yaml, path: cases.yaml}"},
    "jsonl": {"cases.jsonl": "\n", "eval.yaml": NATIVE % "{type: jsonl, path: cases.jsonl}"},
    "fixture": {"cases.yaml": "cases: []\n", "eval.yaml": NATIVE % "{type: fixture, path: cases.yaml}"},
    "cases": {"cases.jsonl": "", "eval.yaml": NATIVE % "{type: cases, path: cases.jsonl}"},
    "filter": {
        "cases.yaml": CASES,
        "eval.yaml": NATIVE % "{type: yaml, path: cases.yaml, filter: {metadata.tir: gold}}",
    },
    "letta": {"data.jsonl": "", "eval.yaml": LETTA % "[]"},
    "letta tags": {"data.jsonl": SAMPLE, "eval.yaml": LETTA % "[maths]"},
    "agentv": {".agentv/targets.yaml": TARGETS, "eval.yaml": AGENTV},
    "pixie": {
        "eval.json": json.dumps({"name": "p", "runnable": "a.py:r", "evaluators": ["ExactMatch"], "entries": []})
    },
}


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in {"agent.py": "", "a.py": "def r(**_): pass\n", **files}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder / ("eval.json" if "eval.json" in files else "eval.yaml")


def refused(path: Path, options: RunOptions = RunOptions(), **load: object) -> str:  # noqa: B008
    with pytest.raises(InputError) as refusal:
        list(chosen_cases(load_suite(path, to_run=False, options=load), options))
    return str(refusal.value)


@pytest.mark.parametrize("kind", EMPTY)
def test_a_suite_without_cases_is_refused(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, EMPTY[kind])
    dataset = next(name for name in EMPTY[kind] if name != ".agentv/targets.yaml")
    assert dataset in refused(path)


@pytest.mark.parametrize("kind", EMPTY)
def test_it_runs_with_allow_empty(tmp_path: Path, kind: str) -> None:
    suite = load_suite(written(tmp_path, EMPTY[kind]), to_run=False, options={"allow_empty": True})
    assert list(chosen_cases(suite, RunOptions(allow_empty=True))) == []


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("metadata.tir: gold", 'no case has metadata.tir; did you mean "metadata.tier"?'),
        ("metadata.deep.kk: 1", 'no case has metadata.deep.kk; did you mean "metadata.deep.k"?'),
        ("metadata.tier: gold", "no case matches the filter {metadata.tier: 'gold'}"),
        ("expected.fact: 1", 'did you mean "expected.facts"?'),
    ],
)
def test_a_filter_says_what_it_looked_for(tmp_path: Path, wanted: str, said: str) -> None:
    dataset = f"{{type: yaml, path: cases.yaml, filter: {{{wanted}}}}}"
    path = written(tmp_path, {"cases.yaml": CASES, "eval.yaml": NATIVE % dataset})
    assert said in refused(path)


def test_a_filter_of_tags_says_them(tmp_path: Path) -> None:
    assert "none of the 1 samples has all of sample_tags: maths" in refused(written(tmp_path, EMPTY["letta tags"]))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (RunOptions(cases=["zzz"]), "no case matches zzz"),
        (RunOptions(cases=["metdata.tier=basic"]), 'no case matches metdata.tier=basic; did you mean "metadata"?'),
        (RunOptions(tags=["zzz"]), "no case matches tag zzz"),
        (RunOptions(cases=["metadata.tier=gold", "id=a"]), "no case matches metadata.tier=gold"),
        (RunOptions(cases=["a", "metadata.tir=b"]), 'no case has metadata.tir; did you mean "metadata.tier"?'),
    ],
)
def test_a_choice_that_matches_nothing_is_refused(tmp_path: Path, options: RunOptions, said: str) -> None:
    path = written(tmp_path, {"cases.yaml": CASES, "eval.yaml": NATIVE % "{type: yaml, path: cases.yaml}"})
    assert said in refused(path, options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (RunOptions(cases=["a", "zzz*"]), "no case matches zzz*"),
        (RunOptions(cases=["zzz", "?", "yyy"]), "no case matches zzz, yyy"),
        (RunOptions(tags=["t", "tt"]), "no case matches tag tt"),
        (RunOptions(cases=["a"], tags=["t", ""]), "no case matches tag ''"),
    ],
)
def test_each_of_several_choices_has_to_match_a_case(tmp_path: Path, options: RunOptions, said: str) -> None:
    path = written(tmp_path, {"cases.yaml": CASES, "eval.yaml": NATIVE % "{type: yaml, path: cases.yaml}"})
    assert refused(path, options).startswith(said)
    suite = load_suite(path, to_run=False)
    assert [case.id for case in chosen_cases(suite, replace(options, allow_empty=True))] == ["a"]


def test_a_dry_run_refuses_it_as_well(tmp_path: Path) -> None:
    suite = load_suite(written(tmp_path, EMPTY["filter"]), to_run=False)
    with pytest.raises(InputError, match=r"metadata\.tir"):
        forecast(suite, RunOptions())


def test_originals_that_run_without_cases_get_a_warning(tmp_path: Path) -> None:
    (tmp_path / "set.jsonl").write_text("")
    suite = load_suite(tmp_path / "set.jsonl", "northstar")
    assert list(chosen_cases(suite, RunOptions())) == []
    assert [Path(warning.file).name for warning in suite.warnings] == ["set.jsonl"]


def test_under_the_name_of_the_original_a_filter_may_match_nothing(tmp_path: Path) -> None:
    suite = load_suite(written(tmp_path, EMPTY["filter"]), "evalh", to_run=False)
    assert list(chosen_cases(suite, RunOptions())) == []
    assert "metadata.tir" in suite.warnings[0].message


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        (RunOptions(), ["a1", "a2", "b1", "c1"]),
        (RunOptions(cases=("a*",)), ["a1", "a2"]),
        (RunOptions(cases=("!a*",)), ["b1", "c1"]),
        (RunOptions(cases=("{a,c}1",)), ["a1", "c1"]),
        (RunOptions(cases=("!{a,c}1",)), ["a2", "b1"]),
        (RunOptions(cases=("[bc]?", "a2")), ["a2", "b1", "c1"]),
        (RunOptions(tags=("x",)), ["a1", "b1"]),
        (RunOptions(tags=("x", "y")), ["a1", "a2", "b1"]),
        (RunOptions(cases=("a*",), tags=("x",)), ["a1"]),
        (RunOptions(limit=2), ["a1", "a2"]),
        (RunOptions(cases=("?1",), limit=2), ["a1", "b1"]),
        (RunOptions(cases=("metadata.n=1",)), ["a2", "b1"]),
        (RunOptions(cases=("input.q.deep=true",)), ["a1", "a2", "b1", "c1"]),
        (RunOptions(cases=("metadata.n=1", "metadata.n=2")), ["a2", "b1", "c1"]),
        (RunOptions(cases=("metadata.n=1", "id=b1")), ["b1"]),
        (RunOptions(cases=("metadata.n=1", "a*", "c1")), ["a2"]),
        (RunOptions(cases=("metadata.n=1",), tags=("z",)), ["b1"]),
        (RunOptions(cases=("n=1",)), []),
    ],
)
def test_cases_are_chosen_by_patterns_contents_tags_and_number(
    tmp_path: Path, options: RunOptions, chosen: list[str]
) -> None:
    tags = {"a1": "[x]", "a2": "[y]", "b1": "[x, z]", "c1": "[]"}
    levels = {"a1": "{}", "a2": "{n: 1}", "b1": "{n: '1'}", "c1": "{n: 2}"}
    cases = ", ".join(
        f"{{id: {name}, input: {{q: {{deep: true}}}}, tags: {tags[name]}, metadata: {levels[name]}}}" for name in tags
    )
    files = {"cases.yaml": f"cases: [{cases}]\n", "eval.yaml": NATIVE % "{type: yaml, path: cases.yaml}"}
    suite = load_suite(written(tmp_path, files), to_run=False)
    assert [case.id for case in chosen_cases(suite, replace(options, allow_empty=True))] == chosen


def test_an_id_may_look_like_a_condition(tmp_path: Path) -> None:
    cases = "cases: [{id: input=d, input: {}}, {id: other, input: {}}]\n"
    suite = load_suite(written(tmp_path, {**EMPTY["yaml"], "cases.yaml": cases}), to_run=False)
    assert [case.id for case in chosen_cases(suite, RunOptions(cases=["input=d"]))] == ["input=d"]


def test_a_forecast_counts_the_trials_of_each_system(tmp_path: Path) -> None:
    a = "{name: a, adapter: openai_chat, model: gpt-4o-mini, trials: 3}"
    b = "{name: b, adapter: openai_chat, model: gpt-4o-mini}"
    suite = NATIVE.replace("{name: s, adapter: replay}", f"{a}, {b}") % "{type: yaml, path: cases.yaml}"
    suite += "run: {trials: 2}\n"
    found = {}
    for name, text in (("both", suite), ("a", suite.replace(f", {b}", ""))):
        (tmp_path / name).mkdir()
        loaded = load_suite(written(tmp_path / name, {"eval.yaml": text, "cases.yaml": CASES}), to_run=False)
        found[name] = forecast(loaded, RunOptions())
    assert [found[name].cells for name in ("both", "a")] == [5, 3]
    assert found["both"].system_cost_usd == pytest.approx(found["a"].system_cost_usd * 5 / 3)
    assert (found["a"].judge_calls, found["a"].judge_cost_usd, found["a"].unpriced) == (0, 0.0, [])


def test_a_forecast_goes_by_the_prices_of_the_suite(tmp_path: Path) -> None:
    suite = NATIVE.replace("adapter: replay", "adapter: openai_chat, model: ours") % "{type: yaml, path: cases.yaml}"
    loaded = load_suite(written(tmp_path, {"eval.yaml": suite, "cases.yaml": CASES}), to_run=False)
    loaded.prices = {"ours": Price(1.0, 1.0)}
    expected = forecast(loaded, RunOptions())
    assert (expected.unpriced, expected.system_cost_usd > 0) == ([], True)


def test_a_forecast_expects_no_longer_answers_than_are_allowed(tmp_path: Path) -> None:
    def cost(limit: object) -> float:
        system = f"adapter: openai_chat, model: ours, max_tokens: {limit}"
        text = NATIVE.replace("adapter: replay", system) % "{type: yaml, path: cases.yaml}"
        loaded = load_suite(written(tmp_path, {"eval.yaml": text, "cases.yaml": CASES}), to_run=False)
        loaded.prices = {"ours": Price(0.0, 1.0)}
        return forecast(loaded, RunOptions()).system_cost_usd

    assert cost(20) == pytest.approx(2 * cost(10))
    assert cost(10_000) == cost(1_000_000) > cost(20)
