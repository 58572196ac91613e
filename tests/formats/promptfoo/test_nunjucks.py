"""Filters of templates, as Nunjucks has them."""

from __future__ import annotations

import subprocess
import sys

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
        ("{{ a|sort(attribute='k.n')|dump }}", [{"k": {"n": 2}}, {"k": {"n": 1}}], '[{"k":{"n":1}},{"k":{"n":2}}]'),
        ("{{ a|sum('k', 10) }} {{ a|join('-', 'k') }}", [{"k": 1}, {"k": 2}], "13 1-2"),
        ("{{ a|select|dump }} {{ a|reject('even') }} {{ [a|select] }}", [0, 1, "", 3], "[1,3] 1,3 1,3"),
        ("{{ a|int(0, 16) }} {{ a|int(9, 2) }}", "1fx", "31 1"),
        ("{% if a|int %}x{% else %}NaN{% endif %}{{ a|abs|default('-', true) }}", "w", "NaN-"),
        ("{{ (a|load).b[1] }} {{ a|dump('--') }}", '{"b": [1, 2]}', '2 "{\\"b\\": [1, 2]}"'),
        ("{{ a|dump('--') }}", {"k": 1}, '{\n--"k": 1\n}'),
        ("{{ a|dictsort|dump }}", {"b": 1, "C": 2, "a": 3}, '[["a",3],["b",1],["C",2]]'),
        ("{{ a|urlize }}", '"see" www.x.y.', '"see" <a href="http://www.x.y">www.x.y</a>'),
        ("{{ a|urlize }}", "b@c.de http://x", '<a href="mailto:b@c.de">b@c.de</a> <a href="http://x">http://x</a>'),
        ("{{ a|dump }} {{ a[1] }}", {"x": 1, "2": 2, "1": 3}, '{"1":3,"2":2,"x":1} 3'),
        ("{{ a|replace(none, 'x') }}{{ a|replace('b', none) }}", "ab", "abanull"),
        ("{{ a|round }}", None, "0"),
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
        ("toString(37)", 5, "expected a base from 2 to 36, found 37"),
        ("toPrecision(0)", 5, "expected 1 to 100 digits, found 0"),
        ("flatMap(1)", [5], "a list has no 'flatMap'"),
        ("items()", {"k": 1}, "a mapping has no 'items'"),
        ("sort(1)", [5], "no functions that compare"),
    ],
)
def test_members_say_what_they_cannot_do(call, value, reason):
    with pytest.raises(TemplateError, match=reason):
        render(f"{{{{ a.{call} }}}}", {"a": value})


