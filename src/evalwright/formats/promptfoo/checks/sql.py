"""Assertions on SQL, which the library that promptfoo uses parses: node-sql-parser, of the suite's own packages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from evalwright.errors import EvaluatorError
from evalwright.files.key_paths import as_written
from evalwright.formats.promptfoo.evaluator import AssertionInput
from evalwright.formats.promptfoo.faults import ScriptError
from evalwright.formats.promptfoo.scripts import run_javascript
from evalwright.formats.shared.javascript.patterns import pattern_of
from evalwright.model.result import Evaluation

__all__ = ["contains_sql", "is_sql"]

_PARSE = """
const found = process.mainModule.require("node-sql-parser");
const parser = new (found.Parser ?? found.default.Parser)();
const flaw = (action) => {
  try { action(); return null; } catch (error) { return String(error?.message ?? error).split("\\n")[0]; }
};
const check = (sql, type, allowed) =>
  allowed === null ? null : flaw(() => parser.whiteListCheck(sql, allowed, { database, type }));
return texts.map((sql) => [
  flaw(() => parser.astify(sql, { database })), check(sql, "table", tables), check(sql, "column", columns),
]);
"""
_DEFAULT = "MySQL"
_UNKNOWN = "is not supported currently"
"""The end of what the parser says of a database that it does not know."""
_MODIFIERS = "all|distinct"
_MYSQL_MODIFIERS = (
    "all|distinct(?:row)?|high_priority|straight_join|sql_(?:big_result|buffer_result|cache|calc_found_rows|no_cache"
    "|small_result)"
)
_OF_MYSQL = ("MySQL", "MariaDB")
_WITH_BRACKETS = ("TransactSQL", "Sqlite")
"""Databases where `[name]` is a name."""
_QUOTED = "|".join(rf"{quote}(?:\\.|{quote}{quote}|[^{quote}\\])*+(?:{quote}|\\?\Z)" for quote in "'\"`")
_DOLLARS = r"(?P<dollars>\$(?:[A-Za-z_][A-Za-z0-9_]*)?\$).*?(?:(?P=dollars)|\Z)"
_COMMENT = r"(?:--|\#)[^\r\n]*|/\*.*?(?:\*/|\Z)"
_ASIDE = re.compile(rf"(?P<value>{_QUOTED}|{_DOLLARS})|{_COMMENT}", re.DOTALL)
_ASIDE_WITH_BRACKETS = re.compile(rf"(?P<value>{_QUOTED}|\[(?:\]\]|[^\]])*+(?:\]|\Z)|{_DOLLARS})|{_COMMENT}", re.DOTALL)
"""What is not looked at: comments, and quoted values and names, which leave a value behind."""
_FENCE = re.compile(r"[ \t]{0,3}+((?P<sign>[`~])(?P=sign){2,}+)(?P<language>.*)", re.DOTALL)


async def is_sql(question: AssertionInput) -> Evaluation:
    """The text is a statement of the `databaseType`, with no other than the allowed tables and columns."""
    [flaw] = await _flaws(question, [question.text])
    return question.of(not flaw, flaw, "the output is valid SQL")


async def contains_sql(question: AssertionInput) -> Evaluation:
    """The same of one of the blocks of SQL in the text, which is one itself if there are no blocks."""
    blocks = [block for block in [*_blocks(question.text)] or [question.text] if block.strip()]
    flaws = await _flaws(question, blocks) if blocks else []
    flaw = flaws[-1] if flaws else "there is no SQL in the output"
    return question.of(not all(flaws), flaw, "there is valid SQL in the output")


async def _flaws(question: AssertionInput, texts: Sequence[str]) -> list[str]:
    """What is wrong with each text; empty if nothing is. Raises EvaluatorError."""
    database, tables, columns = _settings(question)
    arguments = {"texts": texts, "database": database, "tables": tables, "columns": columns}
    try:
        parsed = await run_javascript(question.folder, _PARSE, arguments)
    except ScriptError as error:
        raise EvaluatorError(f"{question.kind}: node-sql-parser cannot be used: {error}", error.type) from None
    if any(syntax is not None and syntax.endswith(_UNKNOWN) for syntax, *_ in parsed):
        raise EvaluatorError(
            f"{question.kind}: databaseType: node-sql-parser knows no {as_written(database)}", "bad_value"
        )
    return [_flaw(text, database, *flaws) for text, flaws in zip(texts, parsed, strict=True)]


def _settings(question: AssertionInput) -> tuple[str, list[str] | None, list[str] | None]:
    value = question.value or {}
    if not isinstance(value, Mapping):
        expected = "a mapping with databaseType, allowedTables or allowedColumns"
        raise EvaluatorError(f"{question.kind}: expected {expected}, found {as_written(value)}", "bad_value")
    tables, columns = value.get("allowedTables"), value.get("allowedColumns")
    for key, allowed in (("allowedTables", tables), ("allowedColumns", columns)):
        if not isinstance(allowed, list | None) or not all(isinstance(name, str) for name in allowed or ()):
            raise EvaluatorError(f"{question.kind}: {key}: expected texts, found {as_written(allowed)}", "bad_value")
    database = value.get("databaseType") or _DEFAULT
    if not isinstance(database, str):
        raise EvaluatorError(f"{question.kind}: databaseType: expected text, found {as_written(database)}", "bad_value")
    return database, tables, None if columns is None else [*columns, *_without_tables(columns)]


def _without_tables(columns: Sequence[str]) -> Iterator[str]:
    """Columns as the parser names them where a statement does not say of which table they are."""
    for parts in (column.split("::") for column in columns):
        if len(parts) == 3 and parts[1] != "null":
            yield f"{parts[0]}::null::{parts[2]}"


def _flaw(text: str, database: str, syntax: str | None, tables: str | None, columns: str | None) -> str:
    text = text.strip()
    if not text:
        return "the output is empty"
    if syntax is not None:
        return f"not SQL of {database}: {syntax}"
    if text.count("`") % 2:
        return f"not SQL of {database}: a ` is never closed"
    if _lacks_comma(text, database):
        return f"not SQL of {database}: a comma seems to be missing between two columns"
    if database == _DEFAULT and pattern_of(r"\bgenerate_series\s*\(", "i").found_in(text):
        return f"not SQL of {database}: generate_series is of other databases"
    return tables or columns or ""


def _lacks_comma(text: str, database: str) -> bool:
    """Whether two names follow each other between `select` and `from`, as in promptfoo also with a new name."""
    aside = _ASIDE_WITH_BRACKETS if database in _WITH_BRACKETS else _ASIDE
    plain = aside.sub(lambda match: " ? " if match["value"] else " ", text)
    modifier, name = f"(?:{_MYSQL_MODIFIERS if database in _OF_MYSQL else _MODIFIERS})", "[A-Za-z_][A-Za-z0-9_]*"
    lacking = rf"\bselect\s+(?:{modifier}\s+)*(?!{modifier}\b){name}\s+{name}\s+from\b"
    return pattern_of(lacking, "i").found_in(plain)


def _blocks(text: str) -> Iterator[str]:
    """The blocks between fences, in a text of Markdown, that are SQL or of no language."""
    opened: re.Match[str] | None = None
    lines: list[str] = []
    for line in re.split(r"\r\n?|\n", text):
        fence = _FENCE.fullmatch(line)
        if opened is None:
            opened, lines = fence, []
        elif fence and fence[1].startswith(opened[1]) and not fence["language"].strip(" \t"):
            if opened["language"].strip().lower() in ("", "sql"):
                yield "\n".join(lines).strip()
            opened = None
        else:
            lines.append(line)
