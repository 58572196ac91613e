"""What providers in users' files return."""

from __future__ import annotations

import math
from typing import Any

from evalwright.errors import TargetError
from evalwright.files.key_paths import as_written
from evalwright.files.numbers import is_number
from evalwright.files.plain import plain
from evalwright.formats.promptfoo.calls import ProviderReply
from evalwright.formats.promptfoo.values import as_javascript

__all__ = ["reply_in"]

_READ = frozenset(("output", "error", "cost", "metadata", "raw", "tokenUsage"))
"""What a reply has a place of its own for; all else is for the assertions."""


def reply_in(returned: Any) -> ProviderReply:
    """The reply in what a provider returned: a mapping with `output` or `error`. Raises TargetError."""
    returned = as_javascript(plain(returned, "output", []))
    if not isinstance(returned, dict):  # a text, too: promptfoo sees no output in it
        raise TargetError(f"the provider returned {as_written(returned)}, expected a mapping with output or error")
    if "output" not in returned and not returned.get("error"):
        raise TargetError(f"the provider returned neither output nor error, but {', '.join(returned) or 'nothing'}")
    usage = returned.get("tokenUsage")
    used = (
        {key: n for key, value in usage.items() if (n := _count(value)) is not None} if isinstance(usage, dict) else {}
    )
    metadata = returned.get("metadata")
    return ProviderReply(
        returned.get("output"),
        _cost_of(returned.get("cost")),
        {key: used.get(key) for key in ("prompt", "completion")} if used else {},
        metadata if isinstance(metadata, dict) else {},
        returned.get("raw"),
        {
            **{key: value for key, value in returned.items() if key not in _READ and value is not None},
            **({"tokenUsage": used} if used else {}),
        },
        str(returned["error"]) if returned.get("error") else None,
    )


def _cost_of(value: Any) -> float | None:
    usable = is_number(value) and math.isfinite(value) and value >= 0
    return float(value) if usable else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
