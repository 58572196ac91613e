from __future__ import annotations

import os
from pathlib import Path

import pytest

from evalwright.formats.discovery import suite_files
from evalwright.formats.loading import fitting, load_suite
from formats.suites import SOUND, refusal, write


def test_an_eval_yaml_is_known_by_its_keys(tmp_path: Path) -> None:
    assert load_suite(write(tmp_path, SOUND)).dialect == "evalh"


def test_a_file_of_no_format_is_told_the_formats(tmp_path: Path) -> None:
    path = write(tmp_path, "hello: world\n")
    said = str(refusal(lambda: load_suite(path)))
    assert "format not recognised: it has hello; suites have evalcases (agentv), dataset and graders (letta)" in said
    assert "; pass --format (agentv, letta, native" in said


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        (
            "geo.yaml",
            "cases: [{name: fr, inputs: Capital of France?, evaluators: [IsInstance: str]}]\n",
            "pydantic-evals",
        ),
        ("spans.jsonl", '{"resourceSpans": []}\n', "otlp-json"),
        ("my runs.json", '[{"input": "Capital?", "expected_output": "Paris"}]', "deepeval"),
    ],
)
def test_what_can_be_imported_is_told_so(tmp_path: Path, name: str, text: str, format: str) -> None:
    (tmp_path / name).write_text(text)
    (problem,) = refusal(lambda: load_suite(tmp_path / name)).problems
    assert problem.message.startswith(f"is no suite, but can be imported as one ({format}): evalwright import ")
    assert problem.message.endswith(f"{name}'" if " " in name else name)


def test_a_key_that_is_nearly_one_of_a_format_is_told_which(tmp_path: Path) -> None:
    said = str(refusal(lambda: load_suite(write(tmp_path, "name: a\nevalCases: []\n"))))
    assert 'it has name, evalCases (did you mean "evalcases"?); suites' in said
    said = str(refusal(lambda: load_suite(write(tmp_path, "evalCases: []\n"), "agentv")))
    assert "expected a list, it is missing; should 'evalCases' be 'evalcases'?" in said
    said = str(refusal(lambda: load_suite(write(tmp_path, "cases: []\nsystems: []\nhello: 1\n"))))
    assert "it has cases, systems, hello; suites have dataset and systems (native); pass" in said


@pytest.mark.parametrize("name", ["native", "evalh"])
def test_a_named_format_wins(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, "hello: world\n")
    assert "hello  unknown key" in str(refusal(lambda: load_suite(path, name)))


def test_an_unknown_format_is_told_the_known_ones(tmp_path: Path) -> None:
    path = write(tmp_path, SOUND)
    assert 'did you mean "native"' in str(refusal(lambda: load_suite(path, "nativ")))


@pytest.mark.parametrize("name", ["missing.yaml", "a" * 5000, "nul\0byte"])
def test_what_is_not_there_is_named(tmp_path: Path, name: str) -> None:
    (problem,) = refusal(lambda: load_suite(tmp_path / name)).problems
    assert (problem.file, problem.message) == (str(tmp_path / name), "does not exist")


def test_a_pipe_is_not_said_to_be_missing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (problem,) = refusal(lambda: load_suite(tmp_path / "pipe.yaml")).problems
    assert problem.message == "is not a regular file"


def test_pipes_in_a_folder_are_no_suites(tmp_path: Path) -> None:
    suite = write(tmp_path, SOUND)
    for name in ("pipe.yaml", "pipe.json", "pipe.jsonl"):
        os.mkfifo(tmp_path / name)
    assert suite_files([tmp_path]).files == [suite]


def test_a_folder_is_no_suite(tmp_path: Path) -> None:
    assert "is a folder" in str(refusal(lambda: load_suite(tmp_path)))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, SOUND)
    path.chmod(0)
    assert "cannot be read" in str(refusal(lambda: load_suite(path)))


@pytest.mark.parametrize("text", ["a: [\n", ""])
def test_a_file_without_keys_is_of_the_format_that_its_name_says(tmp_path: Path, text: str) -> None:
    for name, format_ in {"promptfooconfig.yaml": "promptfoo", "eval.yaml": "native", "other.yaml": "native"}.items():
        (tmp_path / name).write_text(text)
        assert [suite_format.name for suite_format in fitting(tmp_path / name)] == [format_]


def test_json_files_whose_names_only_end_like_those_of_suites_are_not_searched(tmp_path: Path) -> None:
    for name in ("promptfooconfig.json", "old-promptfooconfig.json"):
        (tmp_path / name).write_text('{"prompts": ["a"], "providers": ["echo"]}')
    assert suite_files([tmp_path]).files == suite_files([tmp_path / "*"]).files == [tmp_path / "promptfooconfig.json"]


def test_the_preferred_name_in_each_folder_is_the_suite(tmp_path: Path) -> None:
    """JSON, too, if only suites have its name; a file that is named is read in any case."""
    text = '{"prompts": ["a"], "providers": ["echo"]}'
    for name in ("a/promptfooconfig.json", "a/promptfooconfig.mjs", "b/promptfooconfig.yml", "b/promptfooconfig.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    suites = [tmp_path / "a/promptfooconfig.json", tmp_path / "b/promptfooconfig.yml"]
    assert suite_files([tmp_path]).files == suite_files([tmp_path / "*"]).files == suites
    assert suite_files([tmp_path / "a/promptfooconfig.mjs"]).files == [tmp_path / "a/promptfooconfig.mjs"]


def test_the_sidecar_of_json_lines_is_no_suite_and_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "y.jsonl").write_text('{"id": "a", "criteria": "x", "input": "y"}\n')
    (tmp_path / "y.yaml").write_text("name: cases\n")
    (tmp_path / "z.yaml").write_text("name: other\n")
    assert suite_files([tmp_path]) == ([tmp_path / "y.jsonl"], [tmp_path / "z.yaml"])


def test_a_sidecar_that_is_named_says_where_its_cases_are(tmp_path: Path) -> None:
    (tmp_path / "y.jsonl").write_text('{"id": "a", "criteria": "x", "input": "y"}\n')
    (tmp_path / "y.yaml").write_text("name: cases\n")
    assert "belongs to the cases in y.jsonl" in str(refusal(lambda: load_suite(tmp_path / "y.yaml")))


def test_json_is_not_read_as_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    monkeypatch.setattr("evalwright.files.yaml.compose", read.append)
    path = tmp_path / "records.json"
    path.write_text('[{"id": "a", "messages": [{"role": "assistant", "content": "hi"}]}]')
    assert [suite_format.name for suite_format in fitting(path)] == ["northstar"]
    assert read == []
