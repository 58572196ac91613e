from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml as pyyaml
from hypothesis import example, given, reject
from hypothesis import strategies as st

from evalwright.errors import InputError, Problem
from evalwright.files import yaml
from evalwright.files.yaml_nodes import Flavour

FLAVOURS: tuple[Flavour, ...] = ("true_false", "yaml11", "yaml12")


def value_of(text: str, flavour: Flavour = "true_false") -> Any:
    return yaml.parse(text.encode(), "x.yaml", flavour).value


def problems_of(data: str | bytes, flavour: Flavour = "true_false") -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        yaml.parse(data if isinstance(data, bytes) else data.encode(), "x.yaml", flavour)
    return caught.value.problems


@pytest.mark.parametrize("word", ["on", "off", "yes", "no", "On", "YES", "y", "n"])
def test_native_words_stay_words(word: str) -> None:
    assert value_of(f"[{word}]") == [word]


@pytest.mark.parametrize(("word", "meaning"), [("true", True), ("True", True), ("FALSE", False)])
def test_native_booleans_are_true_and_false_in_three_forms(word: str, meaning: bool) -> None:
    assert value_of(f"[{word}]") == [meaning]


@pytest.mark.parametrize("text", ["[tRUE]", "[trueish]", "['true']", "[=]"])
def test_what_only_looks_like_a_native_value_is_text(text: str) -> None:
    assert isinstance(value_of(text)[0], str)


def test_yaml11_has_more_booleans_and_dates() -> None:
    assert value_of("[yes, off, 2026-05-01]", "yaml11") == [True, False, date(2026, 5, 1)]


def test_nothing_at_all_is_none() -> None:
    assert [value_of(text) for text in ("", "# only a comment\n", "---\n")] == [None, None, None]


def test_lines_are_known_by_key_path() -> None:
    document = yaml.parse(b"a: 1\nlist:\n  - x: 1\n  - x: 2\n    y:\n      z: 3\n", "x.yaml", "true_false")
    places: list[tuple[str | int, ...]] = [(), ("a",), ("list",), ("list", 1), ("list", 1, "x"), ("list", 1, "y", "z")]
    assert [document.line(place) for place in places] == [1, 1, 2, 4, 4, 6]


def test_what_is_missing_has_the_line_of_what_it_is_missing_from() -> None:
    document = yaml.parse(b"a: 1\nb:\n  c: 1\n", "x.yaml", "true_false")
    assert document.line(("b", "d", "e")) == 2


def test_a_document_without_content_has_no_lines() -> None:
    assert yaml.parse(b"", "x.yaml", "true_false").line(("a",)) is None


def test_duplicate_keys_are_all_told_with_both_lines() -> None:
    problems = problems_of("a: 1\nb: 2\na: 3\nc: {d: 1, d: 2}\n")
    assert [(p.line, p.message) for p in problems] == [
        (3, "duplicate key 'a', first on line 1"),
        (4, "duplicate key 'd', first on line 4"),
    ]


def test_keys_of_equal_value_are_duplicates() -> None:
    problems = problems_of("1: a\n'1': b\n1.0: c\ntrue: d\nnull: e\n~: f\n")
    assert [(p.line, p.message) for p in problems] == [
        (3, "duplicate key '1.0', first as '1' on line 1"),
        (4, "duplicate key 'true', first as '1' on line 1"),
        (6, "duplicate key '~', first as 'null' on line 5"),
    ]


def test_a_hundred_duplicate_keys_are_listed() -> None:
    assert len(problems_of("a: 1\n" * 100)) == 99
    assert str(problems_of("a: 1\n" * 150)[-1]) == "x.yaml  and 49 more problems"


def test_a_key_that_is_a_list_hides_no_duplicate() -> None:
    problems = problems_of("a: 1\n? [b]\n: 2\na: 3\n")
    assert (4, "duplicate key 'a', first on line 1") in [(p.line, p.message) for p in problems]


def test_keys_that_are_lists_are_no_duplicates_of_each_other() -> None:
    problems = problems_of("? [a]\n: 1\n? [b]\n: 2\n")
    assert [problem.message for problem in problems if "duplicate" in problem.message] == []


def test_every_scalar_that_is_not_what_it_looks_like_is_told() -> None:
    problems = problems_of("a: 2026-13-01\nb: {c: !!int x, c: 1}\nd: 2026-13-01\n")
    assert [(p.line, p.message.partition("'")[2]) for p in problems] == [
        (1, "2026-13-01' is not a valid timestamp (line 1)"),
        (2, "x' is not a valid int (line 2)"),
        (2, "c', first on line 2"),
        (3, "2026-13-01' is not a valid timestamp (line 3)"),
    ]


