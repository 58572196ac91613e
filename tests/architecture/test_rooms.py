"""The rooms of the package and the direction in which they may import, lazily made imports included."""

import ast
import importlib
import pkgutil
import re
import subprocess
import sys

import evalwright
from architecture.source import SOURCE, imports, modules, nodes, room
from evalwright import built_in

FORMATS = tuple(built_in.KINDS["formats"])
LOWER = {
    "errors": "synonyms",
    "synonyms": "",
    "user_code": "",
    "statistics": "",
    "processes": "",
    "built_in": "",
    "registry": "model built_in",
    "sandbox": "processes",
    "files": "processes",
    "model": "",
    "demo": "",
    "scoring": "model files registry statistics",
    "stores": "model files registry statistics",
    "llm": "model files registry user_code",
    "importers": "model files registry sandbox",
    "workspaces": "model files registry processes",
    "capture": "model",
    "session": "model files user_code",
    "evaluators": "model files registry processes sandbox llm session",
    "targets": "model files registry processes sandbox llm importers workspaces capture session user_code",
    "datasets": "model",
    "decisions": "model scoring statistics",
    "testing": "model registry stores",
    "reports": "model scoring decisions",
    "mirrors": "model files registry stores targets sandbox",
    "enrichers": "model files registry stores targets sandbox",
}
"""Rooms below the formats, and what each may import beside `errors`."""
BELOW_RUN = " ".join(
    [
        *LOWER,
        "formats.shared",
        "formats.shims",
        "formats.loading",
        "formats.discovery",
        *map("formats.{}".format, FORMATS),
    ]
)
ROOMS = {
    **LOWER,
    "formats": "",
    "formats.shared": " ".join(LOWER),
    "formats.shims": "model registry",
    **{f"formats.{name}": " ".join([*LOWER, "formats.shared", "formats.shims"]) for name in FORMATS},
    "formats.loading": " ".join([*LOWER, "formats.shared"]),
    "formats.discovery": " ".join([*LOWER, "formats.shared", "formats.loading"]),
    "run": BELOW_RUN,
    "convert": BELOW_RUN,
    "letta": f"{BELOW_RUN} run",
    "northstar": f"{BELOW_RUN} run",
    "pixie": f"{BELOW_RUN} run",
    "": "api model",
    "audit": f"{BELOW_RUN} run",
    "api": f"{BELOW_RUN} run convert",
    "viewer": "api reports stores scoring decisions importers model files",
    "plugins": "model session scoring formats.shared formats.shims",
    "pytest_runs": f"{BELOW_RUN} run",
    "pytest_plugin": f"{BELOW_RUN} run pytest_runs",
}
FREE = {"cli", "__main__"}
"""The outermost rooms may import everything; nothing may import them."""


def test_lazily_made_imports_are_seen(tmp_path):
    source = "def f():\n    from evalwright import cli\n    if f:\n        import evalwright.stores.memory\n"
    (tmp_path / "module.py").write_text(source)
    assert [(room(module), line) for module, line in imports(tmp_path / "module.py")] == [("cli", 2), ("stores", 4)]


def test_every_module_is_in_a_known_room():
    assert {room(name) for _, name in modules()} <= ROOMS.keys() | FREE | {""}


def test_the_map_for_newcomers_has_every_room():
    text = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text()
    rooms = {home.partition(".")[0] for _, name in modules() if (home := room(name)) != "__main__"} - {""}
    assert [home for home in sorted(rooms) if f"`{home}/" not in text and f"`{home}.py`" not in text] == []


def test_files_that_the_map_names_are_there():
    root = SOURCE.parents[1]
    said = re.findall(r"`([\w/]+/\w+\.py)`", (root / "CONTRIBUTING.md").read_text())
    assert [file for file in said if not (SOURCE / file).exists() and not (root / file).exists()] == []


