"""Assertions on XML and HTML in a text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any
from xml.parsers import expat

from evalwright.errors import EvaluatorError
from evalwright.files.key_paths import as_written
from evalwright.formats.promptfoo.evaluator import AssertionInput
from evalwright.model.result import Evaluation

__all__ = ["contains_html", "contains_xml", "is_html", "is_xml"]

_MARK = re.compile(
    r"<!--(?:.*?-->|.*)|<!\[CDATA\[(?:.*?\]\]>|.*)|<\?(?:.*?\?>|.*)"
    r"""|<(?P<end>/?)(?P<name>[^\W\d][\w.:-]*)(?P<attributes>(?:"[^"<]*"|'[^'<]*'|[^"'<>/]|/(?!>))*+)(?P<empty>/?)>""",
    re.DOTALL,
)
"""What is not text in XML: all that has no name is skipped."""
_ATTRIBUTE = re.compile(r"""([^\s=/]+)\s*=\s*(?:"[^"]*"|'[^']*'|\S+)""")
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
_IN_HEAD = frozenset(["html", "head", "title", "base", "link", "meta", "style", "script", "noscript", "template"])
_IN_TABLE = frozenset(["caption", "col", "colgroup", "tbody", "td", "tfoot", "th", "thead", "tr"])
_EMPTY = frozenset([
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
])  # fmt: skip
_ENDS_PARAGRAPH = frozenset([
    "address", "article", "aside", "blockquote", "details", "dialog", "div", "dl", "fieldset", "figcaption", "figure",
    "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "main", "menu", "nav", "ol", "p", "pre",
    "section", "table", "ul",
])  # fmt: skip
_FORMATTING = frozenset(["a", "b", "code", "em", "i", "s", "small", "strong", "u"])
"""Elements that go on where one around them ends."""
_FOREIGN = ("svg", "math")
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
    well_formed, elements = _is_well_formed(question.text), _elements(question.text)
    lacking = [path for path in _wanted_elements(question) if not _has(elements, path)]
    missing = f"no {', '.join(lacking)}" if well_formed else "not XML"
    return question.of(well_formed and not lacking, missing, "the output is such XML")


def contains_xml(question: AssertionInput) -> Evaluation:
    """The elements in the text, which need not be all of it and may have any text in them, are such XML."""
    wanted, elements = _wanted_elements(question), _elements(question.text)
    is_found = bool(elements) and all(_has(elements, path) for path in wanted)
    return question.of(is_found, "there is no such XML in the output", "there is such XML in the output")


def is_html(question: AssertionInput) -> Evaluation:
    """The whole text is HTML: a known element, and no text outside of elements."""
    text = question.text.strip()
    page = _Page()
    page.feed(text)
    page.close()
    is_found = page.known and not page.loose and not text.lower().startswith("<?xml")
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
        if not isinstance(value, list):
            shown = as_written(question.value)
            message = f"{question.kind} needs a value: expected a list as requiredElements, found {shown}"
            raise EvaluatorError(message, "bad_value")
    if isinstance(value, str):
        return [name.strip() for name in value.split(",")]
    return [str(name) for name in value] if isinstance(value, list) else []


def _is_well_formed(text: str) -> bool:
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.EntityDeclHandler = _refuse
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, ValueError):
        return False
    return True


def _refuse(*_: object) -> None:
    raise ValueError("entities of its own")


class _Element:
    """An element while its end is looked for; without a name, what is in no element."""

    def __init__(self, name: str = "", attributes: str = "") -> None:
        self.name = name
        self.attributes = [f"@_{match[1]}" for match in _ATTRIBUTE.finditer(attributes)]
        self.children: list[tuple[str, Any]] = []
        self.has_text = False

    def value(self) -> Any:
        """Its parts by name, a list of those of the same name; a text if it has no parts."""
        parts: dict[str, Any] = dict.fromkeys(self.attributes, "")
        for name, child in self.children:
            parts.setdefault(name, []).append(child)
        if not parts:
            return ""
        if self.has_text:
            parts["#text"] = ""
        return {name: part[0] if isinstance(part, list) and len(part) == 1 else part for name, part in parts.items()}


def _elements(text: str) -> Any:
    """The elements with both tags. Those around a tag that is not theirs have no end of their own: only their children
    up to there count."""
    top, at = _Element(), 0
    opened = [top]
    for mark in _MARK.finditer(text):
        opened[-1].has_text |= bool(text[at : mark.start()].strip())
        at, name = mark.end(), mark["name"]
        if name is None:
            continue
        if not mark["end"]:
            opened.append(_Element(name, mark["attributes"]))
        if (mark["end"] or mark["empty"]) and opened[-1].name == name:
            value = opened.pop().value()
            opened[-1].children.append((name, value))
        elif mark["end"]:
            _dissolve(opened)
    _dissolve(opened)
    return top.value()


def _dissolve(opened: list[_Element]) -> None:
    for element in opened[1:]:
        opened[0].children += element.children
    del opened[1:]


def _has(elements: Any, path: str) -> bool:
    """Whether there is an element at a path; as in promptfoo, no path leads into one of several of the same name."""
    for name in path.split("."):
        if not isinstance(elements, dict) or name not in elements:
            return False
        elements = elements[name]
    return True


class _Page(HTMLParser):
    """Whether there is a known element, and text outside of all elements and of the page's own body."""

    def __init__(self) -> None:
        super().__init__()
        self.known = self.loose = False
        self._open: list[str] = []
        self._number = Counter[str]()
        """Of each name among those that are open, which may be many."""
        self._has_content = self._has_body = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in _IN_TABLE and not self._number["table"]:
            return
        self.known = self.known or tag in _ELEMENTS or "-" in tag
        self._has_body = self._has_body or (tag == "body" and not self._has_content)
        self._has_content = self._has_content or tag not in _IN_HEAD
        if tag in _ENDS_PARAGRAPH:
            self.handle_endtag("p")
        if tag == "a":
            self.handle_endtag("a")
        if tag not in _EMPTY and tag not in _WRAPPERS:
            self._open.append(tag)
            self._number[tag] += 1

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        """As in browsers, the slash of `<p/>` means nothing outside of drawings and formulas."""
        self.handle_starttag(tag, attrs)
        if any(self._number[name] for name in _FOREIGN):
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._number[tag]:
            going_on = []
            while (name := self._open.pop()) != tag:
                if name in _FORMATTING:
                    going_on.append(name)
                else:
                    self._number[name] -= 1
            self._number[tag] -= 1
            self._open += reversed(going_on)
        elif tag == "p" and self._has_content:  # which makes an empty paragraph
            self.known = True

    def handle_data(self, data: str) -> None:
        if data.strip():
            self._has_content = True
            self.loose = self.loose or not (self._open or self._has_body)
