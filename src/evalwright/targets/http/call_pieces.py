"""Tool calls that arrive in pieces with an `index`, as OpenAI's API sends them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.targets.http.mapping import tool_call_in

__all__ = ["CallPieces"]


class CallPieces:
    """Joins the argument texts of each call.

    Some servers give all calls the same index: another id or name begins another call.
    """

    def __init__(self) -> None:
        self.all: list[dict[str, Any]] = []
        """The calls so far, as `{id, name, arguments}`."""
        self.unread: list[Any] = []
        """What is no call."""
        self._indexed: dict[int, dict[str, Any]] = {}

    def add(self, items: Any) -> None:
        """Add a call or piece, or a list of them."""
        for item in items if isinstance(items, list) else [items]:
            call = tool_call_in(item)
            if call is None:
                self.unread += [] if item is None else [item]
                continue
            index = item.get("index")
            earlier = self._indexed.get(index) if isinstance(index, int) else None
            if earlier is None or any(earlier[key] and call[key] not in (None, earlier[key]) for key in ("id", "name")):
                self.all.append(call)
                if isinstance(index, int):
                    self._indexed[index] = call
            else:
                _join(earlier, call)


def _join(call: dict[str, Any], piece: Mapping[str, Any]) -> None:
    for key in ("id", "name"):
        call[key] = call[key] or piece[key]
    begun, more = call["arguments"], piece["arguments"]
    call["arguments"] = begun + more if isinstance(begun, str) and isinstance(more, str) else begun or more
