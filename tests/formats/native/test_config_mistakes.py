"""Every way in which `eval.yaml` can be wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalwright.errors import InputError
from evalwright.files.key_paths import Place, steps_of
from evalwright.formats.loading import load_suite
from formats.suites import CASES, CONDITION, REMOVED, SOUND, changed, problems, refusal, write

WRONG: list[tuple[str, Any, str, list[str]]] = [
    ("eval", REMOVED, "eval", ["missing"]),
    ("eval.name", REMOVED, "eval.name", ["missing"]),
    ("eval.name", 5, "eval.name", ["string", "5"]),
    ("eval.name", "", "eval.name", []),
    ("eval.tags", "x", "eval.tags", ["list"]),
    ("eval.nme", "x", "eval.nme", ["unknown key", '"name"']),
    ("dataset", REMOVED, "dataset", ["missing"]),
    ("dataset.type", REMOVED, "dataset.type", ["missing"]),
    ("dataset.type", "ymal", "dataset.type", ["'ymal'", '"yaml"', "jsonl"]),
    ("dataset.path", "nowhere.yaml", "dataset.path", ["nowhere.yaml"]),
    ("dataset.path", ".", "dataset.path", ["'.'"]),
    ("dataset.path", "a" * 5000, "dataset.path", ["aaa"]),
    ("dataset.path", REMOVED, "dataset.path", ["missing"]),
    ("dataset.path", 1, "dataset.path", ["a string or a list of strings, found 1"]),
    ("dataset.path", ["a.csv", 1], "dataset.path[1]", ["a string, found 1"]),
    ("dataset.sample", -1, "dataset.sample", ["-1"]),
    ("dataset.sample", 1.5, "dataset.sample", ["1.5"]),
    ("dataset.filter", ["a"], "dataset.filter", ["mapping"]),
    ("systems", REMOVED, "systems", ["missing"]),
    ("systems", [], "systems", ["at least one"]),
    ("systems", {"name": "s"}, "systems", ["list"]),
    ("systems[0]", "s", "systems[0]", ["mapping"]),
    ("systems[0].name", REMOVED, "systems[0].name", ["missing"]),
    ("systems[0].adapter", "repaly", "systems[0].adapter", ["'repaly'", '"replay"', "python_function"]),
    ("systems[0].timeout_seconds", "soon", "systems[0].timeout_seconds", ["'soon'"]),
    ("systems[0].timeout_seconds", 1.5, "systems[0].timeout_seconds", ["1.5"]),
    ("systems[0].timeout_seconds", True, "systems[0].timeout_seconds", ["true"]),
    ("systems[0].timeout_seconds", 0, "systems[0].timeout_seconds", ["0"]),
    ("systems[0].isolation", "container", "systems[0].isolation", ["process"]),
    ("systems[0].metadata", None, "systems[0].metadata", ["mapping", "null"]),
    ("evaluators", [], "evaluators", ["at least one"]),
    ("evaluators[0].conf", {}, "evaluators[0].conf", ["unknown key", '"config"']),
    ("evaluators[0].type", "nope", "evaluators[0].type", ["Unknown evaluator 'nope'", "contains_text"]),
    ("evaluators[0].config", {"all_of": "x"}, "evaluators[0].config.all_of", ["'all_of'", "list"]),
    ("pass_criteria.all_required", ["ghost"], "pass_criteria.all_required[0]", ["'ghost'", "there are: e"]),
    ("pass_criteria.any_required", ["E"], "pass_criteria.any_required[0]", ["'E'"]),
    ("evaluators[0].weight", 2, "evaluators[0].weight", ["rule: bands"]),
    ("evaluators[0].required", 0.8, "evaluators[0].required", ["rule: bands"]),
    ("evaluators[0].threshold_op", "lt", "evaluators[0].threshold_op", ["'threshold'"]),
    ("pass_criteria", {"rule": "bands", "all_required": ["e"]}, "pass_criteria.all_required", ["rule: bands"]),
    ("pass_criteria.all", ["e"], "pass_criteria.all", ["unknown key"]),
    ("run.max_concurency", 1, "run.max_concurency", ['"max_concurrency"']),
    ("run.max_concurrency", 0, "run.max_concurrency", ["0"]),
    ("run.retry.on", ["never"], "run.retry.on[0]", ["'never'", "timeout"]),
    ("run.retry.backof_seconds", 1, "run.retry.backof_seconds", ['"backoff_seconds"']),
    ("run.retry.backoff_seconds", float("inf"), "run.retry.backoff_seconds", ["inf"]),
    ("run.baseline_variant", "ghost", "run.baseline_variant", ["'ghost'", "there are: s"]),
    ("run.executor.type", "rays", "run.executor.type", ["'rays'", "local, ray"]),
    ("trace.captures", [], "trace.captures", ['"capture"']),
    ("output", REMOVED, "output", ["missing"]),
    ("output", [], "output", ["at least one"]),
    ("output.type", "nope", "output[0].type", ["nope", "local_files"]),
    ("output.path", REMOVED, "output[0]", ["'path'"]),
    ("schema_version", "2.0", "schema_version", ["1.x", "2.0"]),
    ("schema_version", 1.0, "schema_version", ["string"]),
    ("sytems", [], "sytems", ['"systems"']),
    ("workspace", {"type": "nope"}, "workspace.type", ["Unknown workspace 'nope'"]),
    ("run.cost_limit_usd", "much", "run.cost_limit_usd", ["'much'", "number"]),
    ("run.executor.pools", {"a": 0}, "run.executor.pools.a", ["0"]),
    ("systems[0].pool", "a", "systems[0].pool", ["unknown pool 'a'"]),
    ("systems[0].enrich_trace_from", [{"type": "nope"}], "systems[0].enrich_trace_from[0].type", ["'nope'"]),
    ("systems[0].enrich_trace_from", [{}], "systems[0].enrich_trace_from[0].type", ["missing"]),
    ("output", [SOUND["output"], {"type": "nope"}], "output[1].type", ["Unknown store 'nope'"]),
    ("output", [SOUND["output"], {"type": "local_files", "path": "./a/../runs/"}], "output[1]", ["as by output[0]"]),
    ("output", [SOUND["output"], *[{"type": "sqlite", "path": f"{p}r.db"} for p in ("", "./")]], "output[2]", ["[1]"]),
    ("gate", {"not_worse_than": "baseline", "margin": 2}, "gate.margin", ["2pp or 0.02", "'2'"]),
    ("gate", {"not_worse_than": "baseline", "margin": "2%"}, "gate.margin", ["2pp or 0.02", "'2%'"]),
    ("gate", {"not_worse_than": "v", "metric": "e", "margin": "2%"}, "gate.margin", ["in the units of e"]),
    ("gate", {"not_worse_than": 5}, "gate.not_worse_than", ["5"]),
    ("gate", {"not_worse_than": "baseline", "better_than": "v"}, "gate", ["a list of gates"]),
    ("gate", {"better_than": "baseline", "metric": "ee"}, "gate.metric", ["pass_rate", "'ee'"]),
    ("gate", {"better_than": "baseline", "guards": {"cots": "+10%"}}, "gate.guards.cots", ['"cost"']),
    ("gate", {"better_than": "baseline", "guards": {"cost": 0.1}}, "gate.guards.cost", ["+10%", "'0.1'"]),
    ("gate", {"better_than": "baseline", "on_undecided": "maybe"}, "gate.on_undecided", ["fail, pass"]),
    (
        "gate",
        {"better_than": "baseline", "slices": {"not_wrose_than": 0.1}},
        "gate.slices.not_wrose_than",
        ["not_worse"],
    ),
    ("gate", {"better_than": "baseline", "alpha": 1}, "gate.alpha", ["between 0 and 1"]),
    ("gate", {"at_least": 80}, "gate.at_least", ["between 0 and 1", "80"]),
    ("gate", {"at_least": 0.8, "margin": 0.02}, "gate.margin", ["nothing reads"]),
    ("gate", [], "gate", ["at least one"]),
    ("gate", [{"at_least": 0.8}, 3], "gate[1]", ["mapping"]),
    ("gate", {"metric_key": "e", "op": "gte", "value": 1, "pass_op": "gt", "valeu": 2}, "gate.valeu", ['"value"']),
    (
        "gate",
        {"kind": "logical", "operator": "or", "conditions": [CONDITION | {"kind": "simple", "weights": {"e": 1}}]},
        "gate.conditions[0].weights",
        ["nothing reads"],
    ),
]


@pytest.mark.parametrize(
    ("path", "value", "key", "said"), WRONG, ids=[f"{path}={value!r}"[:60] for path, value, *_ in WRONG]
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, path: str, value: Any, key: str, said: list[str]) -> None:
    (problem,) = problems(tmp_path, changed(path, value))
    assert problem.key == key
    assert [word for word in said if word not in problem.message] == []


@pytest.mark.parametrize("text", ["", "# nothing\n"])
def test_an_empty_file_is_called_empty(tmp_path: Path, text: str) -> None:
    assert "empty" in problems(tmp_path, text)[0].message


@pytest.mark.parametrize("text", ["- 1\n", "word\n"])
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    assert "expected a mapping" in str(refusal(lambda: load_suite(path, "evalh")))


def test_broken_yaml_is_told_with_its_line(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "eval:\n  name: [x\nsystems: 1\n")
    assert (problem.file, problem.line) == (str(tmp_path / "eval.yaml"), 3)


SEVERAL = """\
eval: {nam: x}
dataset: {type: yaml, path: cases.yaml}
systems:
  - name: s
    adapter: python_function
    target: "${MISSING_TARGET}"
    timeout_seconds: soon
  - {name: t, adapter: python_function, target: "no_such_module_here:f"}
  - {name: t, adapter: replay}
