"""Assertions on XML and HTML in a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from xml.parsers import expat

from evalwright.formats.promptfoo.evaluator import Asked
from evalwright.model.result import Evaluation

__all__ = ["contains_html", "contains_xml", "is_html", "is_xml"]

_ELEMENT = re.compile(r"<([A-Za-z_][\w.:-]*)(?:\s[^<>]*)?>.*?</\1\s*>|<[A-Za-z_][\w.:-]*(?:\s[^<>]*)?/>", re.DOTALL)
_TAGS = frozenset(
    [
        "a",
        "abbr",
        "address",
        "article",
        "aside",
        "audio",
        "b",
        "blockquote",
        "body",
        "br",
        "button",
        "canvas",
        "caption",
        "code",
        "col",
        "dd",
        "div",
        "dl",
        "dt",
        "em",
        "embed",
        "fieldset",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "head",
        "header",
        "hr",
        "html",
        "i",
        "iframe",
        "img",
        "input",
        "label",
        "legend",
        "li",
        "link",
        "main",
        "meta",
        "nav",
        "object",
        "ol",
        "option",
        "p",
        "pre",
        "script",
        "section",
        "select",
        "small",
        "span",
        "strong",
        "style",
        "sub",
        "sup",
        "svg",
        "table",
        "tbody",
        "td",
        "textarea",
        "tfoot",
        "th",
        "thead",
        "title",
        "tr",
        "u",
        "ul",
        "video",
    ]
)


def is_xml(question: Asked) -> Evaluation:
    """The whole text is XML, and has the elements of the value (`root.child`)."""
    found = _paths(question.text.strip())
    lacking = [one for one in _wanted(question) if one not in (found or ())]
    return question.of(found is not None and not lacking, "not XML" if found is None else f"no {', '.join(lacking)}")


def contains_xml(question: Asked) -> Evaluation:
    """Some part of the text is such XML."""
    wanted = _wanted(question)
    parts = (_paths(match[0]) for match in _ELEMENT.finditer(question.text))
    return question.of(any(p is not None and set(wanted) <= p for p in parts), "there is no such XML in the output")


def is_html(question: Asked) -> Evaluation:
    """The whole text is HTML: it has no text outside elements, and at least one known element."""
    text = question.text.strip()
    return question.of(text.startswith("<") and text.endswith(">") and _has_html(text), "the output is not HTML")


def contains_html(question: Asked) -> Evaluation:
    """The text contains an HTML element, or any element that is closed."""
    return question.of(_has_html(question.text), "there is no HTML in the output")


def _wanted(question: Asked) -> Sequence[str]:
    value = question.value
    if isinstance(value, dict):
        value = value.get("requiredElements")
    if isinstance(value, str):
        value = [one.strip() for one in value.split(",") if one.strip()]
    return [str(one) for one in value] if isinstance(value, list) else []


def _paths(text: str) -> set[str] | None:
    """The paths of all elements; None if the text is not XML."""
    parser, stack, found = expat.ParserCreate(), list[str](), set[str]()

    def start(name: str, _: object) -> None:
        stack.append(name)
        found.add(".".join(stack))

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: stack.pop()
    parser.EntityDeclHandler = _refuse
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, ValueError):
        return None
    return found


def _refuse(*_: object) -> None:
    raise ValueError("entities of its own")


def _has_html(text: str) -> bool:
    class Tags(HTMLParser):
        opened = 0
        closed = 0
        known = 0

        def handle_starttag(self, tag: str, attrs: object) -> None:
            self.opened += 1
            self.known += tag in _TAGS

        def handle_endtag(self, tag: str) -> None:
            self.closed += 1

    tags = Tags()
    tags.feed(text)
    return bool(tags.known or (tags.opened and tags.closed))
