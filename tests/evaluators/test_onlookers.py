"""Evaluators that only look may return one evaluation for many traces; whoever evaluates gets one of their own."""

from __future__ import annotations

import pytest

from evalwright.evaluators.conversation.tool_use import ForbiddenTools, RequiredTools
from evalwright.evaluators.onlooker import Onlooker
from evalwright.testing import a_case, a_trace


@pytest.mark.parametrize("check", [ForbiddenTools(["pay"]), RequiredTools([]), RequiredTools(["pay"])])
def test_what_is_done_to_one_evaluation_reaches_no_other(check: Onlooker) -> None:
    first = check.evaluate(a_case(), a_trace())
    told = {key: [*words] for key, words in first.detail.items()}
    assert told
    for words in first.detail.values():
        words.append("changed")
    assert check.evaluate(a_case(), a_trace()).detail == told
