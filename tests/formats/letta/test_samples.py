"""Datasets of Letta suites: what is read, what is refused and where."""

import csv
import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.errors import InputError
from evalwright.formats.letta.samples import Samples, Selection


def read(path, **selection):
    return list(Samples(path, path.parent, Selection(**selection)))


def written(tmp_path, text, name="d.jsonl"):
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def problems(path, **selection):
    with pytest.raises(InputError) as raised:
        read(path, **selection)
    return [(problem.line, problem.key) for problem in raised.value.problems]


def test_lines_become_cases_with_everything_they_bring(tmp_path):
    line = {"id": 7, "input": ["a", "b"], "ground_truth": ["x", "y"], "tags": ["t"], "agent_args": {"k": 1}, "more": 2}
    (case,) = read(written(tmp_path, "\ufeff" + json.dumps(line) + "\r\n\r\n"))
    assert (case.id, case.input, case.tags) == ("7", ["a", "b"], ["t"])
    assert case.extra == {"ground_truth": ["x", "y"], "agent_args": {"k": 1}, "id": 7, "unknown": {"more": 2}}


def test_samples_without_an_id_have_their_place_in_the_file(tmp_path):
    path = written(tmp_path, '{"input": "a"}\n{"input": "b", "tags": ["t"]}\n')
    assert [case.id for case in read(path, tags=["t"])] == ["1"]


def test_the_limit_counts_after_the_tags(tmp_path):
    lines = [json.dumps({"input": str(i), "tags": ["odd"] if i % 2 else []}) for i in range(6)]
    assert [case.id for case in read(written(tmp_path, "\n".join(lines)), tags=["odd"], limit=2)] == ["1", "3"]


def test_blank_lines_before_the_header_are_skipped_like_others(tmp_path):
    (case,) = read(written(tmp_path, "\n\r\ninput,ground_truth\n\nq,x\n", "d.csv"))
    assert (case.id, case.input, case.extra["ground_truth"]) == ("0", "q", "x")


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("{", ""),
        ("[]", ""),
        ("{}", "input"),
        ('{"input": 1}', "input"),
        ('{"input": []}', "input"),
        ('{"input": ["a", 1]}', "input"),
        ('{"input": "a", "ground_truth": 1}', "ground_truth"),
        ('{"input": "a", "ground_truth": ["b"]}', "ground_truth"),
        ('{"input": ["a"], "ground_truth": ["b", "c"]}', "ground_truth"),
        ('{"input": "a", "agent_args": []}', "agent_args"),
        ('{"input": "a", "rubric_vars": "x"}', "rubric_vars"),
        ('{"input": "a", "metadata": []}', "metadata"),
        ('{"input": "a", "tags": "t"}', "tags"),
        ('{"input": "a", "tags": [1]}', "tags"),
        ('{"input": "a", "id": true}', "id"),
        ('{"input": "a", "rubric": "x", "rubric_path": "y"}', "rubric"),
        ('{"input": "a", "rubric_path": "gone.txt"}', "rubric_path"),
        ('{"input": "a", "rubric_vars": {"input": 1}}', "rubric_vars"),
        ('{"input": "again", "id": "ok"}', "id"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path, line, key):
    path = written(tmp_path, '{"input": "fine", "id": "ok"}\n\n' + line + "\n")
    assert problems(path) == [(3, key)]


def test_all_mistakes_of_a_table_are_told_at_once(tmp_path):
    text = 'input,tags,agent_args\n"two\nlines",[],\n,[],\nb,nope,{\n[,,[1]\n[],,\n'
    assert problems(written(tmp_path, text, "d.csv")) == [
        (4, "input"),
        (5, "tags"),
        (5, "agent_args"),
        (6, "agent_args"),
        (7, "input"),
    ]


def test_an_id_that_comes_again_is_told_beside_another_mistake_of_its_line(tmp_path):
    text = '{"id": 1, "input": "a"}\n{"id": 1, "input": 5}\n{"id": true, "input": "b"}\n{"id": 2, "input": "c"}\n'
    assert problems(written(tmp_path, text)) == [(2, "input"), (2, "id"), (3, "id")]


def test_a_file_is_named_from_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as raised:
        read(written(tmp_path, "{\n"))
    assert [problem.file for problem in raised.value.problems] == ["d.jsonl"]


@pytest.mark.parametrize("text", ["", "input\n", "question\nx\n", 'input\n"unclosed\n', "input\na,b\n"])
def test_tables_that_cannot_be_used_are_refused(tmp_path, text):
    assert problems(written(tmp_path, text, "d.csv"))


def test_a_column_that_is_there_twice_is_refused_if_it_means_something(tmp_path):
    with pytest.raises(InputError, match=r"'input' occurs more than once[^']*'tags' occurs more than once"):
        read(written(tmp_path, "input,tags,input,tags\na,,b,\n", "d.csv"))
    (case,) = read(written(tmp_path, "note,input,note\nx,a,y\n", "d.csv"))
    assert case.input == "a"


