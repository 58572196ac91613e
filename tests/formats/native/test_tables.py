"""Datasets of rows: what a cell is, which part of a case a column becomes, and every way in which a table is wrong."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from evalwright.formats.loading import load_suite
from formats.native.tables import SUITE, cases, inputs, suite, wrong
from formats.suites import refusal

# ---------------------------------------------------------------- cells


def test_every_cell_is_text_as_it_stands(tmp_path):
    data = 'id,a,b,c,d\nx,007,1e3, true ,\ny,"a ""b"",\r\nc",null,=1+1,"x"\n'
    assert inputs(tmp_path, data) == {
        "x": {"a": "007", "b": "1e3", "c": " true ", "d": ""},
        "y": {"a": 'a "b",\r\nc', "b": "null", "c": "=1+1", "d": "x"},
    }


def test_types_say_what_a_column_is_and_empty_cells_are_null(tmp_path):
    data = 'id,i,f,b,j,l\nx,4,0.5,Yes,"{""k"": [1]}",a; b ;\ny,,,,,\n'
    types = {"i": "int", "f": "float", "b": "bool", "j": "json", "l": "list"}
    assert inputs(tmp_path, data, types=types) == {
        "x": {"i": 4, "f": 0.5, "b": True, "j": {"k": [1]}, "l": ["a", "b", ""]},
        "y": {"i": None, "f": None, "b": None, "j": None, "l": []},
    }


@pytest.mark.parametrize(
    ("kind", "cell"),
    [
        ("int", "4.5"), ("int", "1_000"), ("int", "٣"), ("float", "nan"), ("float", "1_0.5"), ("bool", "on"),
        ("json", "{"), ("json", "[NaN]"),
    ],
)  # fmt: skip
def test_a_cell_that_does_not_convert_is_a_mistake_with_its_place(tmp_path, kind, cell):
    (problem,) = wrong(tmp_path, f"id,n\na,\nb,{cell}\n", types={"n": kind})
    assert (Path(problem.file).name, problem.line, problem.key, repr(cell) in problem.message) == (
        "d.csv",
        3,
        "n",
        True,
    )


def test_a_cell_may_be_longer_than_pythons_reader_takes(tmp_path):
    text = "x" * 200_000
    assert inputs(tmp_path, f'id,a\n1,"{text}"\n2,{text}\n') == {"1": {"a": text}, "2": {"a": text}}


def test_files_with_a_mark_of_their_encoding_other_encodings_and_separators(tmp_path):
    assert inputs(tmp_path, b"\xef\xbb\xbfid,a\n1,\xc3\xa4\n") == {"1": {"a": "ä"}}
    assert inputs(tmp_path, "id,a\n1,ä\n".encode("latin-1"), encoding="latin-1") == {"1": {"a": "ä"}}
    assert inputs(tmp_path, "id;a\n1;b,c\n", delimiter=";") == {"1": {"a": "b,c"}}
    assert inputs(tmp_path, 'id\ta\n1\t5" nail, c\n', name="d.tsv") == {"1": {"a": '5" nail, c'}}


# ---------------------------------------------------------------- columns


def test_columns_are_parts_by_their_names(tmp_path):
    data = "id,question,expected.answer_should_include,metadata.tier,tags\n1,why?,because,gold,a\n"
    (case,) = cases(tmp_path, data)
    assert (case.input, case.metadata, case.tags) == ({"question": "why?"}, {"tier": "gold"}, ["a"])
    assert case.expected.answer_should_include == ["because"]


def test_with_a_column_of_the_input_no_other_is_in_it(tmp_path):
    assert inputs(tmp_path, "id,input.q,note\n1,why?,x\n") == {"1": {"q": "why?"}}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("d.csv", "id,input.q,metadata.m,expcted.x\n1,why?,x,y\n"),
        ("d.json", '[{"id": "1", "input": {"q": 1}, "expcted.x": 1}, {"id": "2", "input": {"q": 1}, "tags": ["t"]}]'),
    ],
)
def test_a_column_that_is_part_of_no_case_is_a_warning_unless_a_map_chose(tmp_path, name, data):
    (tmp_path / name).write_text(data)
    told = [problem.message for problem in suite(tmp_path, path=name).cases.unknown_keys()]
    assert told == ["nothing reads the column 'expcted.x': only those named input are the input"]
    assert not [*suite(tmp_path, path=name, map={"id": "id", "input.q": "input.q"}).cases.unknown_keys()]


@pytest.mark.parametrize(("name", "data"), [("d.csv", "id,q\n1,a\n"), ("d.json", '[{"id": "1", "q": "a"}]')])
def test_a_key_that_tables_of_another_type_have_is_told(tmp_path, name, data):
    (tmp_path / name).write_text(data)
    other = {"d.csv": {"records": "a"}, "d.json": {"delimiter": ";", "encoding": "latin-1"}}[name]
    keys = [warning.key for warning in suite(tmp_path, path=name, **other).warnings]
    assert keys == [f"dataset.{key}" for key in other]


def test_rows_without_an_id_are_numbered_without_blank_lines(tmp_path):
    assert inputs(tmp_path, "q\none\n\ntwo\n") == {"row-1": {"q": "one"}, "row-2": {"q": "two"}}


def test_a_map_takes_columns_paths_values_and_templates(tmp_path):
    rows = [{"meta": {"key": 7}, "first": "A", "last": "B", "facts": {"city": "Bonn"}}]
    mapped = {
        "id": "meta.key", "input": "first", "input.name": "{first} {last}", "input.lang": {"value": "de"},
        "expected.facts": "facts", "metadata.raw": "meta",
    }  # fmt: skip
    (case,) = cases(tmp_path, json.dumps(rows), name="d.json", map=mapped)
    assert (case.id, case.input) == ("7", {"first": "A", "name": "A B", "lang": "de"})
    assert (case.expected.facts, case.metadata) == ({"city": "Bonn"}, {"raw": {"key": 7}})


@pytest.mark.parametrize(
    ("data", "dataset", "part"),
    [
        ("input.a.b,input.a\n1,2\n", {}, "input.a"),
        ("input.a,input.a.b\n1,2\n", {}, "input.a.b"),
        ("input,input.input\n1,2\n", {}, "input.input"),
        ("a,b\n1,2\n", {"map": {"input": "a", "input.a": "b"}}, "input.a"),
        ("a,metadata.source\n1,2\n", {"source": True}, "metadata.source"),
        ("a,b\n1,2\n", {"source": True, "map": {"input": "a", "metadata": "b"}}, "metadata.source"),
    ],
)
def test_what_would_replace_another_part_of_a_case_is_refused(tmp_path, data, dataset, part):
    [problem] = wrong(tmp_path, data, **dataset)
    assert (problem.line, problem.key) == (2, part)


def test_a_column_that_no_row_has_is_refused_and_one_that_some_lack_is_a_warning(tmp_path):
    (problem,) = wrong(tmp_path, "id,question\n1,x\n", map={"id": "id", "input.q": "quesion"})
    assert "'quesion'" in problem.message
    assert 'did you mean "question"' in problem.message
    lines = "".join(json.dumps(row) + "\n" for row in ({"id": "a", "q": 1}, {"id": "b"}))
    assert inputs(tmp_path, lines, name="d.jsonl", map={"id": "id", "input.q": "q"}) == {
        "a": {"q": 1},
        "b": {"q": None},
    }
    loaded = suite(tmp_path, path="d.jsonl", map={"id": "id", "input.q": "q"})
    list(loaded.cases)
    told = [problem.message for problem in loaded.cases.unknown_keys()]
    assert told == ["1 row without the column 'q': read as null"]


def test_the_place_of_a_row_is_in_its_metadata_on_request(tmp_path):
    (case,) = cases(tmp_path, "id,q\n1,x\n", source=True)
    assert case.metadata == {"source": {"file": "d.csv", "line": 2}}


# ---------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("name", "data", "lines"),
    [
        ("d.csv", 'id,a\n1\n2,x\n3,y,z\n4,"x\n', [2, 4, 5]),
        ("d.jsonl", '{"id": "a", "q": 1}\n[1]\n{"id"\n{"id": "a", "q": NaN}\n', [2, 3, 4]),
        ("d.json", '[1, {"id": "a", "q": 1},\n"x"]', [1, 2]),
    ],
)
def test_all_rows_that_are_none_are_told_at_once(tmp_path, name, data, lines):
    assert [problem.line for problem in wrong(tmp_path, data, name=name, map={"id": "id", "input": "id"})] == lines


def test_the_column_of_a_line_that_breaks_off_is_on_that_line(tmp_path):
    [problem] = wrong(tmp_path, '{"id": "a"\n{"id": "b"}\n', "d.jsonl", map={"id": "id", "input": "id"})
    assert (problem.line, problem.message) == (1, "is not valid JSON: Expecting ',' delimiter (col 11)")


def test_one_column_that_has_another_separator_is_doubted(tmp_path):
    (tmp_path / "d.csv").write_text("id;q\n1;x\n")
    doubts = [str(problem) for problem in suite(tmp_path, path="d.csv").cases.unknown_keys()]
    assert 'does `delimiter: ";"` separate the columns?' in str(doubts)
    (tmp_path / "d.csv").write_text("q\n1;x\n")
    assert not [*suite(tmp_path, path="d.csv").cases.unknown_keys()]


def test_a_column_that_is_nearly_named_as_a_part_of_a_case_is_a_warning(tmp_path):
    (tmp_path / "d.csv").write_text('" id ",Tags,expected.facts.City,Input,q\n1,t,Bonn,x,y\n')
    doubts = [problem.message for problem in suite(tmp_path, path="d.csv").cases.unknown_keys()]
    assert [doubt for doubt in doubts if "column" in doubt] == [
        "the column ' id ' is not 'id', the part of a case",
        "the column 'Tags' is not 'tags', the part of a case",
    ]
    mapped = suite(tmp_path, path="d.csv", map={"id": " id ", "input.q": "q"})
    assert not [*mapped.cases.unknown_keys()]


@pytest.mark.parametrize(
    ("name", "data", "line", "fact"),
    [
        ("d.csv", "", None, "empty"),
        ("d.csv", "id,a\n", None, "no rows"),
        ("d.csv", "id,a,a\n1,2,3\n", 1, "'a'"),
        ("d.csv", "id,,b\n1,2,3\n", 1, "column 2"),
        ("d.csv", "id,a\n1,x\n2\n", 3, "2 cells"),
        ("d.csv", 'id,a\n1,"x\n2,y\n', 2, "quote"),
        ("d.csv", 'id,a\n1,x"y"\n', 2, "quote"),
        ("d.tsv", 'id\ta\n1\t"x"y\n', 2, "a cell contains a quote"),
        ("d.csv", "id;a\n1,x;y\n", 2, 'expected 1 cell, found 2 cells: does `delimiter: ";"`'),
        ("d.csv", "id,a\n1,x\n".encode("utf-16"), None, "encoding: utf-16"),
        ("d.csv", b"id,a\n1,\xff\n", 2, "encoding: latin-1"),
        ("d.json", "{}", None, "array"),
        ("d.json", '[{"a": 1},\n{"a": NaN}]', 2, "NaN"),
        ("d.json", '[{"a": 1},\n{"a": 1}, {\n"a": 1, "a": 2}]', 3, "'a'"),
        ("d.json", '[{"id": "a"},\n{"id": true}]', 2, "found true"),
        ("d.json", '{"rows": [{"id": "a"},\n\n{"id": 1.5}]}', 3, "1.5"),
        ("d.json", "[\n\n}", 3, "col 1"),
        ("d.json", '{"id": "a"}\n{"id": "b"}\n', 2, "a file with a value on each line is of `type: jsonl`"),
        ("d.jsonl", '{"id": "a", "input": {}}\n{"id"', 2, "JSON"),
        ("d.jsonl.gz", gzip.compress(b'{"id": "a"}\n' * 50)[:-12], None, "cannot be read"),
        ("d.parquet", "no table", None, "Parquet"),
    ],
)
def test_what_is_no_table_is_refused_with_file_and_line(tmp_path, name, data, line, fact):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    mapped = {"map": {"id": "id", "input": "id"}} if name == "d.jsonl" else {}
    problem = wrong(tmp_path, data, name=name, **mapped)[0]
    assert (Path(problem.file).name, problem.line, fact in problem.message) == (name, line, True), str(problem)


@pytest.mark.parametrize(
    ("dataset", "key", "fact"),
    [
        ({"path": "part-*.csv"}, "dataset.path", "part-*.csv"),
        ({"path": []}, "dataset.type", "type"),
        ({"path": "d.csv", "map": {"inptu": "q"}}, "dataset.map", "inptu"),
        ({"path": "d.csv", "map": {"input": {"val": 3}}}, "dataset.map.input", "value"),
        (
            {"path": "d.csv", "map": {"input": 2023}},
            "dataset.map.input",
            "2023; put it in quotes to make it text",
        ),
        ({"path": "d.csv", "map": {"input": ["q"]}}, "dataset.map.input", "{value: X}, found a list"),
        ({"path": "d.csv", "map": {"id": "id"}}, "dataset.map", "no column is the input"),
        ({"path": "d.csv", "map": {}}, "dataset.map", "no column is the input"),
        ({"path": "d.csv", "map": ["q"]}, "dataset.map", "found a list"),
        ({"path": "d.csv", "types": {"q": "integer"}}, "dataset.types.q", "integer"),
        ({"path": "d.txt"}, "dataset.type", "the ending '.txt' stands for none"),
        ({"path": "d.XLS"}, "dataset.type", ".xlsx or CSV"),
        ({"path": "d.csv", "types": {"q": ["int"]}}, "dataset.types.q", "['int']"),
        ({"path": "d.csv", "encoding": "hex"}, "dataset.encoding", "'hex'"),
        ({"path": "d.csv", "delimiter": 7}, "dataset.delimiter", "expected text, found 7"),
        ({"path": "d.csv", "delimiter": ""}, "dataset.delimiter", "expected the text between cells, found ''"),
        ({"path": "d.csv", "source": "no"}, "dataset.source", "expected true or false, found 'no'"),
    ],
)
def test_what_is_wrong_with_the_section_is_told_when_it_is_loaded(tmp_path, dataset, key, fact):
    (tmp_path / "d.csv").write_text("id,q\n1,x\n")
    (tmp_path / "d.txt").write_text("x")
    problems = refusal(lambda: suite(tmp_path, **dataset)).problems
    assert [(problem.key, fact in problem.message) for problem in problems] == [(key, True)]


def test_all_that_is_wrong_with_the_section_is_told_at_once(tmp_path):
    (tmp_path / "d.csv").write_text("id,q\n1,x\n")
    wrong = {"map": {"inptu": "q", "input": {"val": 3}}, "types": {"q": "date"}, "encoding": "none", "delimiter": 7}
    problems = refusal(lambda: suite(tmp_path, path="d.csv", **wrong)).problems
    keys = ["dataset.map", "dataset.map.input", "dataset.types.q", "dataset.encoding", "dataset.delimiter"]
    assert sorted(problem.key for problem in problems) == sorted(keys)


def test_both_places_of_an_id_are_named(tmp_path):
    (problem,) = wrong(tmp_path, "id,q\nz,1\ny,2\nz,3\n")
    assert (problem.line, "'z'" in problem.message, "d.csv:2" in problem.message) == (4, True, True)
    (tmp_path / "e.csv").write_text("id,q\nz,4\n")
    refused = refusal(lambda: list(suite(tmp_path, path=["d.csv", "e.csv"]).cases))
    assert len(refused.problems) == 2
    (problem,) = wrong(tmp_path, '{"q": [\n{"id": "z"},\n{"id": "y"},\n{"id": "z"}]}', name="d.json")
    assert (problem.line, problem.key, "d.json:2" in problem.message) == (4, "q[2]", True)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("d.csv", 'id,q,expected.answer_should_include\n1,a,x\n2,b,\n3,c,""\n'),
        ("d.json", '[{"id": "1", "q": 1},\n{"id": "2", "q": 1, "expected": {"answer_should_include": ["x", ""]}},\n'
         '{"id": "3", "expected.answer_should_include": ""}]'),
        ("d.jsonl", '{"id": "1", "input": {}}\n{"id": "2", "input": {}, "expected": {"answer_should_include": [""]}}\n'
         '{"id": "3", "input": {}, "expected": {"answer_should_include": ["", "a"]}}'),
        ("d.yaml", 'cases:\n- {id: "2", input: {}, expected: {answer_should_include: [""]}}\n'
         '- {id: "3", input: {}, expected: {answer_should_include: [""]}}\n'),
    ],
)  # fmt: skip
def test_an_expectation_that_every_answer_meets_is_a_warning(tmp_path, name, data):
    (tmp_path / name).write_text(data)
    dataset = {"path": name} if name != "d.yaml" else {"path": name, "type": "yaml"}
    asking = {**SUITE, "evaluators": [{"name": "e", "type": "contains_text"}], "dataset": dataset}
    (tmp_path / "eval.yaml").write_text(json.dumps(asking))
    found = load_suite(tmp_path / "eval.yaml").cases
    assert len([*found]) >= 2
    (told,) = [key for key in found.unknown_keys() if "empty text" in key.message]
    assert (told.line, "2 cases" in told.message) == (3 if name == "d.csv" else 2, True)


def test_files_of_a_glob_have_one_header(tmp_path):
    (tmp_path / "a.csv").write_text("id,q\n1,x\n")
    (tmp_path / "b.csv").write_text("id,p\n2,x\n")
    (problem,) = refusal(lambda: list(suite(tmp_path, path="*.csv").cases)).problems
    assert (Path(problem.file).name, "id, q" in problem.message) == ("b.csv", True)
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for name, column in (("a", "q"), ("b", "p")):
        parquet.write_table(pyarrow.table({"id": [name], column: ["x"]}), tmp_path / f"{name}.parquet")
    (problem,) = refusal(lambda: list(suite(tmp_path, path="*.parquet").cases)).problems
    assert (Path(problem.file).name, problem.message.endswith("(id, q), found id, p")) == ("b.parquet", True)


def test_filters_and_samples_work_as_elsewhere(tmp_path):
    data = "id,q,metadata.tier\n" + "".join(f"{n},x,{n % 2}\n" for n in range(10))
    assert len(inputs(tmp_path, data, filter={"metadata.tier": "1"})) == 5
    assert len(inputs(tmp_path, data, sample=3)) == 3
    empty = suite(tmp_path, path="d.csv", filter={"metadata.tier": 1}).cases.why_empty()
    assert "metadata.tier is text there, '1'" in empty.message


def test_a_misspelt_key_is_told(tmp_path):
    (tmp_path / "d.csv").write_text("id,q\n1,x\n")
    told = [str(warning) for warning in suite(tmp_path, path="d.csv", delimeter=";").warnings]
    assert any('did you mean "delimiter"' in line for line in told)


def test_rows_that_are_to_be_replayed_need_recordings(tmp_path):
    (problem,) = wrong(tmp_path, "id,q\n1,x\n", embed_full_trace=True)
    assert (problem.line, problem.key) == (2, "embedded_trace")


@pytest.mark.parametrize("depth", [300, 900, 5000])
@pytest.mark.parametrize("column", ["input", "metadata", "embedded_trace"])
def test_a_row_of_more_levels_than_can_be_stored_is_named(tmp_path: Path, depth: int, column: str) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    trace = f'{{"case_id": "b", "variant_name": "v", "input": {{}}, "output": {{}}, "extra": {deep}}}'
    value = trace if column == "embedded_trace" else deep
    rest = "" if column == "input" else '"input": {}, '
    rows = f'[{{"id": "a", "input": {{}}}}, {{"id": "b", {rest}"{column}": {value}}}]'
    [problem] = refusal(lambda: cases(tmp_path, rows, "d.json", type="json")).problems
    assert "nested too deeply" in problem.message
