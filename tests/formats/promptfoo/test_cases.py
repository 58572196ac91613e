"""Tests: their files, tables, defaults, scenarios, and the values of their variables."""

from __future__ import annotations

import json

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from formats.promptfoo.runs import ECHO, Ran, run, write


def test_lists_of_texts_are_multiplied_out_and_other_lists_are_values(tmp_path):
    test = {"vars": {"a": ["x", "y"], "b": ["1", "2"], "c": [{"k": 1}]}}
    found = run(tmp_path, {"prompts": ["{{a}}{{b}}{{ c | dump }}"], "providers": ["echo"], "tests": [test]})
    assert found.outputs == [f'{a}{b}[{{"k":1}}]' for a in "xy" for b in "12"]


def test_a_list_within_a_list_of_texts_is_one_of_its_values(tmp_path):
    cases = load_suite(write(tmp_path, {**ECHO, "tests": [{"vars": {"q": ["a", ["b", "c"], 3]}}]})).cases
    assert [case.input["q"] for case in cases] == ["a", ["b", "c"], 3]


def test_only_line_feeds_end_the_lines_of_files(tmp_path):
    """JSON may contain the line separators of Unicode as they are."""
    odd = "a\u2028b\x85c"
    files = {
        "prompts.txt": f"{odd} {{{{q}}}}\n---\nsecond",
        "prompts.jsonl": f'["{odd}"]\n',
        "tests.jsonl": f'{{"vars": {{"q": "{odd}"}}}}\n',
    }
    config = {"prompts": ["file://prompts.txt", "file://prompts.jsonl"], "providers": ["echo"], "tests": "tests.jsonl"}
    first, second, third = run(tmp_path, config, **files).outputs
    assert (first, second, json.loads(third)) == (f"{odd} {odd}", "second", [odd])


def test_a_cell_of_a_table_may_be_as_long_as_it_likes_and_contain_quotation_marks(tmp_path):
    rows = [["x" * 200_000, "no"], ['"5"" pipe, ""iron"""', "quoted"], ['5" pipe', "bare"], ['"a"b', "bare"]]
    text = "q,__description\n" + "".join(",".join(row) + "\n" for row in rows)
    cases = load_suite(write(tmp_path, {**ECHO, "tests": "t.csv"}, **{"t.csv": text})).cases
    assert [case.input["q"] for case in cases] == ["x" * 200_000, '5" pipe, "iron"', '5" pipe', '"a"b']


def test_a_quotation_mark_that_is_never_closed_is_named_with_its_line(tmp_path):
    with pytest.raises(InputError, match=r"t.csv:3: a quotation mark is never closed"):
        load_suite(write(tmp_path, {**ECHO, "tests": "t.csv"}, **{"t.csv": 'q,r\na,b\nc,"d\ne,f\n'}))


def test_the_tests_of_files_come_in_order(tmp_path):
    files = {
        "a.yaml": "- {vars: {q: yaml}}\n",
        "b.json": '[{"vars": {"q": "json"}}]',
        "c.jsonl": '{"vars": {"q": "jsonl"}}\n',
        "d.csv": "q,__expected,__description,__threshold\ncsv,contains: v,named,\ncsv,no,,0\n",
    }
    path = write(tmp_path, {**ECHO, "tests": ["file://a.yaml", "b.json", "c.jsonl", "d.csv"]}, **files)
    cases = list(load_suite(path).cases)
    assert [case.input["q"] for case in cases] == ["yaml", "json", "jsonl", "csv", "csv"]
    assert [case.description for case in cases][-2:] == ["named", "Row #2"]
    assert [spec.called for case in cases for spec in case.evaluators] == ["contains", "equals"]
    assert cases[-1].extra["promptfoo"]["threshold"] == 0


def test_a_pattern_finds_files_by_its_alternatives(tmp_path):
    files = {f"{name}.yaml": f"- {{vars: {{q: {name}}}}}\n" for name in ("ab", "ac", "bb", "cc")}
    cases = load_suite(write(tmp_path, {**ECHO, "tests": "{a,b}{b,c}.y*ml"}, **files)).cases
    assert [case.input["q"] for case in cases] == ["ab", "ac", "bb"]


