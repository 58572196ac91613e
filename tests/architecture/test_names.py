"""A public name has one home: a reader who meets it knows where it comes from."""

import ast
from collections import defaultdict

from architecture.source import modules

FACES = (
    "evalwright.letta", "evalwright.northstar", "evalwright.pixie", "evalwright.plugins", "evalwright.session",
    "evalwright.statistics", "evalwright.testing",
)  # fmt: skip
"""Packages that offer names of other modules, by a table or an import, under the path that users write."""
PARALLEL = {
    "EVALUATORS": "the register of each family of evaluators",
    "FORMAT": "the object of each format",
    "command": "the command of each module of the command line",
    "detects": "what each format's object refers to",
    "load": "what each format's object refers to; files.yaml and registry load by name and are called with it",
    "main": "the entry point of a process",
}
"""Names that several modules have because a reader expects them in each."""
ORIGINALS = (".surface", ".formats.pixie.scorers", ".formats.pixie.retrieval", ".capture.spans")
"""Modules with the names that an original's users import: ours must be called the same."""


def homes() -> dict[str, set[str]]:
    """The modules, faces and originals' names left out, that say a name is public."""
    found: dict[str, set[str]] = defaultdict(set)
    for path, module in modules():
        if module not in FACES and not any(part in f"{module}." for part in (f"{o}." for o in ORIGINALS)):
            for name in public_names(path.read_text()):
                found[name].add(module.removeprefix("evalwright."))
    return found


def public_names(source: str) -> list[str]:
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return [element.value for element in getattr(node.value, "elts", []) if isinstance(element, ast.Constant)]
    return []


def test_a_public_name_has_one_home() -> None:
    several = {name: sorted(where) for name, where in homes().items() if len(where) > 1 and name not in PARALLEL}
    assert several == {}