def test_the_line_of_an_aliased_part_is_that_of_its_anchor() -> None:
    document = yaml.parse(b"a: &a\n  x: 1\nb: *a\nc: [1,\n *a]\n", "x.yaml", "true_false")
    assert [document.line(place) for place in (("b",), ("b", "x"), ("c", 1), ("c", 1, "x"))] == [3, 2, 1, 2]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", None),
        ("~", {}),
        ("[]", {}),
        ("{}", None),
        ("a: 1\nb: [x]\nc: {d: e}\n~: x\n", {"a": "1", "b": [], "c": {}, "~": "x"}),
    ],
)
def test_the_top_level_of_a_file_has_texts_and_empty_collections(tmp_path: Path, text: str, found: Any) -> None:
    (tmp_path / "x.yaml").write_text(text)
    assert yaml.top_level(tmp_path / "x.yaml") == found


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_file_whose_top_level_was_looked_at_is_read_as_ever(tmp_path: Path, flavour: Flavour) -> None:
    data = b"a: [on, 010, 2026-05-01, ~]\n"
    (tmp_path / "x.yaml").write_bytes(data)
    yaml.top_level(tmp_path / "x.yaml")
    assert yaml.load(tmp_path / "x.yaml", flavour).value == yaml.parse(data, "x.yaml", flavour).value


def test_a_merged_key_may_be_overridden() -> None:
    assert value_of("a: &a {x: 1, y: 1}\nb:\n  <<: *a\n  y: 2\n")["b"] == {"x": 1, "y": 2}


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ("a: 1\nb: [1\nc: 2\n", 3),
        ("a: 1\n\tb: 2\n", 2),
        ("a: 1\n---\nb: 1\n", 2),
        ("a: 1\nb: !!python/object/apply:os.system [echo]\n", 2),
        ("a: 1\nb: !mine x\n", 2),
        ("a: 1\nb: 2026-13-45\n", 2),
        ("a: 1\nb: *nowhere\n", 2),
        (b"a: 1\nb: \xff\n", 2),
        (b"a: 1\nb: \x00\n", 2),
        ("a: 1\nb: " + "1" * 5000, 2),
        ("a: 1\n? [b]\n: 1\n", 2),
    ],
)
def test_what_is_no_yaml_is_told_with_its_line(data: str | bytes, line: int) -> None:
    (problem,) = problems_of(data)
    assert (problem.line, f"line {line}" in problem.message) == (line, True)


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize(
    "data",
    ["[" * 100_000, "- " * 100_000, "{a: " * 100_000, "? " * 100_000, "[" * 100_000 + "]" * 100_000],
)
def test_deep_nesting_is_refused(data: str, flavour: Flavour) -> None:
    assert "nested deeper" in problems_of(data, flavour)[0].message


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_hundred_levels_are_read(flavour: Flavour) -> None:
    assert yaml.parse(b"[" * 100 + b"]" * 100, "x.yaml", flavour)
    assert yaml.parse(b"{a: " * 100 + b"1" + b"}" * 100, "x.yaml", flavour)
    assert "nested deeper" in problems_of("{a: " * 101 + "1" + "}" * 101, flavour)[0].message
    assert "nested deeper" in problems_of("[" * 102 + "]" * 102, flavour)[0].message


def test_what_is_nested_too_deeply_cannot_be_written() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(InputError, match="nested too deeply"):
        yaml.dump(deep)


def test_letters_of_all_languages_are_written_as_they_are() -> None:
    assert yaml.dump({"ä": "日本"}) == "ä: 日本\n"


def test_aliases_that_stand_for_billions_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 10)]
    assert "aliases stand for" in problems_of("\n".join(lines))[0].message


