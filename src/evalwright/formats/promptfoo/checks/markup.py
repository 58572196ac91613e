"""Assertions on XML and HTML in a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from xml.parsers import expat

from evalwright.formats.promptfoo.evaluator import AssertionInput
from evalwright.model.result import Evaluation

__all__ = ["contains_html", "contains_xml", "is_html", "is_xml"]

_ELEMENT = re.compile(r"<([A-Za-z_][\w.:-]*)(?:\s[^<>]*)?>.*?</\1\s*>|<[A-Za-z_][\w.:-]*(?:\s[^<>]*)?/>", re.DOTALL)
_ELEMENTS = frozenset([
    "html", "head", "title", "base", "link", "meta", "style", "body", "article", "section", "nav", "aside", "h1",
    "h2", "h3", "h4", "h5", "h6", "header", "footer", "address", "p", "hr", "pre", "blockquote", "ol", "ul", "li",
    "dl", "dt", "dd", "figure", "figcaption", "main", "div", "a", "em", "strong", "small", "s", "cite", "q", "dfn",
    "abbr", "ruby", "rt", "rp", "data", "time", "code", "var", "samp", "kbd", "sub", "sup", "i", "b", "u", "mark",
    "bdi", "bdo", "span", "br", "wbr", "img", "iframe", "embed", "object", "param", "picture", "source", "video",
    "audio", "track", "map", "area", "svg", "math", "script", "noscript", "canvas", "ins", "del", "table", "caption",
    "colgroup", "col", "tbody", "thead", "tfoot", "tr", "td", "th", "form", "label", "input", "button", "select",
    "datalist", "optgroup", "option", "textarea", "output", "progress", "meter", "fieldset", "legend", "details",
    "summary", "dialog", "menu", "slot", "template",
])  # fmt: skip
_WRAPPERS = ("html", "head", "body")
_EMPTY = frozenset([
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
])  # fmt: skip
_ENDS_PARAGRAPH = frozenset([
    "address", "article", "aside", "blockquote", "details", "dialog", "div", "dl", "fieldset", "figcaption", "figure",
    "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "main", "menu", "nav", "ol", "p", "pre",
    "section", "table", "ul",
])  # fmt: skip
_BODY = re.compile(r"<body(?=[\s>/])", re.IGNORECASE)
_OPENING = re.compile(r"<[a-zA-Z][\w-]*(?:\s[^<>]*)?>", re.ASCII)
_CLOSING = re.compile(r"</[a-zA-Z][\w-]*\s*>", re.ASCII)
_COMMON = (
    "html|head|body|div|span|p|a|img|h[1-6]|ul|ol|li|table|tr|td|th|form|input|button|script|style|link|meta|br|hr"
)
_SIGNS = (
    (2, re.compile(r"<!DOCTYPE\s+html", re.IGNORECASE)),
    (2, re.compile(rf"<(?:{_COMMON})\b", re.IGNORECASE | re.ASCII)),
    (1, re.compile(r"<[a-zA-Z][\w-]*(?:\s[^<>]*)?/>", re.ASCII)),
    (1, re.compile(r"&(?:[a-zA-Z]+|#[0-9]+|#x[0-9a-fA-F]+);")),
    (1, re.compile(r"""\s[a-zA-Z-]+=\s*["'][^"']*["']""")),
)
"""How much each pattern in a text says that it contains HTML; two points are enough."""


def is_xml(question: AssertionInput) -> Evaluation:
    """The whole text is XML, and has the elements of the value (`root.child`)."""
    paths = _paths(question.text.strip())
    lacking = [element for element in _wanted_elements(question) if element not in (paths or ())]
    missing = "not XML" if paths is None else f"no {', '.join(lacking)}"
    return question.of(paths is not None and not lacking, missing, "the output is such XML")


def contains_xml(question: AssertionInput) -> Evaluation:
    """Some part of the text is such XML."""
    wanted = _wanted_elements(question)
    parts = (_paths(match[0]) for match in _ELEMENT.finditer(question.text))
    is_found = any(p is not None and set(wanted) <= p for p in parts)
    return question.of(is_found, "there is no such XML in the output", "there is such XML in the output")


def is_html(question: AssertionInput) -> Evaluation:
    """The whole text is HTML: a known element, and no text outside elements unless there is a `<body>`."""
    text = question.text.strip()
    page = _Page()
    page.feed(text)
    page.close()
    whole = page.known and (not page.loose or bool(_BODY.search(text)))
    is_found = whole and not text.lower().startswith("<?xml")
    return question.of(is_found, "the output is not HTML", "the output is HTML")


def contains_html(question: AssertionInput) -> Evaluation:
    """There are enough signs of HTML in the text."""
    text = question.text
    points = bool(_OPENING.search(text)) + bool(_CLOSING.search(text)) + ("-->" in text.partition("<!--")[2])
    points += sum(points_of_sign for points_of_sign, pattern in _SIGNS if pattern.search(text))
    return question.of(points >= 2, "there is no HTML in the output", "there is HTML in the output")


def _wanted_elements(question: AssertionInput) -> Sequence[str]:
    value = question.value
    if isinstance(value, dict):
        value = value.get("requiredElements")
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",") if name.strip()]
    return [str(name) for name in value] if isinstance(value, list) else []


def _paths(text: str) -> set[str] | None:
    """The paths of all elements; None if the text is not XML."""
    parser, stack, paths = expat.ParserCreate(), list[str](), set[str]()

    def start(name: str, _: object) -> None:
        stack.append(name)
        paths.add(".".join(stack))

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: stack.pop()
    parser.EntityDeclHandler = _refuse
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, ValueError):
        return None
    return paths


def _refuse(*_: object) -> None:
    raise ValueError("entities of its own")


class _Page(HTMLParser):
    """Whether there is a known element, and text outside of all elements."""

    def __init__(self) -> None:
        super().__init__()
        self.known = self.loose = False
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.known = self.known or tag in _ELEMENTS or "-" in tag
        if tag in _ENDS_PARAGRAPH:
            self.handle_endtag("p")
        if tag not in _EMPTY and tag not in _WRAPPERS:
            self._open.append(tag)

    handle_startendtag = handle_starttag
    """As in browsers, the slash of `<p/>` means nothing."""

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        self.loose = self.loose or (not self._open and bool(data.strip()))