def test_tests_come_from_a_sheet_of_a_workbook(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    made = openpyxl.Workbook()
    made.active.append(["q", "n", "__expected", "__metadata:k"])
    made.active.append([" a ", 3.0, "contains: a", True])
    made.active.append([None, None, None, None])
    made.active.append(["b", 1e21, None, None])
    made.create_sheet("Other").append(["q"])
    made["Other"].append(["c"])
    made.save(tmp_path / "t.xlsx")
    suite = load_suite(write(tmp_path, {**ECHO, "tests": "t.xlsx"}))
    assert [case.input for case in suite.cases] == [
        {"q": "a", "n": "3"}, {"q": "", "n": ""}, {"q": "b", "n": "1e+21"},
    ]  # fmt: skip
    assert suite.cases[0].metadata == {"k": "true"}
    assert [str(warning) for warning in suite.warnings if "t.xlsx:3: the row is empty" in str(warning)]
    for named in ("file://t.xlsx#Other", "t.xlsx#2"):
        assert [case.input for case in load_suite(write(tmp_path, {**ECHO, "tests": [named]})).cases] == [{"q": "c"}]
    with pytest.raises(InputError, match=r"t\.xlsx.*there is no sheet 'none'"):
        load_suite(write(tmp_path, {**ECHO, "tests": "t.xlsx#none"}))


def test_cells_of_csv_quote_texts_with_commas_and_name_files(tmp_path):
    listed = '"contains-any:""a, b"", zz"'
    table = f"q,__expected\n'a, b',{listed}\nb,{listed}\nok,file://ok.txt\nno,file://ok.txt\n".replace("'", '"')
    found = run(tmp_path, {**ECHO, "tests": "t.csv"}, **{"t.csv": table, "ok.txt": "ok\n"})
    assert found.judged() == ["contains-any#0 pass", "contains-any#0 fail", "equals#0 pass", "equals#0 fail"]


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ("trajectory:tool-used: x", "trajectory:tool-used"),
        ("not-trajectory:step-count(2): x", "not-trajectory:step-count"),
        ("similar:dot(0.3): x", "similar:dot"),
        ("human", "equals"),
        ("select-best: the shortest", "equals"),
        ("NOT-contains: x", "equals"),
        ("file:x.js", "equals"),
    ],
)
def test_a_cell_of_a_table_names_a_type_of_the_short_form(tmp_path, cell, kind):
    suite = load_suite(write(tmp_path, {**ECHO, "tests": "t.csv"}, **{"t.csv": f'q,__expected\na,"{cell}"\n'}))
    assert [spec.called for spec in suite.cases[0].evaluators] == [kind]


def test_columns_whose_names_begin_with_expected_are_expectations(tmp_path):
    table = "q,__expected1a,__expected two\na,contains: a,contains: b\n"
    found = run(tmp_path, {**ECHO, "tests": "t.csv"}, **{"t.csv": table})
    assert found.judged() == ["contains#0 pass", "contains#1 fail"]


def test_defaults_come_before_what_a_test_says(tmp_path):
    config = {
        **ECHO,
        "defaultTest": {"vars": {"q": "a", "p": "b"}, "assert": [{"type": "contains", "value": "{{q}}"}]},
        "tests": [
            {"vars": {"q": "own"}, "assert": [{"type": "equals", "value": "own"}]},
            {"options": {"disableDefaultAsserts": True}},
        ],
    }
    found = run(tmp_path, config)
    assert found.judged() == ["contains#0 pass", "equals#1 pass"]
    assert found.outputs == ["own", "a"]


def test_scenarios_come_after_tests_every_config_with_every_test(tmp_path):
    scenario = {"config": [{"vars": {"l": "fr"}}, {"vars": {"l": "de"}}], "tests": [{"vars": {"q": x}} for x in "ab"]}
    config = {"prompts": ["{{l}}{{q}}"], "providers": ["echo"], "tests": [{"vars": {"l": "it"}}]}
    found = run(tmp_path, {**config, "scenarios": [scenario]})
    assert found.outputs == ["it", "fra", "frb", "dea", "deb"]


