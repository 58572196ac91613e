"""Templates, escaped everywhere, and their common helpers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from evalwright.errors import counted, money
from evalwright.reports import numbers
from evalwright.reports.statuses import shown_status
from evalwright.reports.text import json_line
from evalwright.viewer.texts import few, first_part, pretty, shell_word, short_name, visible

__all__ = ["ASSETS", "Asset", "DocumentStyle", "assets", "page_text", "style_of_documents"]

ASSETS = {
    "style.css": "text/css; charset=utf-8",
    "viewer.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


class Asset(NamedTuple):
    """A file of ours, under a name that changes with it."""

    name: str
    kind: str
    content: bytes


@cache
def assets() -> dict[str, Asset]:
    """By plain name."""
    parts = {}
    for name, kind in ASSETS.items():
        content = (files("evalwright.viewer") / "assets" / name).read_bytes()
        stem, _, ending = name.rpartition(".")
        hashed = f"{stem}.{hashlib.sha256(content).hexdigest()[:12]}.{ending}"
        parts[name] = Asset(hashed, kind, content)
    return parts


class DocumentStyle(NamedTuple):
    """The style of a self-contained page, and its SHA-256, by which the page's policy allows only this style."""

    text: str
    digest: bytes


def style_of_documents() -> DocumentStyle:
    text = assets()["style.css"].content.decode().replace("\n", "")
    # The only text that is not escaped: it is our own file, and entities mean nothing within `style`.
    return DocumentStyle(Markup(text), hashlib.sha256(text.encode()).digest())


def _as_content(text: object) -> Markup:
    """A text escaped to stand between tags, where quotes mean nothing: escaped ones are five times as long, and JSON
    is full of them. Not for attributes."""
    return Markup(str(escape(text)).replace("&#34;", '"').replace("&#39;", "'"))


def page_text(template: str, context: Mapping[str, Any]) -> str:
    """A page. `context` is plain data; every value is escaped."""
    return _environment().get_template(template).render(context)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("evalwright.viewer", "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "duration": lambda ms: "" if ms is None else numbers.duration(ms),
        "money": lambda dollars: "" if dollars is None else money(dollars),
        "signed_duration": numbers.signed_duration,
        "signed_money": lambda dollars: f"{'−' if dollars < 0 else '+'}{money(abs(dollars))}",
        "percent": numbers.percent,
        "interval": numbers.interval,
        "count": lambda number: f"{number:,}",
        "counted": counted,
        "name": short_name,
        "begin": first_part,
        "few": few,
        "json_line": json_line,
        "content": _as_content,
        "visible": lambda text: visible(str(text)),
        "moment": _moment,
        "plain": pretty,
        "word": shell_word,
        "shown_status": lambda status, scored: shown_status(status, scored=scored),
        "size": _size,
        "score": lambda score: "" if score is None else f"{score:.3g}",
    }
    return made


def _moment(value: datetime | str | None) -> str:
    """A date with its time in UTC, as `time` elements have it; the script shows the reader's zone."""
    if value is None:
        return ""
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _size(characters: int) -> str:
    return f"{characters / 1000:,.0f} kB" if characters >= 1000 else f"{characters} characters"
