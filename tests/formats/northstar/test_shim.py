"""Programs that import `northstar.evals`."""

from __future__ import annotations

from pathlib import Path

import warm

SCRIPT = """
import northstar
from northstar.evals import Dataset, EvalSuite
cases = Dataset.from_records([{"id": "a", "messages": [], "expected": {"max_tool_calls": 0}}])
from northstar.evals.graders import Contains, JudgeAuthenticationError
try:
    from northstar import Northstar
except ImportError as error:
    assert hasattr(northstar, "SDK") or "it serves northstar.evals" in str(error)
print(EvalSuite().run(cases).passed_cases, northstar.evals.EvalSuite is EvalSuite, getattr(northstar, "SDK", None))
"""


def said(folder: Path) -> str:
    (folder / "script.py").write_text(SCRIPT)
    return warm.run(["-m", "evalwright.northstar", "script.py"], cwd=folder, check=True).stdout


def test_our_surface_is_served_where_the_package_is_not_installed(tmp_path: Path) -> None:
    assert said(tmp_path) == "1 True None\n"


def test_the_rest_of_an_installed_package_stays(tmp_path: Path) -> None:
    (tmp_path / "northstar").mkdir()
    (tmp_path / "northstar" / "__init__.py").write_text("SDK = 'theirs'\n")
    assert said(tmp_path) == "1 True theirs\n"