@pytest.mark.parametrize(
    ("template", "text"),
    [
        (
            "{{ l.push(4) }} {{ l }} {{ l.pop() }} {{ l.shift() }} {{ l.unshift(7, 8) }} {{ l }}",
            "4 3,10,2,4 4 3 4 7,8,10,2",
        ),
        ("{{ l.reverse() }} {{ l.sort() }} {{ l.splice(1, 1, 'x', 'y') }} {{ l }}", "2,10,3 10,2,3 2 10,x,y,3"),
        (
            "{{ l.toReversed() }} {{ l.toSorted() }} {{ l }} {{ [1, [2, [3]]].flat() | dump }}",
            "2,10,3 10,2,3 3,10,2 [1,2,[3]]",
        ),
        ("{{ l.fill(0, 1) }} {{ [].pop() }} {{ o.hasOwnProperty('k') }}", "3,0,0  true"),
        ("{{ n.toString(16) }} {{ (-n).toString(2) }} {{ x.toString(2) }} {{ n.toString() }}", "ff -11111111 0.1 255"),
        ("{{ 0.1.toString(3) }}", "0.0022002200220022002200220022002201"),
        ("{{ n.toPrecision(2) }} {{ n.toPrecision(5) }} {{ 0.00001.toPrecision(2) }}", "2.6e+2 255.00 0.000010"),
        ("{{ n.toExponential() }} {{ n.toExponential(1) }} {{ 0.1.toExponential() }}", "2.55e+2 2.6e+2 1e-1"),
        ("{{ 1234567.8915.toLocaleString() }} {{ n.toLocaleString() }}", "1,234,567.892 255"),
        ("{% set j = joiner() %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}", "3,10,2"),
        (
            "{% set c = cycler('a', 'b') %}[{{ c.current }}]{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}",
            "[]abaa",
        ),
        ("[{{ loop.cycle }}{% for x in l %}{{ loop.previtem }}{{ loop.revindex0 }}{% endfor %}]", "[210]"),
    ],
)
def test_values_have_the_members_of_javascript(template, text):
    assert render(template, {"l": [3, 10, 2], "n": 255, "x": 0.5, "o": {"k": 1}}) == text


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{% for x in l %}{{ loop.index0 + 1 ~ '. ' }}{% endfor %}{{ 'a' ~ n + 1 }}", "1. 2. a51"),
        (
            "{{ not n == 5 }} {{ not (n == 5) }} {{ not n in l }} {{ not not n }} {{ not l == 'x' ~ 1 }}",
            "false false true true false",
        ),
        (
            "{{ 1 < 2 == true }} {{ 5 in '15' }} {{ n not in l }} {{ 'k' in o }} {{ [2] > '10' }}",
            "true true true true true",
        ),
        ("{% if n < 3 %}a{% elseif n == 5 %}b{% else %}c{% endif %}{% if n if l else 0 %}d{% endif %}", "bd"),
        ("{% switch n %}{% case 1 %}a{% case 5 %}{% case 6 %}b{% default %}c{% endswitch %}", "b"),
        (
            "{% switch 'z' %} x {% case 1 %}a{% default %}c{% endswitch %}{% switch n %}{% case '5' %}a{% endswitch %}",
            "c",
        ),
        ("{% set a, b = n + 1 %}{{ a }}{{ b }}", "66"),
        ("{% for k, v in [1, ['x', 2], 'yz'] %}[{{ k }}{{ v }}]{% endfor %}", "[][x2][yz]"),
        ("{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1, 3, 4) }}{{ m(1, c=5) }}", "1312"),
        (
            "{{ 7 // 0 }} {{ 'x' // 2 }} {{ (-8) ** 0.5 }} {{ 10 ** 400 }} {{ 0 ** -1 }}",
            "Infinity NaN NaN Infinity Infinity",
        ),
        (
            "{{ 9007199254740993 * 1 }} {{ 10 ** 21 * 10 }} {{ '0x1F' * 1 }} {{ 'inf' * 1 }}",
            "9007199254740992 1e+22 31 NaN",
        ),
        ("{% if 'w' * 1 %}yes{% else %}no{% endif %} {{ -'w' or 'none' }}", "no none"),
        (
            "{{ n is divisibleby(5) }} {{ '7' is gt(5) }} {{ missing is lt(5) }} {{ missing is callable }}",
            "true true false false",
        ),
        ("{{ n is defined if n else 0 }} {{ n is not odd }} {{ (1 if n == 4)|length }}|", "true false 0|"),
        (
            "{{ 'a === b' }} {% raw %}{{ a === b }}{% endraw %} {{ n === 5 }} {{ n !== '5' }}",
            "a === b {{ a === b }} true true",
        ),
        ("{{ ('w'|abs) in l }}", "false"),
        ("[{{ True }}{{ None }}] {{ True == true }}", "[] false"),
        ("{{ n + 1 is odd }} {{ n == 5 is defined }} {{ n is odd in [true] }}", "false true true"),
        ("{{ []|first|default('d') }}{{ ''|last|default('d') }}{{ l.at(9)|default('d') }}", "ddd"),
        ("{% set r = 6 %}{{ r / 2 }} r/x/ {{ 'r/x/' }}", "3 r/x/ r/x/"),
        ("{{ 'a b'.split(' ', -1) }}", "a,b"),
    ],
)
def test_expressions_mean_what_javascript_makes_of_them(template, text):
    """promptfoo's Nunjucks writes them as JavaScript without parentheses."""
    assert render(template, {"l": [1, 2], "n": 5, "o": {"k": 1}}) == text


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{% set n = n + 1 %}{% for x in l %}{% set n = n + x %}{% endfor %}{{ n }}", "9"),
        ("{% for x in l %}{% set n = n + x %}{{ n }};{% endfor %}{{ n }}", "6;8;5"),
        (
            "{% for x in l %}{% set q = 0 %}{% for y in l %}{% set q = q + y %}{% endfor %}{{ q }};{% endfor %}{{ q }}",
            "3;3;",
        ),
        ("{% for x in l %}{% for y in l %}{% set q = y %}{% endfor %}[{{ q }}]{% endfor %}", "[][]"),
        ("{% for x in l %}{{ n }}{% endfor %}{% set n = 1 %}{{ n }}", "551"),
        ("{% for x in l %}{% set q %}{{ q }}{{ x }}{% endset %}{{ q }} {% endfor %}", "1 12 "),
        ("{% set m = 5 %}{% macro m(x) %}{{ x }}{% endmacro %}{{ m(2) }}", "2"),
        ("{% set loop = 5 %}{% for x in l %}{{ loop.index }}{% endfor %}{{ loop }}", "125"),
        ("{% set x = 5 %}{% for x in l %}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}", "235"),
        ("{% set p, q = 0 %}{% for x in l %}{% set p, q = p + x %}{% endfor %}{{ p }}{{ q }}", "33"),
        (
            "{% set q = 1 %}{% for x in l %}{% set q = x %}{% endfor %}"
            "{% macro m(n) %}{{ q }}{{ n }}{% set q = 9 %}{{ q }}{% endmacro %}{{ m(4) }} {{ q }}",
            "149 2",
        ),
        (
            "{% macro m(q) %}{{ caller() }}{% endmacro %}"
            "{% for x in l %}{% set q = x %}{% call m(x + 3) %}{{ q }}{% endcall %}{{ q }} {% endfor %}",
            "41 52 ",
        ),
    ],
)
def test_names_set_in_loops_last_as_long_as_in_nunjucks(template, text):
    assert render(template, {"l": [1, 2], "n": 5}) == text


