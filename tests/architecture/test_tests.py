"""The marks of the tests themselves."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
WORDLESS = re.compile(r"pytest\.mark\.slow\b(?!\(\s*[frb]*[\"'][^\"'])")


def test_slow_tests_say_why():
    marked = [(path, path.read_text()) for path in TESTS.rglob("*.py") if path != Path(__file__)]
    wordless = [path.relative_to(TESTS) for path, text in marked if WORDLESS.search(text)]
    assert wordless == []
