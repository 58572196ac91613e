"""Suites of every format in the native one: the same cells, the same verdicts."""

import json
import re

import pytest
import yaml

from convert.originals import AGENTV, FILES, LETTA, PIXIE, judged, made
from evalwright.convert.conversion import convert
from evalwright.errors import InputError
from evalwright.formats.loading import load_suite

pytestmark = pytest.mark.usefixtures("untouched_environment")


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("dialect", FILES)
def test_verdicts_scores_and_totals_are_those_of_the_original(project, dialect):
    source = made(project, dialect)
    native = convert(source, "native").files[0]
    original = judged(source, dialect)
    assert judged(native) == original
    assert {row[3] for row in original[0]} >= {0.0, 1.0}  # something passed and something failed


@pytest.mark.parametrize("dialect", FILES)
def test_every_key_of_the_new_file_is_read(project, dialect):
    assert not load_suite(convert(made(project, dialect), "native").files[0]).warnings


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
    assert kind in {evaluator["type"] for evaluator in yaml.safe_load(native.read_text())["evaluators"]}


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


def test_what_cannot_be_read_from_the_new_folder_is_reported(project, tmp_path_factory, monkeypatch):
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
