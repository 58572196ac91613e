"""Files of recorded conversations of NorthStar."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.northstar import Dataset, EvalCase, EvalExpected, EvalSuite, TraceExpected

CASE = {"id": "a", "messages": []}


def written(folder: Path, content: Any, name: str = "d.json") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def refusal(path: Path) -> str:
    try:
        Dataset.from_path(path)
    except ValueError as error:
        return str(error)
    pytest.fail("the file was taken")


@pytest.mark.parametrize("content", [[CASE], {"cases": [CASE], "id": "x", "messages": []}, CASE])
def test_json_has_three_shapes(tmp_path: Path, content: Any) -> None:
    dataset = Dataset.from_path(written(tmp_path, content, "d.JSON"))
    assert (len(dataset), [case.id for case in dataset]) == (1, ["a"])


def test_ids_that_come_again_are_warned_of_and_graded_row_by_row() -> None:
    message = {**CASE, "messages": [{"role": "assistant", "content": "x"}], "expected": {"contains": ["x"]}}
    with pytest.warns(UserWarning, match="records: ids that are empty or repeated: 'a'"):
        dataset = Dataset.from_records([CASE, message])
    assert [result.status for result in EvalSuite().run(dataset).case_results] == ["not_evaluated", "passed"]


def test_ids_that_come_again_are_refused_when_asked(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="empty or repeated: 'a'"):
        Dataset.from_path(written(tmp_path, [CASE, CASE]), strict=True)


@pytest.mark.parametrize("content", [{"cases": None}, {"cases": {}}])
def test_cases_must_be_a_list(tmp_path: Path, content: Any) -> None:
    assert "'cases' must be a list" in refusal(written(tmp_path, content))


def test_blank_lines_count_but_are_no_cases(tmp_path: Path) -> None:
    line = json.dumps(CASE).encode()
    path = written(tmp_path, line + b"\r\n\n  \n{oops\n", "d.jsonl")
    assert "Invalid JSONL at line 4" in refusal(path)
    path.write_bytes(b"\xef\xbb\xbf" + line + b"\n\n" + line.replace(b"a", b"b", 1))
    assert len(Dataset.from_path(path)) == 2


@pytest.mark.parametrize("name", ["d.csv", "d", "d.jsonl.gz"])
def test_other_suffixes_are_refused(tmp_path: Path, name: str) -> None:
    assert "expected JSON or JSONL" in refusal(written(tmp_path, [CASE], name))


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Dataset.from_path(tmp_path / "absent.json")


def test_every_problem_of_every_case_is_told_with_its_place(tmp_path: Path) -> None:
    wrong = {"id": 1, "messages": [], "expected": {"contain": "x", "max_tool_calls": -1}}
    message = refusal(written(tmp_path, [wrong, CASE, {"id": "b"}]))
    for part in (
        "case 0",
        "[0].id",
        'did you mean "contains"?',
        "non-negative",
        "case 2, id 'b'",
        "[2].messages",
        "it is missing",
    ):
        assert part in message


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ([], "expected an object, found []"),
        ({**CASE, "messages": ["hi"]}, "expected an object, found 'hi'"),
        ({**CASE, "expected": {"trace": 1}}, "expected an object, found 1"),
        ({**CASE, "expected": {"goal": 1}}, "expected a string, found 1; put it in quotes to make it text"),
    ],
)
def test_what_is_of_another_kind_is_told_in_words_of_json(tmp_path: Path, record: Any, message: str) -> None:
    assert refusal(written(tmp_path, [record])).endswith(f": {message}")


def test_a_record_out_of_shape_is_told_with_its_line(tmp_path: Path) -> None:
    lines = json.dumps(CASE) + "\n" + json.dumps({"id": "b", "messages": {}})
    assert "messages  Invalid eval case (line 2, id 'b')" in refusal(written(tmp_path, lines.encode(), "d.jsonl"))


def test_text_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    assert "utf-8" in refusal(written(tmp_path, b"[\xff]"))


def test_plain_data_is_checked_like_a_file() -> None:
    assert len(Dataset.from_records([CASE])) == 1
    with pytest.raises(ValueError, match="record 1"):
        Dataset.from_records([CASE, {"id": "b"}])


def test_all_mistakes_of_json_lines_are_told(tmp_path: Path) -> None:
    lines = ['{"id": "a", "messages": []}', "nonsense", '{"id": 1, "messages": []}', "{", '{"id": "b"}']
    (tmp_path / "d.jsonl").write_text("\n".join(lines))
    with pytest.raises(ValueError, match="line 2") as raised:
        Dataset.from_path(tmp_path / "d.jsonl")
    assert all(f"line {n}" in str(raised.value) for n in (2, 3, 4, 5))
    suite = load_suite(tmp_path / "d.jsonl", "northstar")
    with pytest.raises(InputError) as refused:
        list(suite.cases)
    assert [problem.line for problem in refused.value.problems] == [2, 3, 4, 5]


def test_scalars_are_read_laxly_but_texts_are_never_made_of_numbers() -> None:
    expected = EvalExpected(max_tool_calls="3", max_cost_usd="2e-3", require_tool_output_reference="yes", contains="x")
    assert (expected.max_tool_calls, expected.max_cost_usd) == (3, 0.002)
    assert (expected.require_tool_output_reference, expected.contains) == (True, ["x"])
    for wrong in ({"goal": 1}, {"max_tool_calls": 1.5}, {"tool_arguments": [{"name": "t", "arguments": "{}"}]}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            EvalExpected(**wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"max_repeated_tool_calls": 0}, "positive"),
        ({"min_retrieval_recall": 1.5}, "between 0 and 1"),
        ({"max_step_cost_usd": -1}, "non-negative"),
        ({"relevant_retrieval_ids": "d1"}, "list"),
    ],
)
def test_limits_of_the_trace_are_checked(wrong: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TraceExpected(**wrong)


def test_unknown_keywords_are_refused() -> None:
    with pytest.raises(ValueError, match="bogus"):
        EvalCase(id="a", messages=[], bogus=1)
