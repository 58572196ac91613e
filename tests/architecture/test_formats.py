"""A format is one folder and one object: nothing else names it."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from architecture.source import SOURCE, imports, modules, nodes
from evalwright import built_in, registry
from evalwright.model.format import Format

NAMES = {*built_in.KINDS["formats"], registry.NATIVE}
FORMATS = registry.our_formats()
WITH_A_KEY = {SOURCE / "targets/coding_agent/target.py"}
"""Where a key of systems has the name of a format: the skills of an agent."""


def folder_of(one: Format) -> Path:
    module = built_in.KINDS["formats"][one.name].partition(":")[0]
    return SOURCE.joinpath(*module.split(".")[1:])


def may_name_formats(path: Path) -> bool:
    """The registry with its tables, and a format's own folder and face."""
    place = path.relative_to(SOURCE).parts
    return place[0] in ("registry.py", "built_in.py", *NAMES) or (place[0] == "formats" and place[1] in NAMES)


def names_in(found: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Constants that are the name of a format, with their lines."""
    for node in found:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in NAMES:
            yield node.lineno, node.value


def test_a_name_is_seen():
    assert list(names_in(ast.walk(ast.parse("'''letta'''\nx = {'a': ['pixie']}\n")))) == [(1, "letta"), (2, "pixie")]


def test_nothing_but_a_formats_folder_its_face_and_the_registry_names_it():
    wrong = [
        f"{path.relative_to(SOURCE)}:{line} {name}"
        for path, _ in modules()
        if not may_name_formats(path) and path not in WITH_A_KEY
        for line, name in names_in(nodes(path))
    ]
    assert wrong == []


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_a_formats_folder_names_no_other_format(one):
    others = NAMES - {one.name, registry.NATIVE if registry.format_of(registry.NATIVE) is one else ""}
    wrong = [
        f"{path.relative_to(SOURCE)}:{line} {name}"
        for path in folder_of(one).rglob("*.py")
        for line, name in names_in(nodes(path))
        if name in others
    ]
    assert wrong == []


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_a_formats_object_loads_nothing_else_of_ours(one):
    ours = {module for module, _ in imports(folder_of(one) / "__init__.py")}
    assert ours <= {"evalwright.model.format"}


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_every_reference_of_a_format_is_there(one):
    tables = [one.targets, one.evaluators, one.extractors, one.exports, one.reports, one.mirrors]
    fields = (
        "detects",
        "load",
        "sidecar_of",
        "repository",
        "names_in",
        "normalize",
        "unread",
        "write",
        "other_form",
        "expands",
    )
    fields += ("suite_in", "verdicts", "totals", "known_by", "read_results", "adopt_run", "command")
    refs = [ref for name in fields if (ref := getattr(one, name)) is not None]
    assert all(callable(registry.resolve(ref)) for ref in [*refs, *(ref for table in tables for ref in table.values())])
    served = [ref for names in one.shims.values() if not isinstance(names, str) for ref in names.values()]
    assert None not in map(registry.resolve, [*served, *(ref for _, ref in one.adopts.values())])


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_a_format_has_what_the_registry_says(one):
    assert one.name in registry.names("formats")
    assert (SOURCE.parents[1] / one.docs).is_file()


def test_help_lists_the_formats_with_a_command():
    programs = {
        suite_format.original or suite_format.name: suite_format.stands_for
        for suite_format in FORMATS
        if suite_format.command is not None
    }
    assert programs == registry.WITH_COMMAND
