"""`code_judge`: a program that reads a document and prints its score, by the rules of AgentEvals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluators.agentv_traces import judged, judging_program, trace
from evalwright.errors import EvaluatorError
from evalwright.model.result import Evaluation
from evalwright.model.snapshot import Case


def run(folder: Path, code: str, case: Case | None = None, **config: Any) -> Evaluation:
    return judged("code_judge", {**judging_program(folder, code), **config}, trace(answer="yes"), case)


def document_seen(folder: Path, part: str = "document", case: Case | None = None, **config: Any) -> Any:
    """A part of what the program reads, as a Python expression in which this is `document`."""
    return run(folder, f"print(json.dumps({{'score': 1, 'details': {part}}}))", case, **config).detail["details"]


def test_a_program_gives_score_hits_misses_and_reasoning(tmp_path: Path) -> None:
    code = "print(json.dumps({'score': 0.9, 'hits': [document['candidate_answer'], 3, ' '], 'misses': ['m'], "
    code += "'reasoning': document['note']}))"
    evaluation = run(tmp_path, code, Case("c", "q", note="be kind"))
    assert (evaluation.score, evaluation.hits, evaluation.misses) == (0.9, ["yes"], ["m"])
    assert (evaluation.reason, evaluation.detail["verdict"]) == ("be kind", "pass")


def test_a_score_outside_the_scale_is_an_error_or_clamped_as_in_agentv(tmp_path: Path) -> None:
    code = "print('{\"score\": 1.7}')"
    with pytest.raises(EvaluatorError, match=r"score 1\.7, expected one from 0 to 1"):
        run(tmp_path, code)
    assert run(tmp_path, code, lenient=True).score == 1.0


@pytest.mark.parametrize("output", ["no json", "[1]", '{"score": "0.9"}', '{"score": true}', "{}", "log\\n{}"])
def test_unreadable_output_is_an_error_or_scores_0_as_in_agentv(tmp_path: Path, output: str) -> None:
    code = f"print('{output}')"
    with pytest.raises(EvaluatorError, match="the output of the code judge"):
        run(tmp_path, code)
    evaluation = run(tmp_path, code, lenient=True)
    assert evaluation.score == 0.0
    assert "the output of the code judge" in evaluation.reason


@pytest.mark.parametrize(
    "output",
    [
        '{"score": 0, "score": 1}',
        '{"assertions": [{"text": "a", "passed": "false"}]}',
        '{"assertions": [{"text": "a"}]}',
        '{"score": 1, "assertions": {"a": false}}',
    ],
)
def test_ambiguous_output_is_no_verdict(tmp_path: Path, output: str) -> None:
    with pytest.raises(EvaluatorError, match=r"the output of the code judge (is not clear|has 'assertions')"):
        run(tmp_path, f"print('{output}')")


def test_the_share_of_assertions_that_hold_is_the_score(tmp_path: Path) -> None:
    output = '{"assertions": [{"text": "a", "passed": true}, {"text": "b", "passed": false}]}'
    evaluation = run(tmp_path, f"print('{output}')")
    assert (evaluation.score, evaluation.hits, evaluation.misses) == (0.5, ["a"], ["b"])


def test_a_failed_program_is_an_error_with_both_streams(tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match=r"exit code 3: broken; standard output: \{\}"):
        run(tmp_path, "sys.stderr.write('broken')\nprint('{}')\nsys.exit(3)")


def test_a_program_that_does_not_end_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match=r"timed out after 0\.5 seconds"):
        run(tmp_path, "import time\ntime.sleep(60)", timeout_seconds=0.5)


def test_the_keys_of_the_document_come_in_both_spellings_but_not_those_of_users_data(tmp_path: Path) -> None:
    part = "{'a': document['candidateAnswer'], 'b': document['candidate_answer'], 'm': document['metadata']}"
    seen = document_seen(tmp_path, part, Case("c", "q", metadata={"isValid": True}))
    assert seen == {"a": "yes", "b": "yes", "m": {"isValid": True}}


def test_a_program_gets_its_configuration_unchanged(tmp_path: Path) -> None:
    config = {"labels": ["a"], "config": {"give": 1}}
    assert document_seen(tmp_path, "document['config']", config=config) == config


def test_the_document_lacks_what_was_not_measured(tmp_path: Path) -> None:
    seen = document_seen(tmp_path)
    assert {key for key, value in seen.items() if value is None} == {"config"}
    assert not {"cost_usd", "token_usage"} & seen["trace_summary"].keys()
    assert None not in seen["trace_summary"].values()


def test_a_program_gets_no_variable_except_those_that_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "s")
    monkeypatch.setenv("WANTED", "w")
    seen = document_seen(
        tmp_path, "{**__import__('os').environ, 'home': __import__('os').listdir(__import__('os').environ['HOME'])}",
        env=["WANTED"],
    )  # fmt: skip
    assert seen.keys() - {"LC_CTYPE"} <= {"PATH", "HOME", "LANG", "WANTED", "home"}
    assert (seen["WANTED"], seen["home"]) == ("w", [])


def test_a_named_variable_that_is_not_set_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match="not set: NOWHERE"):
        run(tmp_path, "print('{\"score\": 1}')", env=["NOWHERE"])
