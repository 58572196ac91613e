"""Native suites in the other formats: what comes back whole, what is lost, and what is refused."""

import json

import pytest
import yaml

from convert.originals import FILES, LETTA, judged, made
from evalwright.convert.conversion import convert
from evalwright.errors import InputError
from evalwright.formats.loading import load_suite

pytestmark = pytest.mark.usefixtures("untouched_environment")


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


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
    conversion = convert(source, "agentv", project / "new", allow_loss=True)
    assert "SHOP_KEY contains a credential, and so may the new files: name a variable instead" in conversion.notes
    assert "literal-credential" not in str(conversion.losses)


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