def test_an_alias_stands_for_all_values_that_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here for 3 lists of 4 values and their text (15), and for two lists of them (2 x 16)."""
    data = "a: &a [x, x, x, x]\nb: &b [*a, *a, *a]\nc: [*b, *b]"
    monkeypatch.setattr("evalwright.files.yaml._MAX_ALIASED", 3 * 5 + 2 * 16)
    assert value_of(data)["c"] == [[["x"] * 4] * 3] * 2
    monkeypatch.setattr("evalwright.files.yaml._MAX_ALIASED", 3 * 5 + 2 * 16 - 1)
    assert "more than 46 values" in problems_of(data)[0].message
    keys = "a: &a {k: v, l: w}\nb: [*a, *a]"  # a mapping is its keys, its values and itself
    monkeypatch.setattr("evalwright.files.yaml._MAX_ALIASED", 2 * 5)
    assert value_of(keys)["b"] == [{"k": "v", "l": "w"}] * 2
    monkeypatch.setattr("evalwright.files.yaml._MAX_ALIASED", 2 * 5 - 1)
    assert "more than 9 values" in problems_of(keys)[0].message


def test_merges_that_stand_for_billions_are_refused() -> None:
    lines = ["a0: &a0 {k: v}"]
    lines += [f"a{i}: &a{i}\n  <<: [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    assert "aliases stand for" in problems_of("\n".join(lines))[0].message


@pytest.mark.parametrize("data", ["a: &a [*a]", "&a {b: {c: *a}}", "a: &a\n  <<: *a\n"])
def test_a_part_that_contains_itself_is_refused(data: str) -> None:
    assert "alias of a part" in problems_of(data)[0].message


def test_many_values_without_aliases_are_no_bomb() -> None:
    assert len(value_of("[" + "1, " * 20_000 + "]")) == 20_000


@pytest.mark.parametrize("name", ["missing.yaml", "", "a" * 5000, "nul\0byte"])
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"cannot be read|does not exist"):
        yaml.load(tmp_path / name)


PARTS = st.sampled_from(
    ["a", "b: ", "- ", "\n", "  ", "[", "]", "{", "}", "&a ", "*a", "<<: ", "'", '"', "|", ">", "? ", ": ", "!!int ",
     "1:", "2026-", "0x", "~", "#", ",", "\t", "---\n", "%YAML 1.1\n", "!!binary ", "!!set ", "!!omap "]
)  # fmt: skip


@given(data=st.binary() | st.lists(PARTS).map(lambda parts: "".join(parts).encode()), flavour=st.sampled_from(FLAVOURS))
def test_any_bytes_are_a_document_or_refused(data: bytes, flavour: Flavour) -> None:
    problems: tuple[Problem, ...] = ()
    try:
        yaml.parse(data, "x.yaml", flavour).line(("a", 0))
    except InputError as error:
        problems = error.problems
    assert all(problem.file == "x.yaml" and problem.message for problem in problems)


@given(st.lists(PARTS).map("".join))
@example("a: &x {b: 1}\nc: {<<: *x, d: &y [~, 0x1F]}\ne: !!set {1, yes}\nf: [*y, !!str 1, 2026-05-01, 1:30]\n")
def test_yaml_11_is_read_as_pyyaml_reads_it(text: str) -> None:
    try:
        value = value_of(text, "yaml11")
    except InputError:
        reject()
    assert repr(value) == repr(pyyaml.load(text, pyyaml.CSafeLoader))


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)


@given(PLAIN)
def test_what_is_dumped_is_read_back(value: Any) -> None:
    assert value_of(yaml.dump(value), "yaml11") == value


@pytest.mark.parametrize("text", ["yes", "on", "1", "1:30", "~", "2026-05-01", "a\u2028b", "a\x85b", "\0", "=", "<<"])
def test_text_that_looks_like_something_else_is_read_back_by_every_flavour(text: str) -> None:
    assert [value_of(yaml.dump([text]), flavour) for flavour in FLAVOURS] == [[text]] * 3


def test_half_a_character_is_replaced_visibly() -> None:
    assert value_of(yaml.dump({"a\ud800": "b\udfff"})) == {"a\ufffd": "b\ufffd"}


def test_keys_keep_their_order_and_repeated_parts_are_written_out() -> None:
    part = {"z": 1, "a": 2}
    assert yaml.dump({"y": part, "b": part}) == "y:\n  z: 1\n  a: 2\nb:\n  z: 1\n  a: 2\n"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("off", "off"),
        ("True", True),
        ("2024-01-01", "2024-01-01"),
        ("12:30", "12:30"),
        ("010", 10),
        ("1_000", "1_000"),
        ("0x1F", 31),
        ("0o17", 15),
        ("-3", -3),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("~", None),
        ("", None),
        ("NULL", None),
        ('"1"', "1"),
        ("-.inf", float("-inf")),
    ],
)
def test_the_core_schema_of_yaml_12(text, value):
    read = yaml.parse(f"key: {text}\n".encode(), "f", "yaml12").value["key"]
    assert (type(read), read) == (type(value), value)


def test_merge_keys_work_in_every_flavour():
    text = b"a: &a {x: 1}\nb: {<<: *a, y: 2}\n"
    assert [yaml.parse(text, "f", flavour).value["b"] for flavour in FLAVOURS] == [{"x": 1, "y": 2}] * 3
