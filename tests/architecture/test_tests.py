"""The marks of the tests themselves."""

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_slow_tests_say_why():
    wordless = []
    for path in TESTS.rglob("*.py"):
        source = path.read_text()
        if "mark.slow" not in source:
            continue
        tree = ast.parse(source)
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
        reasoned = {id(call.func) for call in calls}
        wordless += [
            f"{path.relative_to(TESTS)}:{node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and ast.unparse(node) == "pytest.mark.slow" and id(node) not in reasoned
        ]
    assert wordless == []