def test_a_loop_ends_that_adds_to_its_own_list():
    code = "l = [1]; t = '{% for x in l %}{{ l.push(x) }}{% endfor %}{{ l }}'"
    limited = "import resource; resource.setrlimit(resource.RLIMIT_CPU, (5, 5))"
    run = f"from evalwright.formats.promptfoo.templates import render; {limited}; {code}; print(render(t, {{'l': l}}))"
    assert subprocess.run([sys.executable, "-c", run], capture_output=True, text=True).stdout == "21,1\n"


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ l|replace(r/a/g, 'b') }}", r"r/\.\.\./: templates have no regular expressions"),
        ("{{ 'a'.match('b') }}", "match: templates have no regular expressions"),
        ("{% for x in l if x %}{{ x }}{% endfor %}", "no loops with 'if'"),
        ("{% with x = 1 %}{{ x }}{% endwith %}", "no tag 'with'"),
        ("{{ l|center(1000000000000) }}", "cannot have 1000000000000 blanks"),
        ("{{ 'a'|indent(1e12) }}", "cannot have"),
        ("{{ range(10000000000) }}", "at most 1,000,000 numbers"),
        ("{{ l|batch(10000000000, 'x') }}", "from 1 to 1,000,000"),
        ("{{ l|slice(0) }}", "from 1 to 1,000,000"),
        ("{% include 'other.txt' %}", "include, import and extends are not read"),
        ("{% set a, b = 1, 2 %}", "a single value for all names"),
        ("{{ l|select('prime') }}", "no test 'prime'"),
        ("{{ 'x'|load }}", "load: expected JSON, found 'x'"),
        ("{{ missing.some() }}", "nothing has no 'some'"),
        ("{{ 5|urlize }}", "a filter for texts was given '5'"),
    ],
)
def test_a_template_says_what_it_cannot_do(template, reason):
    with pytest.raises(TemplateError, match=reason):
        render(template, {"l": ["a"]})
