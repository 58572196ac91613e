"""Suites of every format in the native one: the same cells, the same verdicts."""

import json
import re

import pytest
import yaml

from evalwright.convert.conversion import convert
from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run

pytestmark = pytest.mark.usefixtures("untouched_environment")

JUDGE = """\
import json, sys

given = json.load(sys.stdin)
good = given["candidate_answer"] == given["config"]["wanted"]
print(json.dumps({"score": float(good), "hits": [], "misses": [] if good else ["other"], "reasoning": ""}))
"""
ANSWER = json.dumps(
    {
        "output_messages": [
            {"role": "assistant", "tool_calls": [{"tool": "search", "input": {"q": "x"}}]},
            {"role": "assistant", "content": '{"name": "Alice"}'},
        ],
        "token_usage": {"input": 10, "output": 5},
        "cost_usd": 0.01,
        "duration_ms": 30,
    }
)
EVALUATORS = """\
  - {name: script, type: code_judge, script: [python3, judge.py], config: {wanted: '{"name": "Alice"}'}}
  - {name: judged, type: llm_judge, prompt: "{{ candidate_answer }} ${HOME} $x"}
  - {name: both, type: composite, aggregator: {type: minimum}, evaluators: [
      {name: a, type: latency, threshold: 60000}, {name: b, type: cost, budget: 0.001}]}
  - {name: calls, type: tool_trajectory, mode: in_order, expected: [{tool: search, args: {q: x}}]}
  - {name: fields, type: field_accuracy, fields: [{path: name, match: exact}]}
  - {name: metrics, type: execution_metrics, max_tool_calls: 1, max_tokens: 3, weight: 2}
  - {name: quick, type: latency, threshold: 60000}
  - {name: cheap, type: cost, budget: 0.02, required: true}
  - {name: tokens, type: token_usage, max_total: 100}
"""
AGENTV = f"""\
execution:
  evaluators:
{EVALUATORS}
evalcases:
  - {{id: all, expected_outcome: x, input: hi, expected_output: {{name: Alice}}, rubrics: [polite, short]}}
  - {{id: other, expected_outcome: y, input: ho, expected_output: {{name: Bob}}, rubrics: [rude], note: n}}
"""
LETTA = """\
name: shop
description: Answers
dataset: data.csv
target: {kind: letta_code, backend: "app.py:answer"}
graders:
  same: {kind: tool, function: exact_match, extractor: last_assistant}
  own: {kind: tool, function: "graders.py:short"}
gate: {metric_key: same, op: gte, value: 0.5}
num_runs: 2
"""
CONVERSATIONS = [
    {
        "id": f"c{i}",
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": text}],
        "expected": {"contains": ["hello"], "max_tool_calls": 1},
        "metrics": {"latency_ms": 12.5, "cost_usd": 0.1},
        "metadata": {"n": i},
    }
    for i, text in enumerate(["hello you", "bye"])
]
CONVERSATIONS.append({**CONVERSATIONS[0], "metadata": {"again": True}})
PIXIE = {
    "name": "qa",
    "runnable": "app.py:run",
    "evaluators": ["ExactMatch", "checks.py:long"],
    "entries": [
        {
            "entry_kwargs": {"q": q},
            "eval_input": [{"name": "x", "value": 1}],
            "description": q,
            "expectation": "A",
            **more,
        }
        for q, more in (("a", {}), ("b", {"evaluators": ["...", "LevenshteinMatch"]}))
    ],
}
FILES = {
    "agentv": {
        "EVAL.yaml": AGENTV,
        "judge.py": JUDGE,
        "targets.yaml": json.dumps(
            {
                "targets": [
                    {"name": "default", "provider": "cli", "command": ["cat", "answer.json"], "judge_target": "judge"},
                    {"name": "judge", "provider": "mock", "response": '{"score": 0.7, "checks": []}'},
                ]
            }
        ),
        "answer.json": ANSWER,
    },
    "letta": {
        "suite.yaml": LETTA,
        "data.csv": 'id,input,ground_truth,tags\na,hi,hi,"[""x""]"\nb,ho,hm,\n',
        "app.py": "def answer(message, context):\n    return message\n",
        "graders.py": "from letta_evals.decorators import grader\nfrom letta_evals.models import GradeResult\n\n"
        "@grader\ndef short(sample, submission):\n"
        "    return GradeResult(score=float(len(submission) < 9), rationale='')\n",
    },
    "northstar": {"talks.json": json.dumps(CONVERSATIONS)},
    "pixie": {
        "data.json": json.dumps(PIXIE),
        "app.py": "async def run(args):\n    return args['q'].upper()\n",
        "checks.py": "from pixie import Evaluation\n\ndef long(evaluable):\n"
        "    return Evaluation(score=float(len(str(evaluable.eval_output)) > 3), reasoning='')\n",
    },
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(project, dialect):
    for name, text in FILES[dialect].items():
        (project / name).write_text(text)
    return project / next(iter(FILES[dialect]))


def judged(path, dialect=None):
    """Verdicts and results of a run of the suite, and its totals."""
    suite = load_suite(path, dialect)
    suite.out = path.parent / "runs"
    outcome = run_suite(suite)
    reader, _ = open_run(outcome.run_dir)
    rows = [
        (r.case_id, r.trial, r.evaluator, r.score, r.passed, r.skipped, r.error and r.error.type)
        for r in reader.results(EvaluationResult)
    ]
    verdicts = [(v.case_id, v.variant_name, v.trial, v.status, v.score) for v in reader.verdicts(CaseVerdict)]
    return sorted(rows, key=str), sorted(verdicts), outcome.summary.native, outcome.summary.gate


@pytest.mark.parametrize("dialect", FILES)
def test_verdicts_scores_and_totals_are_those_of_the_original(project, dialect):
    source = made(project, dialect)
    native = convert(source, "native").files[0]
    original = judged(source, dialect)
    assert judged(native) == original
    assert {row[3] for row in original[0]} >= {0.0, 1.0}  # something passed and something failed


@pytest.mark.parametrize("dialect", FILES)
def test_there_and_back_nothing_is_lost(project, dialect):
    source = made(project, dialect)
    native = convert(source, "native").files[0]
    files = convert(native, dialect, project / "back").files
    assert judged(files[0], dialect) == judged(source, dialect)
    for file in files:  # comments, which JSON has not, name the schema for editors
        assert file.suffix != ".yaml" or re.match(rf"# yaml-language-server: .*-{dialect}\b", file.read_text())


def test_a_folder_of_datasets_comes_back_whole(project):
    made(project, "pixie")
    (project / "sets").mkdir()
    for name in ("zeta", "alpha"):
        document = {**PIXIE, "name": name, "runnable": "app.py:run"}
        (project / "sets" / f"{name}.json").write_text(json.dumps(document))
    native = convert(project / "sets", "native", project / "n", dialect="pixie").files[0]
    back = convert(native, "pixie", project / "back").files[0]
    assert judged(back, "pixie") == judged(project / "sets", "pixie")


@pytest.mark.parametrize(
    "kind",
    [
        "code_judge", "criteria_judge", "composite", "tool_trajectory", "field_accuracy", "execution_metrics",
        "latency", "cost", "token_usage", "rubric_checks",
    ],
)  # fmt: skip
def test_every_agentv_evaluator_is_named_in_eval_yaml(project, kind):
    native = convert(made(project, "agentv"), "native").files[0]
    assert kind in {one["type"] for one in yaml.safe_load(native.read_text())["evaluators"]}


def test_a_rubric_of_one_case_is_written_with_it(project):
    native = convert(made(project, "agentv"), "native").files[0]
    rows = [json.loads(line) for line in (native.parent / "cases.jsonl").read_text().splitlines()]
    assert rows[1]["evaluators"][0]["config"]["rubrics"][0]["text"] == "rude"


def test_the_suite_can_be_moved_with_its_files(project):
    (project / "one").mkdir()
    source = made(project / "one", "letta")
    native = convert(source, "native", project / "one" / "n").files[0]
    before = judged(native)
    (project / "one").rename(project / "two")
    assert judged(project / "two" / "n" / "eval.yaml") == before


def test_secrets_stay_references(project, monkeypatch):
    monkeypatch.setenv("MY_ENDPOINT", "https://hidden.example")
    monkeypatch.setenv("MY_KEY", "sk-hidden")
    source = made(project, "agentv")
    targets = """\
targets:
  - {name: default, provider: mock, judge_target: model}
  - {name: model, provider: azure, model: m, endpoint: "${{ MY_ENDPOINT }}", api_key: "${{ MY_KEY }}"}
"""
    (project / "targets.yaml").write_text(targets)
    files = convert(source, "native").files
    text = "".join(file.read_text() for file in files)
    assert "hidden" not in text
    assert "${MY_ENDPOINT}" in text
    system = load_suite(files[0]).variants[0]
    assert system.config["targets"]["model"]["endpoint"] == "https://hidden.example"


def test_variables_in_a_case_are_losses(project, monkeypatch):
    monkeypatch.setenv("WHO", "Ann")
    source = made(project, "agentv")
    source.write_text('tests: [{id: a, criteria: x, input: "hi ${{ WHO }}", assertions: [{type: contains, value: y}]}]')
    with pytest.raises(InputError, match="here WHO") as caught:
        convert(source, "native")
    assert {(problem.file, problem.key) for problem in caught.value.problems} >= {("case a", "input")}
    native = convert(source, "native", project / "n", allow_loss=True).files[0]
    assert next(iter(load_suite(native).cases)).input == "hi ${WHO}"


def test_text_that_looks_like_a_reference_stays_text(project):
    native = convert(made(project, "agentv"), "native").files[0]
    case = next(iter(load_suite(native).cases))
    assert (
        next(s for s in case.evaluators if s.name == "judged").config["prompt"] == "{{ candidate_answer }} ${HOME} $x"
    )


def test_keys_without_effect_are_listed(project):
    source = made(project, "letta")
    source.write_text(LETTA.replace("letta_code,", "letta_code, base_url: http://x,") + "colour: red\n")
    done = convert(source, "native")
    assert {key.key for key in done.left_out} == {"colour", "target.base_url"}


def test_variables_need_no_values(project):
    source = made(project, "agentv")
    targets = "targets: [{name: default, provider: azure, model: m, endpoint: '${{ NOT_SET_ANYWHERE }}'}]"
    (project / "targets.yaml").write_text(targets)
    assert "${NOT_SET_ANYWHERE}" in convert(source, "native").files[0].read_text()


def test_files_of_a_folder_above_are_found_again(project):
    (project / "sub").mkdir()
    source = made(project / "sub", "agentv")
    (project / "data.txt").write_text("text")
    block = "[{role: user, content: [{type: file, value: ../data.txt}]}]"
    source.write_text(AGENTV.replace("input: hi", f"input: {block}"))
    case = next(iter(load_suite(convert(source, "native").files[0]).cases))
    assert case.extra["input_files"] == [str(project / "data.txt")]


def test_a_time_limit_of_an_agentv_suite_comes_back(project):
    source = made(project, "agentv")
    source.write_text(json.dumps({**yaml.safe_load(AGENTV), "execution": {"timeout_seconds": 33}}))
    back = convert(convert(source, "native").files[0], "agentv", project / "back").files[0]
    assert yaml.safe_load(back.read_text())["execution"]["timeout_seconds"] == 33


def test_what_cannot_be_read_from_the_new_folder_is_told(project, tmp_path_factory, monkeypatch):
    source = made(project, "agentv")
    (project / "data.txt").write_text("text")
    block = "[{role: user, content: [{type: file, value: data.txt}]}]"
    source.write_text(AGENTV.replace("input: hi", f"input: {block}"))
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    with pytest.raises(InputError) as refused:
        convert(convert(source, "native", elsewhere / "native").files[0], "agentv", elsewhere / "back")
    told, other = refused.value.problems
    assert "could not be read in the new file: evalcases[0] (all): input_messages[0].content[0].value" in told.message
    assert "lies outside of the suite's folder" in other.message


def test_rows_of_a_table_become_a_file_of_cases(project):
    (project / "eval.yaml").write_text(
        "eval: {name: t}\ndataset: {path: d.csv, map: {id: n, input.q: ask}}\nsystems: [{name: s, adapter: echo}]\n"
        "evaluators: [{name: e, type: answered}]\noutput: [{type: local_files, path: runs}]\n"
    )
    (project / "d.csv").write_text("n,ask\n007,what\n")
    written = convert(project / "eval.yaml", "native").files[0]
    (line,) = (written.parent / "cases.jsonl").read_text().splitlines()
    assert {key: value for key, value in json.loads(line).items() if key in ("id", "input")} == {
        "id": "007",
        "input": {"q": "what"},
    }
    with pytest.raises(InputError, match="is already in native format"):
        convert(written, "native")


def test_native_to_native_is_refused(project):
    native = convert(made(project, "letta"), "native").files[0]
    with pytest.raises(InputError, match="is already in native format"):
        convert(native)


def test_a_broken_line_of_whole_cases_is_named(project):
    native = convert(made(project, "agentv"), "native").files[0]
    cases = native.parent / "cases.jsonl"
    cases.write_text(cases.read_text() + '{"id": "z", "input": 1, "evaluators": ["nothing"]}\n{"id": 3}\n')
    with pytest.raises(InputError, match=r"(?s)cases\.jsonl:3  evaluators\[0\]  unknown evaluator.*cases\.jsonl:4"):
        list(load_suite(native).cases)


NATIVE = """\
eval: {name: texts}
dataset: {type: yaml, path: cases.yaml}
systems: [{name: s, adapter: python_function, target: "app:main"}]
evaluators: [{name: says, type: contains_text}, {name: quick, type: latency, config: {threshold: 5}}]
output: {type: local_files, path: runs}
"""


@pytest.fixture
def texts(project):
    (project / "eval.yaml").write_text(NATIVE)
    (project / "cases.yaml").write_text("cases: [{id: a, input: {q: hi}, expected: {facts: {x: 1}}, tags: [t]}]")
    return project / "eval.yaml"


@pytest.mark.parametrize("dialect", FILES)
def test_a_suite_of_another_kind_is_refused_whole(texts, dialect):
    with pytest.raises(InputError, match=r"suite +evaluators|case a") as refused:
        convert(texts, dialect)
    assert "cannot be converted" in refused.value.headline
    assert not (texts.parent / f"eval-{dialect}").exists()


def test_each_loss_names_the_case_the_key_and_why(texts):
    done = convert(texts, "agentv", allow_loss=True)
    lost = {(loss.file, loss.key): loss.message for loss in done.losses}
    assert lost["case a", "evaluators.says"] == "AgentV has no evaluator like 'contains_text'"
    assert lost["case a", "expected.facts.x"] == "1 becomes nothing"
    assert ("case a", "tags") not in {key[:2] for key in lost}


def test_references_are_spelt_as_the_format_spells_them(project, monkeypatch):
    monkeypatch.setenv("MY_ENDPOINT", "https://hidden.example")
    source = made(project, "agentv")
    (project / "targets.yaml").write_text(
        "targets: [{name: default, provider: azure, model: m, endpoint: '${{ MY_ENDPOINT }}'}]"
    )
    native = convert(source, "native").files[0]
    back = convert(native, "agentv", project / "back").files
    assert (
        yaml.safe_load((project / "back" / "targets.yaml").read_text())["targets"][0]["endpoint"]
        == "${{ MY_ENDPOINT }}"
    )
    assert "hidden" not in "".join(file.read_text() for file in back)


def test_credentials_in_the_original_are_noted_and_not_shown(project):
    (project / "cases.yaml").write_text("cases: [{id: a, input: {q: hi}}]\n")
    source = project / "eval.yaml"
    system = {"name": "s", "adapter": "cli", "command": ["cat"], "env": {"SHOP_KEY": "literal-credential"}}
    suite = {"eval": {"name": "x"}, "dataset": {"type": "yaml", "path": "cases.yaml"}, "systems": [system]}
    suite["output"] = {"type": "local_files", "path": "runs"}
    source.write_text(yaml.safe_dump(suite | {"evaluators": [{"name": "t", "type": "contains_text"}]}))
    found = convert(source, "agentv", project / "new", allow_loss=True)
    assert "SHOP_KEY contains a credential, and so may the new files: name a variable instead" in found.notes
    assert "literal-credential" not in str(found.losses)


def test_cases_that_were_not_chosen_are_noted(project):
    source = made(project, "letta")
    source.write_text(LETTA + "max_samples: 1\n")
    assert convert(source, "native").notes == ["only the cases selected by max_samples are written"]


def test_a_default_that_the_format_has_no_words_for_is_a_loss(project):
    native = convert(made(project, "agentv"), "native").files[0]
    native.write_text(native.read_text().replace("name: EVAL", "name: ${WHO:-EVAL}"))
    with pytest.raises(InputError, match=r"the default in \$\{WHO:-EVAL\} is not written"):
        convert(native, "agentv", project / "back")


def test_a_format_that_cannot_hold_a_suite_even_with_losses_says_so(texts):
    with pytest.raises(
        InputError, match=r"(?s)the format letta cannot hold this suite.*Letta suites need a gate"
    ) as raised:
        convert(texts, "letta", texts.parent / "out", allow_loss=True)
    assert "--allow-loss" not in str(raised.value)


def test_a_suite_that_cannot_run_for_its_target_is_refused(tmp_path):
    (tmp_path / "data.jsonl").write_text('{"input": "hi", "ground_truth": "hi"}\n')
    suite = {"name": "s", "dataset": "data.jsonl", "target": {"kind": "letta_agent"}}
    suite |= {"graders": {"m": {"kind": "tool", "function": "contains"}}, "gate": {"metric_key": "m", "value": 0}}
    (tmp_path / "suite.yaml").write_text(json.dumps(suite))
    with pytest.raises(InputError, match="expected exactly one of agent_id"):
        convert(tmp_path / "suite.yaml", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


ODD_ENDS = """\
execution: {threshold: 0.9}
tests:
  - {id: a, criteria: x, input: hi, assertions: [{name: e, type: ends-with, value: "a\\n\\n"}]}
  - id: b
    criteria: x
    input: hi
    assertions: [{name: s, type: code-grader, command: [sh, -c, "cat > /dev/null; echo fine"]}]
  - id: c
    criteria: x
    input: hi
    execution: {threshold: 0.3}
    assertions:
      - {name: polite, type: llm-grader, prompt: Is it polite?}
      - {type: skill-trigger, skill: csv, should_trigger: false}
  - {id: d, input: hi, assertions: [{type: tool-trajectory, mode: exact, expected: [{tool: a, args: {x: 1}}]}]}
  - {id: e, input: hi, expected_output: ho}
"""


def test_newer_cases_and_texts_that_end_with_empty_lines_come_back(project):
    (project / "EVAL.yaml").write_text(ODD_ENDS)
    targets = [{"name": "default", "provider": "mock", "response": '{"score": 0.5}'}]
    (project / "targets.yaml").write_text(json.dumps({"targets": targets}))
    original = judged(project / "EVAL.yaml")
    native = convert(project / "EVAL.yaml", "native").files[0]
    back = convert(native, "agentv", project / "back").files[0]
    assert judged(native) == judged(back) == original
    assert [verdict[3] for verdict in original[1]] == ["fail", "pass", "pass", "fail", "fail"]
    assert yaml.safe_load(native.read_text())["pass_criteria"]["threshold"] == 0.9


def test_a_case_that_could_not_be_read_is_one_loss_and_stays_an_error(project):
    (project / "targets.yaml").write_text("targets: [{name: default, provider: mock, response: hi}]")
    (project / "EVAL.yaml").write_text(ODD_ENDS + "  - {id: z, criteria: x, input: 5}\n")
    native = convert(project / "EVAL.yaml", "native").files[0]
    with pytest.raises(InputError) as caught:
        convert(native, "agentv", project / "back")
    assert [(p.file, "could not be read in the original" in p.message) for p in caught.value.problems] == [
        ("case z", True)
    ]
    back = convert(native, "agentv", project / "back", allow_loss=True).files[0]
    assert "load_error" in [case.extra for case in load_suite(back).cases][-1]


def test_a_suite_of_which_no_case_can_be_written_is_refused_with_its_losses(project):
    source = made(project, "agentv")
    with pytest.raises(InputError, match="northstar can hold no case") as caught:
        convert(source, "northstar", project / "n", allow_loss=True)
    assert any("no recorded NorthStar conversation" in problem.message for problem in caught.value.problems)
    assert not (project / "n").exists()


def test_a_suite_may_name_files_outside_of_its_new_folder_where_that_is_allowed(project):
    (project / ".git").rmdir()
    native = convert(made(project, "letta"), "native").files[0]
    with pytest.raises(InputError, match="--allow-outside"):
        convert(native, "letta", project / "back")
    back = convert(native, "letta", project / "back", options={"allow_outside": (project,)}).files[0]
    assert load_suite(back, "letta", options={"allow_outside": (project,)}).variants
