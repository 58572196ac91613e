"""The rooms of the package and the direction in which they may import, lazily made imports included."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import evalwright

SOURCE = Path(evalwright.__file__).parent
ROOMS = {
    "errors": set(),
    "model": {"errors"},
    "files": {"errors", "collector"},
    "registry": {"errors"},
    "processes": {"errors"},
    "collector": set(),
    "sandbox": {"errors"},
    "llm": {"errors", "model", "files", "registry"},
    "workspaces": {"errors", "model", "files", "registry", "processes"},
    "targets": {"errors", "model", "files", "registry", "processes", "sandbox", "llm", "workspaces", "capture"},
    "evaluators": {"errors", "model", "files", "registry", "processes", "sandbox", "llm"},
    "statistics": {"errors"},
    "scoring": {"errors", "model", "statistics", "collector"},
    "stores": {"errors", "model", "files"},
    "mirrors": {"errors", "model", "files", "registry", "targets"},
    "enrichers": {"errors", "model", "files", "registry", "targets", "sandbox"},
    "dialects": {
        "errors", "model", "files", "registry", "evaluators", "targets", "workspaces", "mirrors", "enrichers", "stores",
        "scoring", "llm", "collector", "sandbox",
    },
    "run": {
        "errors", "model", "files", "registry", "dialects", "targets", "evaluators", "scoring", "stores", "llm",
        "workspaces", "mirrors", "enrichers", "processes",
    },
    "agentv": {
        "errors", "model", "files", "registry", "processes", "sandbox", "llm", "evaluators", "targets", "scoring",
        "reports",
    },
    "letta": {
        "errors", "model", "files", "registry", "dialects", "targets", "evaluators", "scoring", "stores", "llm", "run",
        "reports",
    },
    "northstar": {
        "errors", "model", "files", "registry", "dialects", "targets", "evaluators", "scoring", "stores", "llm", "run",
        "reports",
    },
    "capture": {"errors", "model"},
    "pixie": {
        "errors", "model", "files", "registry", "capture", "dialects", "targets", "evaluators", "scoring", "stores",
        "llm", "run", "reports",
    },
    "pytest_runs": {
        "errors", "model", "files", "dialects", "targets", "evaluators", "scoring", "stores", "run", "reports",
        "capture", "pixie",
    },
    "pytest_plugin": {"errors", "run", "reports", "pixie", "pytest_runs"},
    "reports": {"errors", "model", "scoring"},
    "convert": {"errors", "model", "files", "registry", "dialects", "evaluators", "run", "scoring"},
    "demo": {"errors"},
    "testing": {"errors", "model", "stores"},
}  # fmt: skip
FREE = {"cli", "__main__"}
"""The outermost room may import everything; nothing may import it."""


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts != ("__init__",) and "suite" not in parts and "starter" not in parts:
            yield path, parts[0]


def imported_rooms(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [
                f"{node.module}.{alias.name}" if node.module == "evalwright" else str(node.module)
                for alias in node.names
            ]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name.startswith("evalwright."):
                yield name.split(".")[1], node.lineno


def test_lazily_made_imports_are_seen(tmp_path):
    source = "def f():\n    from evalwright import cli\n    if f:\n        import evalwright.stores.memory\n"
    (tmp_path / "module.py").write_text(source)
    assert list(imported_rooms(tmp_path / "module.py")) == [("cli", 2), ("stores", 4)]


def test_every_module_is_in_a_known_room():
    assert {room for _, room in modules()} <= ROOMS.keys() | FREE


def test_rooms_import_only_what_they_may():
    wrong = [
        f"{path.relative_to(SOURCE)}:{line} imports {room}"
        for path, home in modules()
        if home not in FREE
        for room, line in imported_rooms(path)
        if room != home and room not in ROOMS[home] and room != "__version__"
    ]
    assert wrong == []


WITHOUT_PYDANTIC = ("evaluators", "files", "reports", "scoring", "statistics", "stores", "targets")
"""Rooms on the way of judging again and comparing, which pydantic's import would slow down."""


def test_rooms_that_read_what_machines_wrote_do_without_pydantic():
    names = [name for name in public_modules() if name.split(".")[1] in WITHOUT_PYDANTIC]
    script = f"import importlib, sys; [importlib.import_module(n) for n in {names}]; print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_functions_fit_on_a_screen():
    long = [
        f"{path.relative_to(SOURCE)}:{node.lineno} {node.name}"
        for path, _ in modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno - node.lineno >= 60
    ]
    assert long == []


def public_modules():
    return [
        module.name
        for module in pkgutil.walk_packages(evalwright.__path__, "evalwright.")
        if not any(part in module.name for part in (".demo.suite", ".starter", "__main__"))
    ]


@pytest.mark.parametrize("name", public_modules())
def test_public_names_are_there_and_sorted(name):
    module = importlib.import_module(name)
    listed = list(getattr(module, "__all__", []))
    assert [x for x in listed if not hasattr(module, x)] == []
    groups = (
        sorted(x for x in listed if x.isupper()),
        sorted(x for x in listed if not x.isupper() and x[:1].isupper()),
        sorted(x for x in listed if not x[:1].isupper()),
    )
    assert listed == [x for group in groups for x in group]
