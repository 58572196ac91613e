"""Regular expressions of JavaScript: what Node 24 said of each pair of an expression and a text."""

from __future__ import annotations

import pytest

from evalwright.errors import EvaluatorError
from evalwright.formats.shared.javascript.characters import InvalidPattern
from evalwright.formats.shared.javascript.patterns import pattern_of
from evalwright.formats.shared.javascript.regular_expressions import InvalidFlags
from formats.promptfoo.runs import asserted

_FOUND = (
    (r"a\Z", "aZ"), (r"\Aa", "Aa"), ("o{,3}", "o{,3}"), (r"\N{DASH}", "N{DASH}"), (r"[\w-.]+@[\w-.]+", "a-b@c.d"),
    (r"^[a-\d]+$", "-a5"), ("(?<=a|bc)d", "bcd"), (r"(?<n>a)\k<n>", "aa"), (r"\k", "k"), (r"\k<n>(a)", "k<n>a"),
    (r"\h", "h"), (r"\cA", "\x01"), (r"\c", r"\c"), (r"[\c1]", "\x11"), (r"^\u{3}$", "uuu"), (r"\u{61}", "u" * 61),
    (r"\x4", "x4"), (r"\8", "8"), (r"\12", "\n"), (r"(a)\1", "aa"), (r"(['\"]).*?\1", 'x "y" z'), (r"\p{L}", "p{L}"),
    (r"^\s$", "\ufeff"), ("^..$", "😀"), ("[^]", "\n"), ("a{", "a{"), ("}", "]}"), ("]", "[]"), ("(?=a)*b", "b"),
    (r"\B", ""), (r"[\b]", "\b"), (r"^(?:(?=(\w))\1)+$", "ab"), ("[[a]", "["),
)  # fmt: skip
_NOT_FOUND = (
    ("o{,3}", "ooo"), (r"\bÄ", "Ä"), (r"Ä\b", "Ä"), ("(?<!a|bc)d", "bcd"), (r"\u{61}", "a"), (r"\p{L}", "é"),
    (r"^\d+$", "12\n"), (r"^\d+$", "٣"), (r"^\w+$", "é"), (r"^\s$", "\x1c"), ("^.$", "\u2028"), ("^.$", "😀"),
    ("[]", "a"),
)  # fmt: skip
_INVALID = (
    "(?i)hello", "(?s)a.b", "(?P<n>a)", "(?#c)a", "(?>a)b", "a++b", "a*+b", "[z-a]", "a{2,1}", "{2}", "(?<=a)*b",
    "(?:a", "a)", "(?<1>a)", "*", "\\", "a|*",
)  # fmt: skip
_FOUND_WITH_U = (
    ("^.$", "😀"), (r"^\u{1F600}$", "😀"), (r"^\ud83d\ude00$", "😀"), (r"[\-a]", "-"), ("^[^a]$", "😀"), (r"\/", "/"),
)  # fmt: skip
_INVALID_WITH_U = (
    r"\-", r"[\w-.]", "}", "a{", r"\h", r"\1", "(?=a)*", r"\c", r"\x4", r"\_", r"\u{110000}", r"\00", "(?i)a",
)  # fmt: skip
_FOR_NODE = (r"(?<=a+)b", "(?<n>a)|(?<n>b)", r"\1(a)", r"(a)?\1b", r"(a)|b\1", r"(?i:A)")


@pytest.mark.parametrize("flags", ["", "u"])
def test_what_is_found_is_what_node_finds(flags):
    for expression, text in _FOUND_WITH_U if flags else _FOUND:
        assert pattern_of(expression, flags).found_in(text), expression
    for expression, text in [(r"^\d+$", "12\n"), (r"^\d$", "٣")] if flags else _NOT_FOUND:
        assert not pattern_of(expression, flags).found_in(text), expression
    for expression in _INVALID_WITH_U if flags else _INVALID:
        with pytest.raises(InvalidPattern):
            pattern_of(expression, flags)


@pytest.mark.parametrize(
    ("flags", "expression", "text", "found"),
    [
        ("i", "hello$", "HELLO", True), ("i", "k", "\u212a", False), ("i", "[^a]", "A", False),
        ("i", "[Z-a]", "z", True),
        ("i", r"^\W$", "ſ", True), ("i", r"^\S$", "A", True), ("i", "^[^b]$", "É", True), ("i", "5 €", "5 €", True),
        ("m", "^b$", "a\nb\nc", True), ("m", "^b$", "a\u2028b\rc", True), ("m", "a$", "ab", False),
        ("m", "^a", "ba", False), ("m", r"\d$", "4\n2x", True), ("", "^b$", "a\nb", False),
        ("s", "^a.b$", "a\nb", True), ("", "^a.b$", "a\nb", False), ("s", "b$", "b\n", False),
        ("gd", "^b", "b", True), ("ims", "^B.C$", "a\nb\nc", True),
    ],
)  # fmt: skip
def test_flags_mean_what_they_mean_to_node(flags, expression, text, found):
    pattern = pattern_of(expression, flags)
    assert (pattern.beyond, pattern.found_in(text)) == ("", found)


@pytest.mark.parametrize(
    ("flags", "expression", "text", "found"),
    [
        ("i", "é", "É", True), ("i", "[à-é]", "É", True), ("i", "(É)\\1", "éÉ", True), ("iu", "k", "\u212a", True),
        ("y", "b", "ab", False), ("v", r"^[\w--a]$", "b", True), ("v", r"^[\w--a]$", "a", False),
    ],
)  # fmt: skip
def test_flags_that_python_has_not_are_left_to_node(flags, expression, text, found):
    pattern = pattern_of(expression, flags)
    assert (bool(pattern.beyond), pattern.found_in(text)) == (True, found)


@pytest.mark.parametrize("flags", ["z", "x i", "ii", "uv", "I"])
def test_flags_that_javascript_has_not_are_invalid(flags):
    with pytest.raises(InvalidFlags, match="invalid flags"):
        pattern_of("a", flags)


def test_what_python_cannot_do_alike_is_left_to_node(tmp_path, monkeypatch):
    assert all(pattern_of(expression).beyond for expression in _FOR_NODE)
    given = [{"type": "regex", "value": value} for value in [*_FOR_NODE, "^(?<n>c)|(?<n>d)$", "(?<n>a)(?<n>b)"]]
    schemas = [{"type": "is-json", "value": {"pattern": pattern}} for pattern in (r"^\p{L}+$", r"^\p{Lu}+$", r"\p{X}")]
    result = asserted(tmp_path, '"aab"', *given, {"type": "not-regex", "value": "(?<=b+)a"}, *schemas)
    expected = "pass pass pass pass pass pass fail fail pass pass fail error"
    assert [row.status for row in result.rows] == expected.split()
    monkeypatch.setattr("evalwright.sandbox.workers._node", lambda: None)
    with pytest.raises(EvaluatorError, match=r"the pattern '\(\?<=a\+\)b' is not one for Python .*needs node"):
        pattern_of("(?<=a+)b").found_in("aab")


def test_a_search_is_stopped_in_python_and_in_node(monkeypatch):
    monkeypatch.setattr("evalwright.sandbox.patterns.SEARCH_LIMIT", 0.05)
    monkeypatch.setattr("evalwright.formats.shared.javascript.patterns._WAITED", 0.5)
    for expression in (r"^(\w+)+$", r"^(a+)+(?<=a*)$"):
        with pytest.raises(EvaluatorError) as stopped:
            pattern_of(expression).found_in("a" * 40 + "!")
        assert stopped.value.type == "timeout"
