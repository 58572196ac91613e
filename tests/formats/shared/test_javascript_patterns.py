"""Regular expressions of JavaScript: what Node 24 said of each pair of an expression and a text."""

from __future__ import annotations

import pytest

from evalwright.errors import EvaluatorError
from evalwright.formats.shared.javascript.characters import InvalidPattern
from evalwright.formats.shared.javascript.patterns import pattern_of
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


@pytest.mark.parametrize("unicode", [False, True])
def test_what_is_found_is_what_node_finds(unicode):
    for expression, text in _FOUND_WITH_U if unicode else _FOUND:
        assert pattern_of(expression, unicode=unicode).found_in(text), expression
    for expression, text in [(r"^\d+$", "12\n"), (r"^\d$", "٣")] if unicode else _NOT_FOUND:
        assert not pattern_of(expression, unicode=unicode).found_in(text), expression
    for expression in _INVALID_WITH_U if unicode else _INVALID:
        with pytest.raises(InvalidPattern):
            pattern_of(expression, unicode=unicode)


def test_what_python_cannot_do_alike_is_left_to_node(tmp_path, monkeypatch):
    assert all(pattern_of(expression).beyond for expression in _FOR_NODE)
    given = [{"type": "regex", "value": value} for value in [*_FOR_NODE, "^(?<n>c)|(?<n>d)$", "(?<n>a)(?<n>b)"]]
    schemas = [{"type": "is-json", "value": {"pattern": pattern}} for pattern in (r"^\p{L}+$", r"^\p{Lu}+$", r"\p{X}")]
    found = asserted(tmp_path, '"aab"', *given, {"type": "not-regex", "value": "(?<=b+)a"}, *schemas)
    expected = "pass pass pass pass pass pass fail fail pass pass fail error"
    assert [row.status for row in found.rows] == expected.split()
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
