"""What `evalwright list evaluators` prints, in 80 columns."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from evalwright.errors import shorten
from evalwright.reports.text import Paint, harmless

if TYPE_CHECKING:
    from evalwright.evaluators.catalogue import Description, Key, ListedEvaluator

__all__ = ["description_lines", "list_lines"]

_WIDTH = 80


def list_lines(listed: Iterable[ListedEvaluator], paint: Paint) -> Iterator[str]:
    """A heading for each group, and for each evaluator its sentence, format and neighbours."""
    for position, (group, of_group) in enumerate(groupby(listed, key=lambda evaluator: evaluator.group)):
        if position:
            yield ""
        yield paint(harmless(group), "heading")
        members = list(of_group)
        names = max(len(evaluator.name) for evaluator in members)
        for member in members:
            yield from _row(member, names, paint)


def _row(evaluator: ListedEvaluator, names: int, paint: Paint) -> Iterator[str]:
    """`  name  sentence`; the remaining lines below the sentence."""
    indent = " " * (names + 4)
    sentence = f"{evaluator.sentence} [{evaluator.format}]" if evaluator.format else evaluator.sentence
    first, *rest = _wrapped_lines(sentence, _WIDTH - len(indent))
    yield f"  {paint(harmless(evaluator.name), 'bold')}{' ' * (names - len(evaluator.name))}  {first}"
    for line in rest:
        yield indent + line
    if evaluator.see:
        for line in _wrapped_lines(f"see {_neighbours(evaluator)}", _WIDTH - len(indent)):
            yield indent + paint(line, "dim")


def description_lines(description: Description, paint: Paint) -> Iterator[str]:
    """The sentence, a table of the keys, and an example as it is written in a suite file."""
    from evalwright.files.yaml import dump

    of = ", ".join(filter(None, (description.group, description.format)))
    yield f"{paint(harmless(description.name), 'bold')}{f' ({harmless(of)})' if of else ''}"
    yield from _wrapped_lines(description.sentence, _WIDTH)
    if description.see:
        yield from _wrapped_lines(f"See also {_neighbours(description)}", _WIDTH)
    yield ""
    yield from _key_lines(description.keys, paint) if description.keys else ["It has no configuration."]
    if description.example is not None:
        config = {"config": dict(description.example)} if description.example else {}
        yield ""
        yield from dump(
            {"evaluators": [{"name": f"my_{description.name}", "type": description.name, **config}]}
        ).splitlines()


def _key_lines(keys: Iterable[Key], paint: Paint) -> Iterator[str]:
    rows = [("key", "default", "type")]
    rows += [(key.name, _default(key), key.type) for key in keys]
    names, defaults = (max(len(row[i]) for row in rows) for i in (0, 1))
    indent = " " * (names + defaults + 4)
    for position, (name, default, type_) in enumerate(rows):
        first, *rest = _wrapped_lines(type_, max(_WIDTH - len(indent), 20))
        lines = [f"{name:<{names}}  {default:<{defaults}}  {first}", *(indent + line for line in rest)]
        yield from (paint(line, "dim") if not position else line for line in lines)


def _default(key: Key) -> str:
    if key.required:
        return "required"
    if key.default is None:
        return ""
    return harmless(shorten(json.dumps(key.default, ensure_ascii=False), 40, "…"))


def _neighbours(evaluator: ListedEvaluator) -> str:
    return "; ".join(f"{name} ({difference})" for name, difference in evaluator.see.items())


def _wrapped_lines(text: str, width: int) -> list[str]:
    return textwrap.wrap(harmless(text), width, break_on_hyphens=False) or [""]
