"""HTML that is safe by construction: whatever is not an element becomes escaped text."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from evalwright.reports.text import harmless

__all__ = ["Child", "Html", "element", "side_by_side"]

_EMPTY = frozenset({"meta"})


class Html(str):
    """Text that is HTML already; only `element`, `joined` and constants of this package make it."""

    __slots__ = ()


Child = str | Iterable[str]
"""A text, an element, or several of them."""


def element(tag: str, /, *children: Child, **attributes: str) -> Html:
    """`<tag attributes>children</tag>`; an attribute ends in `_` if its name is a Python keyword."""
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(harmless(value))}"' for key, value in attributes.items()
    )
    return Html(f"<{tag}{words}>") if tag in _EMPTY else Html(f"<{tag}{words}>{side_by_side(*children)}</{tag}>")


def side_by_side(*children: Child) -> Html:
    """The children one after another."""
    return Html("".join(map(_html, children)))


def _html(child: Child) -> str:
    if isinstance(child, Html):
        return child
    return escape(harmless(child)) if isinstance(child, str) else side_by_side(*child)
