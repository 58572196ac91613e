"""Checks of what a system did to files."""

from evalwright.model.format import EvaluatorEntry, entry

__all__ = ["EVALUATORS"]

EVALUATORS: dict[str, EvaluatorEntry] = {
    "command": entry(
        "evalwright.evaluators.workspace.command:CommandCheck",
        "A command ends with `expected_exit_code` in a copy of the cell's files, or in `cwd`.",
        see={"code_judge": "the command returns the score"},
        example={"cmd": ["python", "-m", "pytest", "-q"]},
    ),
    "git_diff": entry(
        "evalwright.evaluators.workspace.git_diff:GitDiff",
        "Required files were modified, forbidden ones were not, and the patch is the expected one.",
        example={"must_modify_files": ["src/app.py"], "must_not_modify_files": ["tests/test_app.py"]},
    ),
}
