"""One word for each thing: help, docs and messages are free of the forms that docs and code have given up."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

import evalwright
from architecture.source import nodes
from evalwright import registry
from evalwright.cli.commands import COMMANDS

ROOT = Path(__file__).parents[2]
SOURCE = Path(evalwright.__file__).parent
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
ROOMS = sorted(place.name for place in SOURCE.iterdir() if place.suffix == ".py" or (place / "__init__.py").exists())

INSTEAD = {
    r"(?:is|are|was|were|be) told": "report, print, receive",
    r"anew": "again",
    r"one's own": "your own, custom",
    r"nobody|somebody|anybody": "name who it is, or use the passive",
    r"held against|hold against": "compare with",
    r"passed over": "skipped",
    r"judg(?:e|ed|es|ing) again|judged? anew": "re-evaluate",
    r"heard|listen(?:s|ed)? to": "record, trace",
    r"is worth|are worth": "say what is measured",
    r"dialects?": "format",
    r"fell short|falls short|shortfalls?": "failed",
    r"what (?:became|came|has become) of": "the outcome of",
    r"no (?:known )?(?:evaluator|target|format|suite|case) fits|fits no": "matches",
}
"""Forms that are not written, and what is written instead."""

ALLOWED = ("--dialect", "dialect=")
"""What has to stay: names of options and arguments."""

BANNED = re.compile(rf"\b(?:{'|'.join(INSTEAD)})\b", re.IGNORECASE)


def banned(text: str) -> list[str]:
    for quotation in ALLOWED:
        text = text.replace(quotation, "")
    return [text[max(0, m.start() - 40) : m.end() + 30].strip() for m in BANNED.finditer(text)]


def helps(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    context = click.Context(command, info_name=name, terminal_width=80)
    yield name, command.get_help(context)
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            if found is not None:
                yield from helps(found, f"{name} {inner}")


def prose(page: Path) -> str:
    """A page without its examples and code: those quote what is tested elsewhere."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return " ".join(re.sub(r"``.+?``|`[^`]+`", "", text).split())


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """Texts of several words in a module that are not docstrings."""
    documents = {
        id(statement.value)
        for node in nodes(path)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for statement in node.body
        if isinstance(statement, ast.Expr)
    }
    for node in nodes(path):
        match node:
            case ast.Constant(value=str(text)) if " " in text.strip() and id(node) not in documents:
                yield node.lineno, text


@cache
def all_helps() -> dict[str, str]:
    """What `--help` prints in 80 columns, by command."""
    places = {name: place for name, (place, _) in COMMANDS.items()}
    places |= {name: str(registry.format_of(name).command) for name in registry.WITH_COMMAND}
    found: dict[str, str] = {}
    for name, place in places.items():
        found |= helps(registry.resolve(place), name)
    return found


def test_help_says_it_in_our_words() -> None:
    said = {f"{name} in the list": line for name, (_, line) in COMMANDS.items()}
    said |= {name: " ".join(text.split()) for name, text in all_helps().items()}
    assert {called: hits for called, text in said.items() if (hits := banned(text))} == {}


def test_help_fits_in_80_columns_and_is_not_cut() -> None:
    lines = [(name, line) for name, text in all_helps().items() for line in text.splitlines()]
    assert [(name, line) for name, line in lines if len(line) > 80 or re.search(r"[a-z,;]\.\.\.$", line)] == []


def test_docs_say_it_in_our_words() -> None:
    assert {page.name: hits for page in PAGES if (hits := banned(prose(page)))} == {}


@pytest.mark.parametrize("room", ROOMS)
def test_messages_say_it_in_our_words(room: str) -> None:
    place = SOURCE / room
    files = [place] if place.is_file() else sorted(place.rglob("*.py"))
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {hit}"
        for path in files
        for line, text in messages(path)
        for hit in banned(text)
    ]
    assert found == []