def test_variables_that_graders_need_must_be_there(tmp_path):
    path = written(tmp_path, '{"input": "a", "rubric_vars": {"x": 1}}\n{"input": "b"}\n')
    assert problems(path, declared={"g": ["x"]}) == [(2, "rubric_vars")]


def test_an_empty_dataset_is_a_mistake_unless_allowed(tmp_path):
    path = written(tmp_path, "\n")
    assert problems(path) == [(None, "")]
    assert read(path, allow_empty=True) == []


TEXTS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5))
def test_cells_are_text_as_it_stands_but_for_space_around(tmp_path_factory, rows):
    rows = [(a, b) for a, b in rows if a.strip() and b.strip() and a.strip()[0] != "[" and b.strip()[0] != "["]
    text = io.StringIO(newline="")
    csv.writer(text).writerows([("input", "ground_truth"), *rows])
    path = tmp_path_factory.mktemp("d") / "d.csv"
    path.write_bytes(text.getvalue().encode())
    cases = read(path, allow_empty=True)
    assert [(c.input, c.extra["ground_truth"]) for c in cases] == [(a.strip(), b.strip()) for a, b in rows]


def test_three_mistakes_of_a_table_are_told_at_once(tmp_path):
    text = 'input,tags,rubric_vars\n"two\nlines",,\nx,[1],\ny,,{\n"two\nmore",nope,\nz,,\n'
    assert problems(written(tmp_path, text, "d.csv")) == [(4, "tags"), (5, "rubric_vars"), (6, "tags")]


ENDS = st.sampled_from(["\n", "\r\n", "\r"])
RECORDS = st.sampled_from(
    [
        ("", None),
        ("a,", None),
        ('"a","[]"', None),
        ('"two\nlines",', None),
        ('"two\r\nlines, ""quoted""","[""t""]"', None),
        ('"two\rlines\n\n\n",', None),
        (",", "input"),
        ('" \n",""', "input"),
        ("[a],", "input"),
        ('"[1,\n2]",', "input"),
        ("a,nope", "tags"),
        ('"two\nlines","{"', "tags"),
        ("b,[1]", "tags"),
        ('a,b,"c\nd"', ""),
    ]
)
"""Records of a table with the columns input and tags, and of what a mistake in them is told."""


@given(st.lists(st.tuples(RECORDS, ENDS), max_size=12), ENDS, st.booleans())
def test_mistakes_of_a_table_are_told_with_the_lines_where_their_records_begin(tmp_path_factory, rows, end, marked):
    text, expected = "\ufeff" * marked + "input,tags" + end, []
    for (record, mistake), ending in rows:
        if mistake is not None:
            expected.append((len(re.split("\r\n|\r|\n", text)), mistake))
        text += record + ending
    path = written(tmp_path_factory.mktemp("d"), text, "d.csv")
    listed = problems(path) if expected else read(path, allow_empty=True) and []
    assert listed == expected


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"input\nfine\n\xc3\n\xff\n", 3),
        (b'input\nfine\n"never closed\nand so on\n', 3),
        (b'input\nfine\n"closed"too early\n', 3),
    ],
)
def test_what_is_no_table_is_one_mistake(tmp_path, content, line):
    path = tmp_path / "d.csv"
    path.write_bytes(content)
    assert problems(path) == [(line, "")]


def test_cells_have_no_greatest_size(tmp_path):
    limit = csv.field_size_limit()  # the process's, and not ours to change
    (case,) = read(written(tmp_path, "input\n" + "x" * 10_000_000 + "\n", "d.csv"))
    assert csv.field_size_limit() == limit < 10_000_000
    assert len(case.input) == 10_000_000


def test_ids_that_come_again_name_both_lines(tmp_path):
    path = written(tmp_path, '{"input": "a", "id": 5}\n\n{"input": "b", "id": "5"}\n{"input": "c", "id": 5}\n')
    with pytest.raises(InputError) as raised:
        read(path)
    said = [(problem.line, problem.message.rpartition(", ")[2]) for problem in raised.value.problems]
    assert said == [(3, "first on line 1"), (4, "first on line 1")]


def test_what_pythons_json_knows_is_read(tmp_path):
    (case,) = read(
        written(tmp_path, '{"input": "a", "metadata": {"x": Infinity, "y": 123456789012345678901234567890}}\n')
    )
    assert case.metadata == {"x": float("inf"), "y": 123456789012345678901234567890}


def test_depth_without_end_is_a_mistake(tmp_path):
    deep = "[" * 100_000 + "]" * 100_000
    assert problems(written(tmp_path, f'{{"input": "a", "metadata": {deep}}}\n')) == [(1, "")]


def test_of_very_many_mistakes_the_first_are_told_and_all_are_counted(tmp_path):
    path = written(tmp_path, "no\n" * 1000)
    with pytest.raises(InputError, match=r"and 900 more problems$") as raised:
        read(path)
    assert raised.value.count == 1000
