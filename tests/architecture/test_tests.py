"""The tests themselves: their marks, their size, and what they share."""

import ast
import re
from pathlib import Path

from architecture.source import nodes

TESTS = Path(__file__).parents[1]
WORDLESS = re.compile(r"pytest\.mark\.slow\b(?!\(\s*[frb]*[\"'][^\"'])")


def test_slow_tests_say_why():
    marked = [(path, path.read_text()) for path in TESTS.rglob("*.py") if path != Path(__file__)]
    wordless = [path.relative_to(TESTS) for path, text in marked if WORDLESS.search(text)]
    assert wordless == []


def test_tests_take_nothing_from_other_tests():
    """What several need is in a module of its own, so that each module of tests can be changed by itself."""
    taken = [
        f"{path.relative_to(TESTS)}:{node.lineno} {node.module}"
        for path in TESTS.rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom)
        and str(node.module).rpartition(".")[2].startswith("test_")
        and (TESTS / f"{str(node.module).replace('.', '/')}.py").exists()
    ]
    assert taken == []


def test_a_module_of_tests_has_one_subject():
    """Four hundred lines are about thirty tests: with more, those of one feature are hard to find."""
    sizes = {path: path.read_text().count("\n") for path in TESTS.rglob("*.py")}
    assert [path.relative_to(TESTS) for path, lines in sizes.items() if lines > 400] == []
