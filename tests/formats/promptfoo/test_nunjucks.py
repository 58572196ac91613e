"""Filters of templates, as Nunjucks has them."""

from __future__ import annotations

import pytest

from evalwright.formats.promptfoo.faults import TemplateError
from evalwright.formats.promptfoo.templates import render


@pytest.mark.parametrize(
    ("template", "value", "text"),
    [
        ("{{ a|safe }}", True, "true"),
        ("{{ a|safe }}", None, ""),
        ("{{ a|escape }}", False, "false"),
        ("{{ a|e }}", "\"<'\\&", "&quot;&lt;&#39;&#92;&amp;"),
        ("{{ a|safe|escape }} {{ a|escape|escape }} {{ a|escape|forceescape }}", "<", "< &lt; &amp;lt;"),
        ("{{ a|safe ~ '<' }}", "<", "<<"),
        ("{{ a|upper }}{{ a|lower }}{{ a|title }}{{ a|capitalize }}", None, ""),
        ("{{ a|title }}", "rough sea-bed", "Rough Sea-bed"),
        ("{{ a|truncate(3) }}", False, ""),
        ("[{{ a|center(6) }}]", "abc", "[ abc  ]"),
        ("{{ a|center(6) }}", 5, "5"),
        ("{{ a|indent(2) }}", "x\n\ny", "x\n  \n  y"),
        ("{{ a|indent }}", None, ""),
        ("{{ a|striptags }}", " <b>x</b>\n <!-- y --> z", "x z"),
        ("{{ a|wordcount }}", "one two-three", "3"),
        ("{{ a|wordcount }}", "", ""),
        ("{{ a|nl2br }}", "x\r\ny", "x<br />\ny"),
        ("{{ a|replace('0', '1') }}", 100, "111"),
        ("{{ a|replace('a', 'b') }}", ["a"], "a"),
        ("{{ a|length }}", 12, ""),
        ("{{ a|length }}", None, "0"),
        ("{{ a|length }} {{ a.length }}", "🎉 party", "8 8"),
        ("{{ a|first }}{{ a|last }}", 12, ""),
        ("{{ a|first }}{{ a|last }}", [], ""),
        ("{{ a|first }}{{ a|last }}", "xyz", "xz"),
        ("{{ a|reverse }}{{ a|batch(2) }}", 12, ""),
        ("{{ a.charAt(1) }}{{ a.charAt(9) }}{{ a.at(-1) }}{{ a.at(9) }}{{ a.lastIndexOf('b') }}", "abcb", "bb3"),
        ("{{ a.padStart(5, 'xy') }} {{ a.padEnd(3, '.') }}", "ab", "xyxab ab."),
        ("{{ a.substring(3, 1) }} {{ a.substring(-2, 1) }} {{ a.substr(-2, 1) }}", "abcd", "bc a c"),
        ("{{ a.replaceAll('x', '-') }}{{ a.trimEnd() }}{{ a.concat(1) }}", "xax ", "-a- xaxxax 1"),
        ("{{ a.at(-1) }} {{ a.lastIndexOf(1) }} {{ a.slice(-2) }} {{ a.toString() }}", [1, 2, 1], "1 2 2,1 1,2,1"),
        ("{{ a.toString() }} {{ a.toFixed(2) }}", 2.5, "2.5 2.50"),
        ("{{ a.toFixed(0) }} {{ (-a).toFixed(0) }}", 2.5, "3 -3"),
        ("{{ a.toFixed(2) }} {{ a.toFixed(1) }}", 1.005, "1.00 1.0"),
        ("{{ a.toFixed(2) }}", 1e21, "1e+21"),
        ("{{ a.padStart(3, 0) }}{{ a.repeat('2') }}{{ a.replace('5', 1) }}{{ a.concat(none) }}", "5", "0055515null"),
        ("{{ a.indexOf('a', 2) }} {{ a.lastIndexOf('a', 2) }} {{ a.endsWith('n', 3) }}", "banana", "3 1 true"),
        ("{{ a.replace('n', '[$&]') }} {{ a.replaceAll('n', '$$') }}", "banana", "ba[n]ana ba$a$a"),
        ("{{ a.split() }} {{ a.split('a', 2) }} {{ a.includes('b', 1) }}", "banana", "banana b,n false"),
        ("{{ a.trim('b') }}{{ a.slice(-3, missing) }}{{ a.substring(none, 1) }}", "banana", "bananaanab"),
        ("{{ a.concat('xy', [3], 4) }} {{ a.indexOf(true) }} {{ a.includes('1') }}", [1, 2], "1,2,xy,3,4 -1 false"),
        ("{{ a.indexOf(1, 1) }} {{ a.lastIndexOf(1, -2) }} {{ a.join(0) }}", [1, 2, 1], "2 0 10201"),
        ("{{ a|abs }}", "-2.5", "2.5"),
        ("{{ a|abs }}", "w", "NaN"),
        ("{% for one in a|list %}{{ one.key }}={{ one.value }};{% endfor %}", {"k": 1}, "k=1;"),
        ("{% for i, one in a %}{{ i }}={{ one }};{% endfor %}", "xy", "0=x;1=y;"),
        ("{{ a + 1 }}", [1, 2], "1,21"),
        ("{{ -a }} {{ +a }}", "2", "-2 2"),
        ("{{ -a }}", "w", "NaN"),
        ("{{ a is number }} {{ a is even }}", True, "false false"),
        ("{{ a is odd }} {{ a is even }}", "w", "false false"),
        ("{{ a is odd }}", -1, "false"),
        ("{{ a is iterable }}", {"k": 1}, "false"),
        ("{{ a|slice(2)|join('-') }}", "hello", "hel-lo"),
        ("{{ a|sort }}", ["b", "C", "a"], "a,b,C"),
        ("{{ a|sort(true) }} {{ a|sort(false, true) }}", ["b", "C", "a"], "C,b,a C,a,b"),
        ("{{ a|sort(false, false, 'n')|dump }}", [{"n": 10}, {"n": "9"}], '[{"n":"9"},{"n":10}]'),
        ("{{ a|sort }}", "cab", "a,b,c"),
        (
            "{{ a|groupby('k')|dump }}",
            [{"k": 1}, {}, {"k": None}, 5],
            '{"1":[{"k":1}],"undefined":[{},5],"null":[{"k":null}]}',
        ),
        ("{{ a|groupby('k')|dump }}", "xy", '{"undefined":["x","y"]}'),
        ("{{ a|selectattr('k')|dump }} {{ a|sum('k') }}", [{"k": 1}, {}, "x"], '[{"k":1}] NaN'),
        ("{{ a|sort }}", [10, "9", 1.5], "1.5,9,10"),
        ("[{{ a|sort }}]", {"k": 1}, "[]"),
        ("[{{ a|sort }}]", False, "[]"),
    ],
)
def test_filters_read_values_as_in_nunjucks(template, value, text):
    assert render(template, {"a": value}) == text


