"""`northstar.evals.graders`: the error of a judge without a key, and all that `northstar.evals` has too."""

from __future__ import annotations

from typing import Any

import evalwright.northstar
from evalwright.formats.northstar.surface.judge_keys import (
    JudgeAuthenticationError,
    check_key,
    failure_message,
    required_key,
)

__all__ = ["JudgeAuthenticationError"]

_check_judge_prerequisites = check_key
_judge_failure_message = failure_message
_required_api_key_env = required_key
"""As the original calls them, for tests that import these."""


def __getattr__(name: str) -> Any:
    return getattr(evalwright.northstar, name)
