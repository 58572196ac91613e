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
    words = _with_quotes(text).replace("...", " ... ")
    words = re.sub(r"[:,](?!\d)", r" \g<0> ", words)
    for pattern, meant in _PUNCTUATION:
        words = pattern.sub(meant, words)
    words = f" {words} "
    for pattern, meant in _ENDINGS:
        words = pattern.sub(meant, words)
    for pattern in _CONTRACTIONS:
        words = pattern.sub(r" \1 \2 ", words)
    return [word for word in words.split(" ") if word]


def _with_quotes(text: str) -> str:
    """The text with opening quotation marks as `` and closing ones as ''."""
    inside = False

    def meant(match: re.Match[str]) -> str:
        nonlocal inside
        inside = match[0] == "``" or (not inside and _opens(text, match))
        return " `` " if inside else " '' "

    return _QUOTES.sub(meant, text)


def _opens(text: str, match: re.Match[str]) -> bool:
    before = text[match.start() - 1] if match.start() else ""
    kind = category(before) if before else ""
    if before and (match.end() == len(text) and not (before in " <" or kind == "Ps")):
        return False
    if not (not before or before in " <" or kind[0] == "P" or text[: match.start()].endswith("``")):
        return False
    if before and before in ".!?":
        return False
    return match[0] == '"' or _is_closed(text, match)


def _is_closed(text: str, match: re.Match[str]) -> bool:
    """Whether two apostrophes precede a word, and the next quotation mark is of the same kind."""
    after = text[match.end() : match.end() + 1]
    if not match.start() or not after or not (category(after)[0] in "LN" or category(after) in ("Sc", "Ps")):
        return False
    following = _QUOTES.search(text, match.end())
    return following is not None and following[0] == "''"