evaluators:
  - name: e
    type: latency_under
    config:
      max_ms: -1
  - {name: f, typ: contains_text}
pass_criteria: {all_required: [g], errored_cases: never}
output: {type: local_files, path: runs}
"""


def test_all_mistakes_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    listed = problems(tmp_path, SEVERAL, "cases:\n- {id: a, input: {}}\n- {id: 5, input: {}}\n")
    assert [(Path(p.file).name, p.line, p.key) for p in listed] == [
        ("cases.yaml", 3, "cases[1].id"),
        ("eval.yaml", 1, "eval.name"),
        ("eval.yaml", 1, "eval.nam"),
        ("eval.yaml", 6, "systems[0].target"),
        ("eval.yaml", 7, "systems[0].timeout_seconds"),
        ("eval.yaml", 8, "systems[1].target"),
        ("eval.yaml", 9, "systems[2].name"),
        ("eval.yaml", 14, "evaluators[0].config.max_ms"),
        ("eval.yaml", 15, "evaluators[1].type"),
        ("eval.yaml", 15, "evaluators[1].typ"),
        ("eval.yaml", 16, "pass_criteria.errored_cases"),
        ("eval.yaml", 16, "pass_criteria.all_required[0]"),
    ]


def test_a_mistake_beside_a_configuration_hides_none_in_it(tmp_path: Path) -> None:
    http = {"name": "s", "adapter": "http", "timeout_seconds": "soon", "endpoint": "ftp://x", "provider": "simple"}
    says = {"name": "e", "type": "contains_text", "threshold": "x", "config": {"all_off": []}}
    listed = problems(tmp_path, {**SOUND, "systems": [http], "evaluators": [says, {**says, "name": "f", "config": 3}]})
    assert [problem.key for problem in listed] == [
        "systems[0].timeout_seconds",
        "systems[0].endpoint",
        "evaluators[0].threshold",
        "evaluators[0].config.all_off",
        "evaluators[1].threshold",
        "evaluators[1].config",
    ]


def test_the_headline_names_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, changed("eval.name", 5))
    assert refusal(lambda: load_suite(path)).headline == f"Invalid config {path}"


@pytest.mark.parametrize("section", ["systems", "evaluators"])
def test_a_name_given_twice_is_refused(tmp_path: Path, section: str) -> None:
    (problem,) = problems(tmp_path, changed(section, SOUND[section] * 2))
    assert (problem.key, "duplicate" in problem.message) == (f"{section}[1].name", True)


def test_a_key_given_twice_is_refused_with_both_lines(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "eval: {name: x}\neval: {name: y}\n")
    assert (problem.line, "line 1" in problem.message) == (2, True)


def test_a_missing_variable_is_told_once_where_it_stands(tmp_path: Path) -> None:
    suite = changed(
        "evaluators[0].config", {"all_of": ["x", "${NOT_SET_ANYWHERE}"], "case_sensitive": "${ALSO_NOT_SET}"}
    )
    listed = problems(tmp_path, suite)
    assert sorted(p.key for p in listed) == [
        "evaluators[0].config.all_of[1]",
        "evaluators[0].config.case_sensitive",
    ]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x", "e", "s", "yaml", "${X}"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "type", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)


PLACES = st.sampled_from(sorted({path for path, *_ in WRONG if "." in path} | {"metadata", "systems", "output"}))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=PLACES, value=VALUES)
def test_any_value_anywhere_is_taken_or_refused(tmp_path: Path, place: str, value: Any) -> None:
    path = write(tmp_path, changed(place, value), CASES)
    keys: list[Place] = []
    try:
        load_suite(path)
    except InputError as error:
        keys = [steps_of(problem.key) for problem in error.problems]
    assert all(keys)


def test_a_misspelt_reference_is_a_mistake_but_by_the_rules_of_evalh(tmp_path: Path) -> None:
    metadata = {"a": "${my_key}", "b": "${__:-$}{my_key}"}
    with pytest.raises(InputError, match=r"metadata\.a  \$\{my_key\} is not a reference .*\$\{MY_KEY\}") as refused:
        load_suite(write(tmp_path, changed("metadata", metadata)))
    assert len(refused.value.problems) == 1
    suite = load_suite(write(tmp_path, changed("metadata", metadata)), "evalh")
    assert suite.metadata == {"a": "${my_key}", "b": "${my_key}"}


def _limit(tmp_path: Path, given: str) -> Any:
    evaluator = {"name": "quick", "type": "latency_under", "config": {"max_ms": given}}
    variables = {"LIMIT": "250", "WORD": "soon"}
    return load_suite(write(tmp_path, changed("evaluators", [evaluator])), variables=variables).evaluators[0].config


def test_a_variable_gives_a_number_where_one_is_expected(tmp_path: Path) -> None:
    assert _limit(tmp_path, "${LIMIT}") == {"max_ms": 250}


@pytest.mark.parametrize(("given", "found"), [("${WORD}", "soon"), ("${LIMIT}0", "2500"), ("250", "250")])
def test_a_text_is_no_number_unless_it_is_all_of_a_variable(tmp_path: Path, given: str, found: str) -> None:
    (problem,) = refusal(lambda: _limit(tmp_path, given)).problems
    assert (problem.key, f"found the string '{found}'" in problem.message) == ("evaluators[0].config.max_ms", True)


def test_one_mistake_of_an_evaluator_hides_no_other(tmp_path: Path) -> None:
    evaluators = "[{name: says, type: contans_text, confg: {}}, {name: i, type: icontains, value: hello}]"
    (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: {q: 1}}]\n")
    (tmp_path / "eval.yaml").write_text(
        "eval: {name: t}\ndataset: {type: yaml, path: cases.yaml}\nsystems: [{name: s, adapter: replay}]\n"
        f"evaluators: {evaluators}\noutput: {{type: local_files, path: runs}}\n"
    )
    with pytest.raises(InputError) as refusal:
        load_suite(tmp_path / "eval.yaml")
    told = {problem.key: problem.message for problem in refusal.value.problems}
    assert told.keys() == {"evaluators[0].confg", "evaluators[0].type", "evaluators[1].value", "evaluators[1].type"}
    assert 'did you mean "contains_text"?' in told["evaluators[0].type"]
    assert "belongs under 'config'" in told["evaluators[1].value"]


@pytest.mark.parametrize("adapter", [{"adapter": "python_function", "target": "agent:answer"}, {"adapter": "replay"}])
def test_a_system_of_a_newer_version_is_a_mistake(tmp_path: Path, adapter: dict[str, str]) -> None:
    (tmp_path / "agent.py").write_text("def answer(text):\n    return text\n")
    system = {"name": "s", **adapter}
    assert load_suite(write(tmp_path, changed("systems", [{**system, "schema_version": "1.3"}]))).variants
    newer = write(tmp_path, changed("systems", [{**system, "schema_version": "2.0"}]))
    assert [problem.key for problem in refusal(lambda: load_suite(newer)).problems] == ["systems[0].schema_version"]


@pytest.mark.parametrize("wrong", [{"trails": 2}, {"trials": "many"}, {"executor.per_actor": "x"}])
def test_a_mistake_in_a_section_does_not_hide_a_misspelt_key_in_it(tmp_path: Path, wrong: dict[str, Any]) -> None:
    executor: dict[str, Any] = {"type": "local", "judge": {}}
    run: dict[str, Any] = {"executor": executor}
    for key, value in wrong.items():
        (executor if "." in key else run)[key.rpartition(".")[2]] = value
    listed = problems(tmp_path, changed("run", run))
    assert {p.key for p in listed} == {"run.executor.judge", *(f"run.{key}" for key in wrong)}
