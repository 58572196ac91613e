"""Typical mistakes, one table per file in `mistakes/`: what a user did, and what evalwright has to say to that.

A table has `base`, files by path, and `mistakes`, each with

- `name`, and `run`, the words behind `evalwright`; `@run1@` is what the first command of `before` printed last;
- `edit`, what replaces which text of a file of the base, `files` in addition to it (null: the file is missing), `env`;
- `code`, and texts that must be there: `place` (file, line, key, option), `cause`, `cure`; those in `never` must not;
- `grade`: 3 says place, cause and cure, 2 place and cause, 1 only that something is wrong, 0 nothing or what is not so.
  `first` is the grade before the message was mended.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

TABLES = Path(__file__).with_name("mistakes")
Command = Callable[[list[str]], tuple[int, str, str]]
"""Carries out words behind `evalwright`: exit code, stdout, stderr."""


@dataclass(frozen=True)
class Mistake:
    table: str
    base: dict[str, str]
    name: str
    run: str
    code: int = 2
    grade: int = 3
    first: int | None = None
    edit: dict[str, dict[str, str]] = field(default_factory=dict)
    files: dict[str, str | None] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    place: tuple[str, ...] = ()
    cause: tuple[str, ...] = ()
    cure: tuple[str, ...] = ()
    never: tuple[str, ...] = ()

    def write(self, folder: Path) -> None:
        """The user's files; raises ValueError if an edit changes nothing."""
        texts = {**self.base, **{path: text for path, text in self.files.items() if text is not None}}
        for path in (path for path, text in self.files.items() if text is None):
            del texts[path]
        for path, changes in self.edit.items():
            for old, new in changes.items():
                if old not in texts[path]:
                    raise ValueError(f"{self.name}: {old!r} is not in {path}")
                texts[path] = texts[path].replace(old, new)
        for path, text in texts.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")

    def made(self, folder: Path, evalwright: Command) -> tuple[int, str, str]:
        """What the mistake's command says in the folder that it was written to."""
        words = self.run
        for number, line in enumerate(self.before, 1):
            _, out, _ = evalwright(_words(line))
            words = words.replace(f"@run{number}@", out.rstrip("\n").rpartition("\n")[2])
        return evalwright(_words(words))


def _words(line: str) -> list[str]:
    return shlex.split(line)


def mistakes() -> Iterator[Mistake]:
    for file in sorted(TABLES.glob("*.yaml")):
        table = yaml.load(file.read_text("utf-8"), yaml.CSafeLoader)
        for row in table["mistakes"]:
            yield _mistake(file.stem, table["base"], row)


def _mistake(table: str, base: dict[str, str], row: dict[str, Any]) -> Mistake:
    lists = {key: _tuple(row[key]) for key in ("before", "place", "cause", "cure", "never") if key in row}
    return Mistake(table, base, **{**row, **lists})


def _tuple(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
