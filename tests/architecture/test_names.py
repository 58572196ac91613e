"""A public name has one home: a reader who meets it knows where it comes from."""

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from architecture.source import modules, nodes, room, tree
from evalwright import built_in

FORMATS = {f"formats.{name}" for name in built_in.KINDS["formats"]}
FACES = (
    "evalwright", "evalwright.letta", "evalwright.northstar", "evalwright.pixie", "evalwright.plugins",
    "evalwright.session", "evalwright.statistics", "evalwright.testing",
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
ORIGINALS = (
    ".surface", ".formats.northstar.authored", ".formats.pixie.scorers", ".formats.pixie.retrieval", ".letta.runner",
    ".capture.spans",
)  # fmt: skip
"""Modules with the names that an original's users import: ours must be called the same."""
ALLOWED = {
    "Batch": "cases for one command of AgentV; rows for one write to a database",
    "Cache": "replies of models; recorded results of Letta Evals, its own word",
    "Cell": "of the Python API, judged; of the runner, still to be run",
    "Command": "the target, and the provider of AgentV that is called so in its files",
    "Decision": "of the Python API, about all variants of two runs; about one pair of sides",
    "Evaluator": "of the Python API, a name with a configuration; the protocol behind it",
    "Interrupted": "of a run, by Ctrl-C; of a response, by its server",
    "Judge": "of the Python API, a model that judges; what applies the evaluators of a plan",
    "Place": "a place in a file; a place of runs",
    "open_run": "the Python API's, which gives a Run; what that calls",
    "re_evaluate": "the Python API's; what that and the command line call",
    "refused": "of an argument of the Python API; of a setting of AgentV; of a command of pixie",
    "resume": "the Python API's; what that and the command line call",
    "serve": "what the shim of a format's face is called by",
    "shortened": "text for a terminal; text of a response",
    "shown": "a value in a reason; a reference in a message of convert",
    "text_of": "of an exception; of a reply over HTTP",
}
"""Other names with two homes: what each means there. Add no more without need."""

SPOKEN = {
    "complain": "report",
    "hear": "receive, adopt or handle",
    "say": "print, report or return",
    "tell": "report, notify or send",
}
"""Verbs that say nothing of what a function does with its arguments, and what to say instead."""
FORMS = {"complaint": "complain", "heard": "hear", "said": "say", "saying": "say", "told": "tell"}


def homes() -> dict[str, set[str]]:
    """The modules, faces and originals' names left out, that say a name is public."""
    found: dict[str, set[str]] = defaultdict(set)
    for path, module in modules():
        if module not in FACES and not any(f"{part}." in f"{module}." for part in ORIGINALS):
            for name in public_names(path):
                found[name].add(module.removeprefix("evalwright."))
    return found


def clash(where: set[str]) -> bool:
    """Whether two of the modules can be imported by one: formats never meet, so each may have a name of its own."""
    rooms = [room(f"evalwright.{module}") for module in where]
    return len(where) > 1 and not (len(set(rooms)) == len(rooms) and set(rooms) <= FORMATS)


@cache
def public_names(path: Path) -> list[str]:
    for node in tree(path).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return [element.value for element in getattr(node.value, "elts", []) if isinstance(element, ast.Constant)]
    return []


def test_a_public_name_has_one_home() -> None:
    known = PARALLEL.keys() | ALLOWED.keys()
    several = {name: sorted(where) for name, where in homes().items() if clash(where) and name not in known}
    assert several == {}


def test_every_exception_is_one() -> None:
    several = {name for name, where in homes().items() if clash(where)}
    assert ALLOWED.keys() - several == set()


def test_a_second_home_is_seen() -> None:
    assert clash({"scoring.totals", "targets.totals"})
    assert clash({"formats.letta.rows", "stores.rows"})
    assert clash({"formats.letta.rows", "formats.letta.samples"})
    assert not clash({"formats.letta.suite", "formats.native.suite"})


def test_what_a_module_gives_to_others_is_among_its_public_names() -> None:
    """Otherwise the test above does not see that it has two homes."""
    paths = {module: path for path, module in modules()}
    taken: set[str] = set()
    for path, _ in modules():
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and (public := public_names(paths.get(str(node.module), path))):
                named = {alias.name for alias in node.names}
                taken |= (
                    {f"{node.module}.{name}" for name in named.difference(public)} if node.module in paths else set()
                )
    assert sorted(taken - paths.keys()) == []


def spoken_words(name: str) -> list[str]:
    """The verbs of `SPOKEN` in a name, in any form."""
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+", name)]
    roots = [FORMS.get(word.removesuffix("s"), word.removesuffix("s")) for word in words]
    return [root for root in roots if root in SPOKEN]


def test_functions_and_classes_are_not_named_after_talking() -> None:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = [(module, node.name) for path, module in modules() for node in nodes(path) if isinstance(node, kinds)]
    assert [(*place, SPOKEN[word]) for place in names for word in spoken_words(place[1])] == []


def named_values(path: Path) -> Iterator[str]:
    """Names that a module binds to values: variables, parameters and attributes."""
    for node in nodes(path):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr


def test_values_are_not_named_after_talking() -> None:
    """What was asked or told is a question, a request, a prompt, a message: the name of the thing says more."""
    vague = {"asked", "heard", "said", "told"}
    names = {(module, name) for path, module in modules() for name in named_values(path)}
    assert sorted(place for place in names if place[1].strip("_") in vague) == []


ERRORS = re.compile(r"\b[Rr]ais(?:es|e|ing) ((?:`?[A-Z]\w+`?(?:, and |, or |, | and | or )?)+)")


def raised_names(text: str) -> set[str]:
    """The exceptions that a docstring says are raised."""
    return {name for match in ERRORS.finditer(text) for name in re.findall(r"[A-Z]\w+", match[1])}


def test_a_docstring_names_only_exceptions_that_exist() -> None:
    """A class that was renamed keeps its old name in prose, which no type checker reads."""
    existing, raised = set(dir(builtins)), set[tuple[str, str]]()
    for path, module in modules():
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                existing.add(node.name)
            elif isinstance(node, ast.ImportFrom):
                existing.update(alias.name for alias in node.names)
            elif isinstance(node, ast.Attribute):
                existing.add(node.attr)
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                raised.update((module, name) for name in raised_names(str(node.value.value)))
    assert len(raised) > 100
    assert sorted(place for place in raised if place[1] not in existing) == []


def test_every_exception_of_a_docstring_is_seen() -> None:
    text = "All raise StorageError. Raises InputError, `BadQuery` and KeyError for a file. What raises is stored."
    assert raised_names(text) == {"StorageError", "InputError", "BadQuery", "KeyError"}


def test_a_verb_of_talking_is_seen_in_every_form() -> None:
    found = ("_said_by", "Tell", "tells", "_Sayings", "heard", "complaints", "_told_once")
    assert all(map(spoken_words, found))
    assert not any(map(spoken_words, ("essay", "_whole", "hearts", "satellite")))