def test_columns_of_expectations_are_assertions_each(tmp_path):
    table = (
        "q,__expected,__expected1,__expected2,__config:__expected1:threshold,__config:__expected2:threshold,"
        "__metadata:tags[]\n"
        'abc,contains: b,"javascript: 0.5", ,0.6,0.7,"x\\, y, z"\n'
        "abc,,,javascript: 0.6,0,0.7,\n"
    )
    found = run(tmp_path, {**ECHO, "tests": "rows.csv"}, **{"rows.csv": table})
    assert sorted(found.judged()) == ["contains#0 pass", "javascript#0 fail", "javascript#1 fail"]
    assert [case.metadata for case in load_suite(tmp_path / "promptfooconfig.yaml").cases] == [
        {"tags": ["x, y", "z"]},
        {},
    ]


def test_one_column_of_expectations_is_the_first(tmp_path):
    table = "q,__expected,__config:__expected1:threshold\na,javascript: 0.5,0.6\n"
    assert run(tmp_path, {**ECHO, "tests": "rows.csv"}, **{"rows.csv": table}).judged() == ["javascript#0 fail"]


def test_an_output_can_be_stored_for_later_tests(tmp_path):
    tests = [{"vars": {"q": "77"}, "options": {"storeOutputAs": "last"}}, {"vars": {"q": "was {{last}}"}}]
    assert run(tmp_path, {**ECHO, "tests": tests}).outputs == ["77", "was 77"]


@pytest.mark.parametrize("pattern", ["*.txt", "{a,b}.txt", "[ab].txt", "?.txt"])
def test_a_pattern_of_files_is_a_value_for_each_of_them(tmp_path, pattern):
    """promptfoo has the order of its walk through the folder, evalwright that of the names."""
    files = {"g/a.txt": "A\n", "g/b.txt": "B\n"}
    assert run(tmp_path, {**ECHO, "tests": [{"vars": {"q": f"file://g/{pattern}"}}]}, **files).outputs == ["A", "B"]


def test_a_stored_output_replaces_a_variable_of_its_name(tmp_path):
    tests = [{"vars": {"q": "77"}, "options": {"storeOutputAs": "last"}}, {"vars": {"q": "{{last}}", "last": "own"}}]
    assert run(tmp_path, {**ECHO, "tests": tests}).outputs == ["77", "77"]


def test_an_output_that_is_stored_is_no_variable_of_the_tests_behind_it(tmp_path):
    tests = [{"vars": {"q": "a"}, "options": {"storeOutputAs": "first"}}, {"vars": {"q": "{{first}}b"}}]
    assert run(tmp_path, {**ECHO, "tests": tests}, options={"output": tmp_path / "out.json"}).outputs == ["a", "ab"]
    rows = json.loads((tmp_path / "out.json").read_text())["results"]["results"]
    assert [row["vars"] for row in rows] == [{"q": "a"}, {"q": "{{first}}b"}]


def test_variables_that_a_transform_makes_are_in_the_result_file(tmp_path):
    test = {"vars": {"q": "a"}, "options": {"transformVars": "({...vars, q: vars.q + 1, extra: 2})"}}
    run(tmp_path, {**ECHO, "tests": [test]}, options={"output": tmp_path / "out.json"})
    [row] = json.loads((tmp_path / "out.json").read_text())["results"]["results"]
    assert row["vars"] == {"q": "a1", "extra": 2}


def test_variables_of_the_command_line_are_those_of_every_test(tmp_path):
    """As in promptfoo, those of a test itself take precedence; what is named as env is no variable of tests."""
    config = {
        "prompts": ["{{a}} {{b}} {{c}}{# {{env.HOME_TOWN}} #}"],
        "providers": ["echo"],
        "defaultTest": {"vars": {"a": "1", "b": "2"}},
        "tests": [{"vars": {"c": "3"}}, {"vars": {"a": "own"}}],
        "scenarios": [{"config": [{"vars": {"c": "4"}}], "tests": [{"description": "s"}]}],
    }
    given = {"a": "given", "c": "5", "HOME_TOWN": "Oslo"}
    suite = load_suite(write(tmp_path, config), variables=given)
    ran = Ran(run_suite(suite, RunOptions(out=tmp_path / "runs")))
    assert ran.outputs == ["given 2 3", "own 2 5", "given 2 4"]
    assert not any("HOME_TOWN" in case.input for case in suite.cases)
    assert not [warning for warning in suite.warnings if "'a'" in str(warning) or "'c'" in str(warning)]
    hidden = load_suite(write(tmp_path, config), variables={"API_KEY": "sk-0123456789abcdef"})
    assert "sk-0123456789abcdef" in hidden.secrets.values()
