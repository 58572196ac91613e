"""Assertions on SQL, with a stand-in for the package that parses it."""

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from formats.promptfoo.runs import ECHO, asserted, write

PARSER = """
exports.Parser = class {
  astify(sql, { database }) {
    if (database === "Nope") throw new Error("Nope is not supported currently");
    if (!/^\\s*(select|with)\\b/i.test(sql)) throw new Error("Expected SELECT\\nat 1:1");
  }
  whiteListCheck(sql, allowed, { type }) {
    const names = allowed.map((entry) => entry.split("::").pop());
    if (!names.some((name) => sql.includes(name))) throw new Error(`no authority for the ${type}`);
  }
};
"""
BLOCKS = "Here:\n```python\nselect 1\n```\n~~~ SQL\ndrop\n~~~\n```\nselect 1\n```x\n ``` \n"


@pytest.fixture
def folder(tmp_path):
    package = tmp_path / "node_modules" / "node-sql-parser"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"name": "node-sql-parser", "version": "5.4.0"}')
    (package / "index.js").write_text(PARSER)
    return tmp_path


def test_statements_are_parsed_and_looked_at_as_in_promptfoo(folder):
    settings = [
        {"databaseType": "Nope"}, {"allowedTables": ["select::null::t"]}, {"allowedTables": ["select::null::u"]},
        {"allowedColumns": ["select::t::b", "select::t::a"]}, {"allowedColumns": ["select::t::z"]}, "MySQL",
        {"allowedTables": "t"},
    ]  # fmt: skip
    given = [{"type": "is-sql"}, {"type": "not-is-sql"}, {"type": "contains-sql"}]
    given += [{"type": "is-sql", "value": value} for value in settings]
    result = asserted(folder, "SELECT a, b FROM t", *given)
    expected = ["pass", "fail", "pass", "error", "pass", "fail", "pass", "fail", "error", "error"]
    assert [row.status for row in result.rows] == expected
    assert [row.reason for row in result.rows][3] == "is-sql: databaseType: node-sql-parser knows no 'Nope'"


@pytest.mark.parametrize(
    ("output", "database", "passed"),
    [
        ("", "MySQL", False),
        ("select `a from t", "MySQL", False),
        ("select a b from t", "MySQL", False),
        ("select distinct a from t", "MySQL", True),
        ("select sql_cache a from t", "MariaDB", True),
        ("select sql_cache a from t", "PostgreSQL", False),
        ("select 'select a b from t' from t", "MySQL", True),
        ("select -- a\n b, /* a b */ c from t", "MySQL", True),
        ("select [a b] from t", "TransactSQL", True),
        ("select $x$ a b $x$, c from t", "PostgreSQL", True),
        ("select 1 from generate_series(1, 2)", "MySQL", False),
        ("select 1 from generate_series(1, 2)", "PostgreSQL", True),
    ],
)
def test_statements_that_parsers_let_through_are_looked_at(folder, output, database, passed):
    value = {"databaseType": database}
    kinds = ("is-sql", "not-is-sql", "contains-sql", "not-contains-sql")
    result = asserted(folder, output, *({"type": kind, "value": value} for kind in kinds))
    assert [row.passed for row in result.rows] == [passed, not passed] * 2


@pytest.mark.parametrize(("output", "passed"), [(BLOCKS, False), (f"{BLOCKS}```\nselect 2\n````", True), ("x", False)])
def test_one_block_of_sql_is_enough(folder, output, passed):
    result = asserted(folder, output, {"type": "contains-sql"}, {"type": "not-contains-sql"})
    assert [row.passed for row in result.rows] == [passed, not passed]


def test_a_suite_without_the_parser_is_refused_with_one_message(tmp_path):
    tests = [{"vars": {"q": "a"}, "assert": [{"type": kind} for kind in ("is-sql", "not-contains-sql")]}]
    with pytest.raises(InputError) as caught:
        load_suite(write(tmp_path, {**ECHO, "tests": tests}))
    [problem] = caught.value.problems
    message = "needs the package node-sql-parser of Node: `npm install node-sql-parser` in the suite's folder"
    assert problem.message == f"is-sql {message}"