def test_rooms_import_only_what_they_may():
    wrong = [
        f"{path.relative_to(SOURCE)}:{line} imports {module}"
        for path, name in modules()
        if (home := room(name)) not in FREE
        for module, line in imports(path)
        if room(module) not in (home, "", *ROOMS[home].split(), "errors")
    ]
    assert wrong == []


def test_nothing_is_imported_late_from_a_module_that_is_loaded_already():
    """A late import tells a reader that the module is heavy or rarely needed, so it must not be there anyway."""
    paths = {name: path for path, name in modules()}
    at_once = {name: packages(name) | imported_at_once(path, paths) for name, path in paths.items()}
    wrong = {
        f"{path.relative_to(SOURCE)}:{late.lineno} {module}"
        for name, path in paths.items()
        for loaded in [loaded_with(name, at_once)]
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for late in ast.walk(node)
        if isinstance(late, ast.ImportFrom)
        for module in modules_of(late, paths) & loaded
    }
    assert sorted(wrong) == []


def modules_of(node, known) -> set[str]:
    """The modules that a `from ... import` loads, of those that are known."""
    names = {f"{node.module}.{alias.name}" for alias in node.names}
    return names & known.keys() or {str(node.module)} & known.keys()


def imported_at_once(path, known) -> set[str]:
    return {
        module
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and node.col_offset == 0
        for module in modules_of(node, known)
    }


def packages(name) -> set[str]:
    """The packages that a module is in, which are imported before it."""
    parts = name.split(".")
    return {".".join(parts[:i]) for i in range(1, len(parts))}


def loaded_with(name, at_once) -> set[str]:
    loaded, waiting = {name}, [name]
    while waiting:
        new = at_once.get(waiting.pop(), set()) - loaded
        loaded |= new
        waiting += new
    return loaded - {name}


def test_no_two_modules_import_each_other():
    graph = {name: {module for module, _ in imports(path)} for path, name in modules()}
    assert circle(graph) == []


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle, in order; empty without one."""
    done: set[str] = set()
    for start in graph:
        path: list[str] = []
        stack = [(start, iter(sorted(graph[start])))] if start not in done else []
        while stack:
            name, rest = stack[-1]
            path[len(stack) - 1 :] = [name]
            onward = next((other for other in rest if other in graph and other not in done), None)
            if onward is None:
                done.add(name)
                stack.pop()
            elif onward in path:
                return [*path[path.index(onward) :], onward]
            else:
                stack.append((onward, iter(sorted(graph[onward]))))
    return []


def test_a_circle_is_seen():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


WITHOUT_PYDANTIC = ("evaluators", "files", "reports", "scoring", "statistics", "stores", "targets")
"""Rooms on the way of re-evaluating and comparing, which pydantic's import would slow down."""


def test_rooms_that_read_what_machines_wrote_do_without_pydantic():
    names = [name for name in public_modules() if name.split(".")[1] in WITHOUT_PYDANTIC]
    script = f"import importlib, sys; [importlib.import_module(n) for n in {names}]; print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_functions_fit_on_a_screen():
    long = [
        f"{path.relative_to(SOURCE)}:{node.lineno} {node.name}"
        for path, _ in modules()
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno - node.lineno >= 60
    ]
    assert long == []


def test_modules_can_be_read_in_one_sitting():
    assert [name for path, name in modules() if path.read_text().count("\n") > 350] == []


def public_modules():
    return [
        module.name
        for module in pkgutil.walk_packages(evalwright.__path__, "evalwright.")
        if not any(part in module.name for part in (".demo.suite", ".starter", "__main__"))
    ]


def test_public_names_are_there_and_sorted():
    listed = {module: list(getattr(module, "__all__", [])) for module in map(importlib.import_module, public_modules())}
    gone = [f"{module.__name__}.{x}" for module, names in listed.items() for x in names if not hasattr(module, x)]
    assert gone == []
    assert [module.__name__ for module, names in listed.items() if names != in_order(names)] == []


def in_order(names):
    """Constants, then classes, then functions."""
    return sorted(names, key=lambda name: (not name.isupper(), not name[:1].isupper(), name))
