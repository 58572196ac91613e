"""AgentEvals cases as JSON Lines and as YAML."""

import json

import pytest

from evalwright.convert.conversion import convert
from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.model.result import CaseVerdict
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run

EVAL = """\
metadata: {tags: [shop]}
execution:
  evaluators: [{name: short, type: latency, threshold: 60000}]
evalcases:
  - id: greets
    expected_outcome: |
      Greets Alice
      by name
    input: "yes"
    expected_output: {name: Alice}
    execution:
      evaluators: [{name: named, type: field_accuracy, fields: [{path: name}]}]
  - {id: answers, criteria: Answers, input: 'no', note: "1e3"}
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "targets.yaml").write_text('targets: [{name: default, provider: mock, response: \'{"name": "Bob"}\'}]')
    (tmp_path / "EVAL.yaml").write_text(EVAL)
    return tmp_path


def verdicts(path):
    suite = load_suite(path, "agentv")
    suite.out = path.parent / "runs"
    reader, _ = open_run(run_suite(suite).run_dir)
    return [(v.case_id, v.status, v.score) for v in reader.verdicts(CaseVerdict)]


def test_yaml_becomes_lines_with_a_sidecar(project):
    done = convert(project / "EVAL.yaml")
    assert done.files == [project / "EVAL.cases.jsonl", project / "EVAL.cases.yaml"]
    rows = [json.loads(line) for line in done.files[0].read_text().splitlines()]
    assert [row["id"] for row in rows] == ["greets", "answers"]
    assert done.files[1].read_text().startswith("# yaml-language-server: $schema=https://")


def test_the_other_form_gives_the_same_verdicts(project):
    done = convert(project / "EVAL.yaml")
    assert (
        verdicts(done.files[0])
        == verdicts(project / "EVAL.yaml")
        == [("greets", "fail", 0.0), ("answers", "pass", 1.0)]
    )


def test_there_and_back_is_the_same_suite(project):
    lines = convert(project / "EVAL.yaml").files[0]
    back = convert(lines, out=project / "back.yaml").files[0]
    first, last = load_suite(project / "EVAL.yaml"), load_suite(back)
    assert (list(last.cases), last.name, last.metadata) == (list(first.cases), first.name, first.metadata)


def test_no_file_is_written_over(project):
    (project / "EVAL.cases.yaml").write_text("mine")
    with pytest.raises(InputError, match=r"EVAL\.cases\.yaml  already exists"):
        convert(project / "EVAL.yaml")
    assert (project / "EVAL.cases.yaml").read_text() == "mine"
    assert not (project / "EVAL.cases.jsonl").exists()


def test_what_json_lacks_is_refused_and_nothing_is_written(project):
    odd = EVAL + "  - {id: odd, criteria: x, input: x, metadata: {day: !!timestamp 2026-01-01}}\n"
    (project / "EVAL.yaml").write_text(odd)
    with pytest.raises(InputError, match=r"case odd  metadata\.day  JSON cannot express date"):
        convert(project / "EVAL.yaml")
    assert not (project / "EVAL.cases.jsonl").exists()


def test_losses_that_are_allowed_are_listed(project):
    odd = EVAL + "  - {id: odd, criteria: x, input: x, metadata: {day: !!timestamp 2026-01-01}}\n"
    (project / "EVAL.yaml").write_text(odd)
    done = convert(project / "EVAL.yaml", allow_loss=True)
    assert [(loss.file, loss.key) for loss in done.losses] == [("case odd", "metadata.day")]


def test_a_prompt_that_is_not_found_from_the_new_place_is_a_loss(project):
    (project / "sub").mkdir()
    (project / "sub" / "notes.txt").write_text("notes")
    listed = "evalcases: [{id: a, criteria: x, input: [{role: user, content: [{type: file, value: notes.txt}]}]}]"
    (project / "sub" / "E.yaml").write_text(listed)
    with pytest.raises(InputError, match="case a"):
        convert(project / "sub" / "E.yaml", out=project / "E.jsonl")


def test_results_become_documents(project):
    rows = [{"eval_id": "a", "score": 1.0}, {"eval_id": "b", "score": 0.5}]
    (project / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = convert(project / "r.jsonl")
    assert done.files[0].read_text() == "---\neval_id: a\nscore: 1.0\n---\neval_id: b\nscore: 0.5\n"


def test_every_broken_line_is_named(project):
    (project / "r.jsonl").write_text('{"id": "a", "criteria": "x", "input": "y"}\n{\n[]\n')
    with pytest.raises(InputError, match=r"(?s)r\.jsonl:2.*r\.jsonl:3"):
        convert(project / "r.jsonl")
    assert not (project / "r.yaml").exists()


def test_what_cannot_be_a_line_is_reported_by_its_place_in_the_original(project):
    (project / "E.yaml").write_text("evalcases:\n  - {id: a, criteria: x, input: y}\n  - seven\n")
    with pytest.raises(InputError, match=r"E\.yaml:3 .*expected a mapping, found 'seven'"):
        convert(project / "E.yaml", allow_loss=True)


@pytest.mark.parametrize("to", ["agentv", "native"])
def test_credentials_in_json_lines_are_noted(project, to):
    case = {"id": "a", "criteria": "x", "input": "y", "metadata": {"deep": [{"api_key": "abc"}]}}
    (project / "c.jsonl").write_text(json.dumps(case) + "\n")
    (note,) = convert(project / "c.jsonl", to, project / ("out" if to == "native" else "out.yaml")).notes
    assert note.startswith("api_key contains a credential")


@pytest.mark.parametrize("out", ["EVAL.yaml", "EVAL.yaml/deeper"])
def test_an_output_below_a_file_is_refused(project, out):
    with pytest.raises(InputError, match="is not a folder"):
        convert(project / "EVAL.yaml", "native", project / out)


def test_a_file_without_cases_is_refused(project):
    with pytest.raises(InputError, match=r"targets\.yaml .*has no cases"):
        convert(project / "targets.yaml", "native")


def test_a_case_that_cannot_be_read_is_noted(project):
    (project / "E.yaml").write_text("evalcases:\n  - {id: a, criteria: x, input: y}\n  - {id: b, input: y}\n")
    (note,) = convert(project / "E.yaml", "native", project / "out").notes
    assert "evalcases[1] (b): expected_outcome" in note