@pytest.mark.parametrize(
    ("filter_name", "value"),
    [("upper", 5), ("lower", True), ("trim", 5), ("trim", None), ("title", ["a"]), ("striptags", 5), ("nl2br", False),
     ("indent", 1), ("truncate", 5), ("wordcount", 5), ("first", None), ("last", None), ("list", 5),
     ("batch(2)", None), ("string", None)],
)  # fmt: skip
def test_filters_reject_what_is_no_text_or_list(filter_name, value):
    with pytest.raises(TemplateError, match="template: "):
        render(f"{{{{ a|{filter_name} }}}}", {"a": value})


@pytest.mark.parametrize("values", [{}, {"a": None}])
def test_nothing_can_be_looked_for_in_what_is_missing(values):
    assert render("{{ 'x' in a }}", {"a": "xyz"}) == "true"
    with pytest.raises(TemplateError):
        render("{% if 'x' in a %}yes{% endif %}", values)


@pytest.mark.parametrize(
    ("call", "value", "reason"),
    [
        ("repeat(-1)", "x", "repeated -1 times"),
        ("repeat(1000000000)", "x", "repeated 1000000000 times"),
        ("padEnd(1000000000)", "x", "repeated 999999999 times"),
        ("toFixed(101)", 5, "expected 0 to 100 digits, found 101"),
        ("toString(16)", 5, "expected base 10, found 16"),
    ],
)
def test_members_say_what_they_cannot_do(call, value, reason):
    with pytest.raises(TemplateError, match=reason):
        render(f"{{{{ a.{call} }}}}", {"a": value})
