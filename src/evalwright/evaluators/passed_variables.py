"""Which variables of the environment the program of an evaluator gets."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from evalwright.errors import EvaluatorError
from evalwright.session import environment

__all__ = ["passed_variables"]


def passed_variables(
    names: Collection[str], always: Iterable[str], detail: dict[str, Any] | None = None
) -> dict[str, str]:
    """The variables that an evaluator names, and those of `always` that are set.

    Raises EvaluatorError, with this detail, if one that it names is not set.
    """
    variables = environment()
    if missing := [name for name in names if name not in variables]:
        raise EvaluatorError(f"'env' names variables that are not set: {', '.join(missing)}", "env_missing", detail)
    return {name: variables[name] for name in (*always, *names) if name in variables}
