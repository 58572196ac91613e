"""Evaluators that run the user's code."""

from evalwright.model.format import EvaluatorEntry, entry

__all__ = ["EVALUATORS"]

EVALUATORS: dict[str, EvaluatorEntry] = {
    "code_judge": entry(
        "evalwright.evaluators.code.judge:CodeJudge",
        "Score, hits and misses from a program: JSON on stdin, JSON on stdout.",
        format="AgentV",
        see={"command": "the exit code decides", "python_code": "a function instead of a program"},
        example={"script": ["python", "judge.py"]},
    ),
    "python_code": entry(
        "evalwright.evaluators.code.checks:PythonCode",
        "The Python function `validate(output, case, run)` in `code` returns a pass.",
        format="NorthStar",
        see={"typescript_code": "in TypeScript", "code_judge": "any program"},
        example={"code": "def validate(output, case, run):\n    return len(output) < 200\n"},
    ),
    "python_function": entry(
        "evalwright.evaluators.code.function:FunctionEvaluator",
        "The Python function `function` returns a pass or a score; its parameters select what it gets.",
        see={"python_code": "code in the file, in a process of its own"},
        example={"function": "checks:short", "threshold": 0.8},
    ),
    "typescript_code": entry(
        "evalwright.evaluators.code.checks:TypeScriptCode",
        "The exported TypeScript function `validate` in `code` returns a pass.",
        format="NorthStar",
        see={"python_code": "in Python"},
        example={"code": "export function validate(output) { return output.length < 200; }"},
    ),
}
