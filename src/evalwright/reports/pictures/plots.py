"""Plots as SVG: intervals below each other (forest), and the power against the number of cases.

Self-contained: title and description for readers who cannot see it, no script, no embedded font, colours for light
and dark. Data is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence

from evalwright.reports.intervals import ForestRow, Ruler, numbers_of, range_of, shown
from evalwright.reports.pictures.elements import Child, Html, element
from evalwright.reports.text import one_line, width

__all__ = ["forest_svg", "power_svg"]

_STYLE = Html(
    ".plot{--ink:#1c2024;--soft:#5b636b;--pass:#0b6b35;--fail:#b3261e;--open:#2f6fd6;color-scheme:light dark}"
    "@media(prefers-color-scheme:dark){.plot{--ink:#e6e8ea;--soft:#a5abb2;--pass:#5fd08f;--fail:#ff8a80;--open:#7eb0ff}}"
    ".plot text{font:13px system-ui,sans-serif;fill:var(--ink)}.plot .soft{fill:var(--soft)}"
    ".plot .zero{stroke:var(--soft)}.plot .margin{stroke:var(--soft);stroke-dasharray:3 3}"
    ".plot .pass{stroke:var(--pass);fill:var(--pass)}.plot .fail{stroke:var(--fail);fill:var(--fail)}"
    ".plot .open{stroke:var(--open);fill:var(--open)}.plot .curve{fill:none;stroke:var(--open);stroke-width:2}"
)
_WIDTH, _ROW = 720, 24
_LETTER = 8
"""Width of a letter: slightly more than in the widest common font."""
_INTERVALS, _GAP, _TICK = 260, 14, 76
"""Width of the intervals, of the text beside them, and of a number below them."""


def forest_svg(title: str, rows: Sequence[ForestRow], *, margin: float = 0.0, points: bool = True) -> Html:
    """Differences with their intervals below each other, a line at 0 and one at -margin.

    With `points` the values are shares and shown in percentage points.
    """
    factor, unit = (100, "pp") if points else (1, "")
    names, numbers = [one_line(row.label, 32) for row in rows], [numbers_of(row, factor, margin) for row in rows]
    start = _LETTER * max(map(width, names)) + _GAP
    across = start + _INTERVALS + _GAP + _LETTER * max(map(len, numbers))
    scale = Ruler(*range_of(rows, margin, points=points), start, _INTERVALS)
    bottom = _ROW * (len(rows) + 1) + 6
    message = "; ".join(f"{row.label}: {number}" for row, number in zip(rows, numbers, strict=True))
    parts: list[Child] = [_vertical(scale.at(0), bottom, "zero")]
    if margin:
        parts.append(_vertical(scale.at(-margin), bottom, "margin"))
    for place, (row, name, number) in enumerate(zip(rows, names, numbers, strict=True), 1):
        parts += _forest_row(row, scale, place * _ROW, (name, number, across))
    ends = [(scale.low, "start"), (0.0, "middle"), (scale.high, "end")]
    parts += [
        _tick(f"{shown(value, factor, (scale.low, scale.high))} {unit}".strip(), scale.at(value), bottom + 18, anchor)
        for value, anchor in ends
        if not value or abs(scale.at(value) - scale.at(0)) > 1.5 * _TICK  # 0 stays where two have no room
    ]
    return _svg(title, f"{title} {message}", across, bottom + 26, parts)


def _forest_row(row: ForestRow, scale: Ruler, y: int, texts: tuple[str, str, int]) -> list[Html]:
    name, number, across = texts
    low, value, high = (f"{scale.at(x):.1f}" for x in (row.low, row.value, row.high))
    weight = {"font_weight": "600"} if row.strong else {}
    return [
        element("text", name, x="0", y=f"{y + 4}", **weight),
        element(
            "line", x1=low, x2=high, y1=f"{y}", y2=f"{y}", class_=row.side, stroke_width="3" if row.strong else "2"
        ),
        element("circle", cx=value, cy=f"{y}", r="5" if row.strong else "4", class_=row.side),
        element("text", number, x=f"{across}", y=f"{y + 4}", text_anchor="end", **weight),
    ]


def _vertical(x: float, bottom: float, name: str) -> Html:
    return element("line", x1=f"{x:.1f}", x2=f"{x:.1f}", y1="8", y2=f"{bottom}", class_=name)


def _horizontal(start: str, end: str, y: float, name: str, **attributes: str) -> Html:
    return element("line", x1=start, x2=end, y1=f"{y:.1f}", y2=f"{y:.1f}", class_=name, **attributes)


def _svg(title: str, description: str, across: float, height: float, parts: Sequence[Child]) -> Html:
    return element(
        "svg",
        element("title", title),
        element("desc", description),
        element("style", _STYLE),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {across:.0f} {height:.0f}",
        width=f"{across:.0f}",
        height=f"{height:.0f}",
        role="img",
        class_="plot",
    )


def power_svg(title: str, curves: Sequence[tuple[str, Sequence[tuple[int, float]]]], power: float) -> Html:
    """The power of each curve against the number of cases, and a line at the power asked for."""
    left, bottom, top, right = 60.0, 250.0, 16.0, float(_WIDTH - 190)
    most = max((n for _, points in curves for n, _ in points), default=1)
    across, up = Ruler(0, most, left, right - left), Ruler(0, 1, bottom, top - bottom)
    parts: list[Child] = [
        _horizontal(f"{left}", f"{right}", up.at(power), "margin"),
        _horizontal(f"{left}", f"{right}", bottom, "zero"),
        _tick("cases", across.at(0), bottom + 18, "start"),
        *(_tick(f"{level:.0%}", left - 8, up.at(level) + 4, "end") for level in (0.0, power, 1.0)),
        *(_tick(f"{round(n):,}", across.at(n), bottom + 18, "middle") for n in (most / 2, most)),
    ]
    heights: list[float] = []
    for label, points in curves:
        places = [(across.at(n), up.at(chance)) for n, chance in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(element("polyline", points=path, class_="curve"))
        x, y = places[-1] if places else (left, bottom)
        while any(abs(y - other) < 16 for other in heights):  # names of curves that end together stand below each other
            y += 16
        heights.append(y)
        parts.append(_tick(one_line(label, 26), x + 8, y + 4, "start"))
    message = "; ".join(f"{label}: " + ", ".join(f"{n:,} cases {p:.0%}" for n, p in points) for label, points in curves)
    return _svg(title, f"{title} {message}", _WIDTH, bottom + 30, parts)


def _tick(text: str, x: float, y: float, anchor: str) -> Html:
    return element("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, class_="soft")
