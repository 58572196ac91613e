"""The cases that `evaluate` takes."""

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


FILES = {
    "cases.jsonl": '{"id": "a", "input": "x"}\n\n{"input": "y"}\n',
    "cases.json": '[{"id": "a", "input": "x"}, {"input": "y"}]',
    "cases.yaml": "cases:\n  - {id: a, input: x}\n  - y\n",
    "cases.csv": 'id,input,tags\na,x,"t,u"\n,y,\n',
}


@pytest.mark.parametrize("name", FILES)
def test_cases_from_files(name, tmp_path):
    (tmp_path / name).write_text(FILES[name])
    assert [(cell.case.id, cell.input) for cell in evaluate(tmp_path / name)] == [("a", "x"), ("2", "y")]
    assert len(evaluate(str(tmp_path / name), limit=1)) == 1


def test_the_cases_of_a_suite_file(tmp_path):
    write_suite(tmp_path)
    run = evaluate(tmp_path / "eval.yaml", lambda case: case.input["word"])
    assert [cell.output for cell in run] == ["a", "b"]
