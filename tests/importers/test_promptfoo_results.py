"""Result files of promptfoo become cases with recordings, one for each test and prompt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from evalwright.errors import InputError
from evalwright.importers.detection import detected
from evalwright.importers.file_heads import head_of
from importers.transcripts import imported


def row(test: int, prompt: int, provider: str, *, index: int | None = None, **more: object) -> dict:
    graded = {"componentResults": [{"pass": True, "score": 1, "reason": "r", "assertion": {"type": "contains"}}]}
    return {
        "promptIdx": prompt, "testIdx": test if index is None else index, "provider": {"id": "echo", "label": provider},
        "prompt": {"raw": f"say {test}", "label": f"p{prompt % 2}"}, "vars": {"n": test}, "success": True, "score": 1,
        "testCase": {"vars": {"n": test}, "metadata": {"team": "a", "_promptfooFileMetadata": {}}},
        "response": {"output": "hi", "tokenUsage": {"total": 0, "prompt": 0}}, "cost": 0, "latencyMs": 5,
        "gradingResult": graded, "failureReason": 0, **more,
    }  # fmt: skip


def promptfoo(folder: Path, rows: list[dict]):
    columns = [{"label": "p0", "provider": "a"}, {"label": "p1", "provider": "a"}]
    (folder / "out.json").write_text(json.dumps({"evalId": "e", "results": {"prompts": columns, "results": rows}}))
    return imported(folder, "promptfoo-results", folder / "out.json")


def test_rows_of_one_test_and_prompt_are_a_case_whatever_their_numbers(tmp_path):
    rows = [row(1, 0, "a", index=3), row(0, 1, "a"), row(1, 0, "a", index=1), row(0, 2, "b")]
    done, cases = promptfoo(tmp_path, rows)
    assert {case["id"] for case in cases} == {"test-2/prompt-1", "test-1/prompt-2", "test-1/prompt-1"}
    again = next(case for case in cases if case["id"] == "test-2/prompt-1")
    assert [trace["trial"] for trace in again["embedded_trace"]] == [0, 1]
    assert again["metadata"] == {"team": "a"}
    assert again["embedded_trace"][0]["extra"]["recorded_scores"][0]["name"] == "contains"
    systems = yaml.safe_load((tmp_path / "out" / "eval.yaml").read_text())["systems"]
    assert [(system["name"], system["variant"]) for system in systems] == [("a", "a"), ("b", "b")]
    assert done.trials == 2


@pytest.mark.parametrize("label", ["say {{n}}: {said}", ""])
def test_prompts_are_told_apart_by_their_columns(tmp_path, label):
    rows = [row(0, i, "a") | {"prompt": {"raw": f"say {i}", "label": label.format(said=i)}} for i in (0, 1)]
    done, cases = promptfoo(tmp_path, rows)
    assert ([case["id"] for case in cases], done.trials) == (["test-1/prompt-1", "test-1/prompt-2"], 1)


def test_a_failed_assertion_is_no_error_and_zeros_are_no_measurement(tmp_path):
    failed = row(0, 0, "a", success=False, error="Expected x", failureReason=1, gradingResult=None)
    broken = row(1, 0, "a", success=False, error="no such host", failureReason=2, response=None, gradingResult=None)
    _, cases = promptfoo(tmp_path, [failed, broken])
    traces = {case["id"]: case["embedded_trace"] for case in cases}
    assert traces["test-1/prompt-1"]["error"] is None
    metrics = traces["test-1/prompt-1"]["metrics"]
    assert (metrics["custom"]["reward"], metrics["token_input"], metrics["cost_usd"]) == (0, None, None)
    assert traces["test-2/prompt-1"]["error"]["type"] == "provider_error"
    assert "reward" not in traces["test-2/prompt-1"]["metrics"]["custom"]


def test_two_providers_of_one_name_are_no_trials(tmp_path):
    with pytest.raises(InputError, match="two providers are called 'a'"):
        promptfoo(tmp_path, [row(0, 0, "a"), row(0, 2, "a")])


def test_results_may_be_lines_of_json_or_yaml(tmp_path):
    rows = [row(1, 0, "a", index=1), row(0, 1, "a"), row(1, 0, "a", index=0)]
    document = {"evalId": "e", "results": {"version": 3, "prompts": [], "results": rows}}
    texts = {
        "out.json": json.dumps(document, indent=2),
        "out.jsonl": "".join(json.dumps(one) + "\n" for one in rows),
        "one.jsonl": json.dumps(rows[0]),
        "out.yaml": yaml.safe_dump(document, sort_keys=False),
    }
    found = {}
    for name, text in texts.items():
        file = tmp_path / name
        file.write_text(text)
        assert detected(head_of(file)) == "promptfoo-results"
        _, cases = imported(tmp_path / name.replace(".", "_"), "promptfoo-results", file)
        found[name] = json.dumps(cases).replace(name, "out")
    assert found["out.json"] == found["out.jsonl"] == found["out.yaml"]
    [case] = json.loads(found["one.jsonl"])
    assert case["embedded_trace"]["output"]["final_answer"] == "hi"


def test_a_table_of_promptfoo_says_what_to_import_instead(tmp_path):
    file = tmp_path / "out.csv"
    file.write_text("n,[echo] say {{n}},Status,Score,Named Scores,Grader Reason,Comment\n1,say 1,PASS,1.00,,ok,\n")
    assert detected(head_of(file)) == "promptfoo-results"
    with pytest.raises(InputError, match=r"\.json, \.jsonl or \.yaml"):
        imported(tmp_path, "promptfoo-results", file)


def test_rows_that_are_no_objects_are_mistakes(tmp_path):
    with pytest.raises(InputError) as raised:
        promptfoo(tmp_path, [row(0, 0, "a"), 5, row(1, 0, "a"), None])
    listed = [(problem.key, problem.message) for problem in raised.value.problems]
    assert listed == [
        ("results.results[1]", "expected an object, found the number 5"),
        ("results.results[3]", "expected an object, found nothing"),
    ]
