"""Words by the rules of the Penn Treebank, split as by js-rouge 3, which promptfoo uses."""

from __future__ import annotations

import re
from unicodedata import category

from evalwright.formats.shared.javascript.characters import CLASSES

__all__ = ["treebank_words"]

_SPACES = re.compile(rf"[{CLASSES['s']}\x85]+")
_QUOTES = re.compile("``|''|\"")
_PUNCTUATION = tuple(
    (re.compile(expression, re.ASCII), meant)
    for expression, meant in (
        (r"[;@#$%&]", r" \g<0> "),
        (r"([^.])(?<!\b[A-Za-z]\.[A-Za-z])(\.)([\])}>' ]*)\Z", r"\1 \2\3 "),
        (r"[?!]", r" \g<0> "),
        (r"[\][(){}<>]", r" \g<0> "),
        ("--", " -- "),
    )
)
_ENDINGS = (
    (re.compile(r"([^'])' "), r"\1 ' "),
    (re.compile(r"'([sSmMdD]) "), r" '\1 "),
    (re.compile(r"('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) "), r" \1 "),
)
_IN_WORDS = r"[\w\u0300-\u036f\u200c\u200d]"
_CONTRACTIONS = tuple(
    re.compile(f"(?<!{_IN_WORDS}){parts}(?!{_IN_WORDS})", re.IGNORECASE)
    for parts in (
        "(can)(not)", "(d)('ye)", "(gim)(me)", "(gon)(na)", "(got)(ta)", "(lem)(me)", "(more)('n)", "(wan)(na)(?= )",
        "('t)(is)", "('t)(was)",
    )
)  # fmt: skip


def treebank_words(text: str) -> list[str]:
    """The words and marks of a sentence."""
    text = _SPACES.sub(" ", text).strip(" ")
    if not text:
        return []
    found = _with_quotes(text).replace("...", " ... ")
    found = re.sub(r"[:,](?!\d)", r" \g<0> ", found)
    for pattern, meant in _PUNCTUATION:
        found = pattern.sub(meant, found)
    found = f" {found} "
    for pattern, meant in _ENDINGS:
        found = pattern.sub(meant, found)
    for pattern in _CONTRACTIONS:
        found = pattern.sub(r" \1 \2 ", found)
    return [word for word in found.split(" ") if word]


def _with_quotes(text: str) -> str:
    """The text with opening quotation marks as `` and closing ones as ''."""
    inside = False

    def meant(found: re.Match[str]) -> str:
        nonlocal inside
        inside = found[0] == "``" or (not inside and _opens(text, found))
        return " `` " if inside else " '' "

    return _QUOTES.sub(meant, text)


def _opens(text: str, found: re.Match[str]) -> bool:
    before = text[found.start() - 1] if found.start() else ""
    kind = category(before) if before else ""
    if before and (found.end() == len(text) and not (before in " <" or kind == "Ps")):
        return False
    if not (not before or before in " <" or kind[0] == "P" or text[: found.start()].endswith("``")):
        return False
    if before and before in ".!?":
        return False
    return found[0] == '"' or _is_closed(text, found)


def _is_closed(text: str, found: re.Match[str]) -> bool:
    """Whether two apostrophes precede a word, and the next quotation mark is of the same kind."""
    after = text[found.end() : found.end() + 1]
    if not found.start() or not after or not (category(after)[0] in "LN" or category(after) in ("Sc", "Ps")):
        return False
    following = _QUOTES.search(text, found.end())
    return following is not None and following[0] == "''"
