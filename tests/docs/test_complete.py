"""The documentation leaves out nothing that a user can name: commands, options, keys, registered names."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from evalwright import built_in, registry
from evalwright.cli.commands import COMMANDS, commands
from evalwright.formats.native.file import EvalFile
from evalwright.formats.native.file_mistakes import model_of

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
OF_FORMATS = [Path(our_format.docs).name for our_format in registry.our_formats()]
"""The page of each format, which has the names that the format brings."""
PAGES_OF_KIND = {
    "formats": OF_FORMATS,
    "targets": ["targets.md", "pytest.md", *OF_FORMATS],
    "embedders": ["judges.md"],
    "evaluators": ["evaluators.md", "judges.md", "pytest.md", *OF_FORMATS],
    "extractors": OF_FORMATS,
    "stores": ["runs-on-disk.md"],
    "providers": ["models.md"],
    "mirrors": ["mirrors.md"],
    "exports": OF_FORMATS,
    "enrichers": ["mirrors.md"],
    "workspaces": ["workspaces.md"],
    "datasets": ["datasets.md"],
    "importers": ["import.md"],
    "reports": ["command-line.md"],
}


def options(name: str) -> list[str]:
    module, _, attribute = COMMANDS[name][0].partition(":")
    command = getattr(__import__(module, fromlist=[attribute]), attribute)
    return [option for parameter in command.params for option in parameter.opts if option.startswith("--")]


def keys(model: type[BaseModel]) -> set[str]:
    """Names of all keys of a model and of the models inside it."""
    found: set[str] = set()
    for name, field in model.model_fields.items():
        found.add(name)
        for inner in (field.annotation, *_arguments(field.annotation)):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                found |= keys(inner)
    return found


def _arguments(annotation: Any) -> list[Any]:
    direct = list(getattr(annotation, "__args__", ()))
    return direct + [deeper for argument in direct for deeper in _arguments(argument)]


def in_code(page: str) -> str:
    """What a page says in backticks and fenced blocks."""
    return in_backticks((DOCS / page).read_text())


def in_backticks(text: str) -> str:
    return " ".join(re.findall(r"`[^`]+`", text))


def missing(names: Iterable[str], said: str) -> list[str]:
    """Those that are not there as a whole word: `--group` is not documented by `--groups`."""
    return [name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", said)]


def about(command: str) -> str:
    """The code in the sections of the command line's page that describe a command, or `run` with the shared options."""
    sections = re.split(r"^## ", (DOCS / "command-line.md").read_text(), flags=re.M)
    names = (f"`evalwright {command}", "`evalwright run")
    return in_backticks("".join(section for section in sections if any(name in section for name in names)))


def test_every_command_is_documented() -> None:
    code = in_code("command-line.md")
    assert [name for name in commands() if f"evalwright {name}" not in code] == []


def test_every_option_is_documented() -> None:
    assert {name: gone for name in COMMANDS if (gone := missing(options(name), about(name)))} == {}


def test_every_key_of_a_suite_is_documented() -> None:
    said = in_code("eval-yaml.md") + in_code("datasets.md")
    assert [key for key in sorted(keys(model_of(EvalFile))) if not re.search(rf"\b{key}\b", said)] == []


def test_every_format_with_totals_is_named_at_their_key() -> None:
    row = next(line for line in (DOCS / "eval-yaml.md").read_text().splitlines() if line.startswith("| `totals`"))
    assert (
        missing([our_format.name for our_format in registry.our_formats() if our_format.totals is not None], row) == []
    )


@pytest.mark.parametrize("kind", built_in.KINDS)
def test_every_registered_name_is_documented(kind: str) -> None:
    text = "".join((DOCS / page).read_text() for page in PAGES_OF_KIND[kind])
    assert missing(registry.names(kind), text) == []


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [name for names in project.get("optional-dependencies", {}).values() for name in names]
    packages = [re.split(r"[<>=~!\[; ]", name)[0] for name in [*project["dependencies"], *extras]]
    said = (DOCS / "DEPENDENCIES.md").read_text().lower()
    assert [name for name in packages if name.lower().removeprefix("types-") not in said] == []
