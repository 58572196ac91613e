"""Systems that are models: their client tries again, and the suite does not multiply that."""

from __future__ import annotations

import pytest

from evalwright.model.plan import RetryRule
from evalwright.model.trace import TraceError
from evalwright.run.call import retriable


@pytest.mark.parametrize(("kind", "again"), [("http_5xx", False), ("adapter_error", False), ("timeout", True)])
def test_what_a_client_has_tried_again_is_not_tried_again(kind: str, again: bool) -> None:
    rule = RetryRule(max_attempts=3, on=["*"])
    assert retriable(rule, TraceError(kind, "m"), 1, by_client=True) == again
    assert retriable(rule, TraceError(kind, "m"), 1)
