"""The cases that `evaluate` takes."""

import itertools
from datetime import UTC, date, datetime

import pytest

import evalwright as ew
from api import agents
from api.evaluations import evaluate, passes, problems, write_suite


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["a", {"input": "b"}, ew.Case("x", "c")], [("1", "a"), ("2", "b"), ("x", "c")]),
        ({"first": "a", "second": {"q": 1}}, [("first", "a"), ("second", {"q": 1})]),
        ((text for text in ["a", "b"]), [("1", "a"), ("2", "b")]),
        ([{"id": 7, "input": ["a"], "tags": ["t"]}, 3], [("7", ["a"]), ("2", 3)]),
        ([{"input": {1: (2,), date(2026, 1, 2): b"b"}}], [("1", {"1": [2], "2026-01-02": "Yg=="})]),
    ],
)
def test_cases_of_all_shapes(given, found):
    run = evaluate(given, lambda case: "ok")
    assert [(cell.case.id, cell.input) for cell in run] == found


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_cases_from_a_table(library):
    frame = pytest.importorskip(library).DataFrame(
        {
            "id": ["a", "b"],
            "input.text": ["x", "y"],
            "expected.answer_should_include": ["x", None],
            "tags": ["t, u", None],
            "metadata.lang": ["de", "en"],
            "group": [1, 1],
        }
    )
    first, second = (cell.case for cell in evaluate(frame, lambda case: "ok"))
    assert (first.id, first.input, first.tags, first.metadata, first.group) == (
        "a", {"text": "x"}, ["t", "u"], {"lang": "de"}, "1",
    )  # fmt: skip
    assert (first.expected.answer_should_include, second.expected.answer_should_include) == (["x"], [])
    assert second.tags == []


def test_a_column_that_says_nothing_of_a_case_is_refused():
    pandas = pytest.importorskip("pandas")
    assert problems(pandas.DataFrame({"inpt": ["a"]}), agents.upper, evaluators=passes) == [
        "cases: expected a column 'input' or 'input.…', found none",
        "cases['inpt']: unknown column; did you mean \"input\"? (known: id, input, tags, group, description, note, "
        "input.…, expected.…, metadata.…)",
    ]


def test_columns_that_say_the_same_thing_twice_are_refused(tmp_path):
    pandas = pytest.importorskip("pandas")
    columns = ["input", "input.text", "input"]
    (tmp_path / "cases.csv").write_text(f"{','.join(columns)}\na,b,c\n")
    for cases in (tmp_path / "cases.csv", pandas.DataFrame([["a", "b", "c"]], columns=columns)):
        again, part = problems(cases, agents.upper, evaluators=passes)
        assert "there is more than one such column" in again
        assert "would be a part of the column 'input'" in part


def test_times_in_a_frame_are_text(times):
    [cell] = evaluate(times, lambda case: "ok")
    assert cell.case.metadata == {"at": "2026-01-02T03:04:05.500000", "utc": "2026-01-02T03:04:05Z"}


@pytest.fixture(params=["pandas", "polars"])
def times(request):
    made = pytest.importorskip(request.param)
    at = datetime(2026, 1, 2, 3, 4, 5)
    frame = {"input": ["x"], "metadata.at": [at.replace(microsecond=500_000)], "metadata.utc": [at.replace(tzinfo=UTC)]}
    return made.DataFrame(frame)


def test_each_column_of_facts_is_a_fact(tmp_path):
    (tmp_path / "cases.csv").write_text("input,expected.facts.city,expected.facts.at\nx,Paris,[1]\n")
    [cell] = evaluate(tmp_path / "cases.csv", lambda case: "ok")
    assert cell.case.expected.facts == {"city": "Paris", "at": [1]}


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (b'id,input\na,x\nb,"y\nc,z\n', 3, "a quote is never closed"),
        (b'id,input\na,x" y\n', 2, "a cell contains a quote but does not begin with one"),
        ("id,input\na,é\n".encode("latin-1"), None, "is not UTF-8 text"),
        (b"id,input\na,b,c\n", 2, "expected 2 cells, found 3"),
        (b"id,input\na,b\nc\n", 3, "expected 2 cells, found 1"),
    ],
)
def test_a_table_that_is_no_csv_is_refused_with_its_line(tmp_path, text, line, says):
    (tmp_path / "cases.csv").write_bytes(text)
    with pytest.raises(ew.InputError, match=says) as raised:
        evaluate(tmp_path / "cases.csv", lambda case: "ok")
    assert [(problem.line, problem.file) for problem in raised.value.problems] == [(line, str(tmp_path / "cases.csv"))]


FILES = {
    "cases.jsonl": '{"id": "a", "input": "x"}\n\n{"input": "y"}\n',
    "cases.json": '[{"id": "a", "input": "x"}, {"input": "y"}]',
    "marked.jsonl": '\ufeff{"id": "a", "input": "x"}\r\n{"input": "y"}\r\n',
    "LOUD.JSONL": '{"id": "a", "input": "x"}\n{"input": "y"}\n',
    "cases.yaml": "cases:\n  - {id: a, input: x}\n  - y\n",
    "versioned.yaml": 'schema_version: "1.0"\ncases:\n  - {id: a, input: x}\n  - y\n',
    "cases.csv": 'id,input,tags\na,x,"t,u"\n,y,\n',
}


@pytest.mark.parametrize("name", FILES)
def test_cases_from_files(name, tmp_path):
    (tmp_path / name).write_text(FILES[name])
    assert [(cell.case.id, cell.input) for cell in evaluate(tmp_path / name)] == [("a", "x"), ("2", "y")]
    assert len(evaluate(str(tmp_path / name), limit=1)) == 1


def test_the_cases_of_a_dataset_that_may_have_none_of_the_ids(tmp_path):
    (tmp_path / "d.jsonl").write_text('{"id": "", "messages": []}\n{"id": "", "messages": []}\n')
    assert [cell.case.id for cell in evaluate(tmp_path / "d.jsonl", lambda case: "ok")] == ["", ""]


def test_the_cases_of_a_suite_file(tmp_path):
    write_suite(tmp_path)
    run = evaluate(tmp_path / "eval.yaml", lambda case: case.input["word"])
    assert [cell.output for cell in run] == ["a", "b"]


def test_an_endless_iterator_is_read_as_far_as_the_limit():
    numbers = itertools.count()
    run = evaluate(map(str, numbers), lambda case: "ok", limit=3)
    assert [cell.input for cell in run] == ["0", "1", "2"]
    assert next(numbers) == 3
    assert problems(map(str, numbers), agents.upper, evaluators=passes, limit=-1)
