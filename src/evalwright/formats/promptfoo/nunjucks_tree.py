"""Parsed templates, rewritten where the same code means different things in Nunjucks and Jinja2."""

from __future__ import annotations

from typing import Any

from jinja2 import TemplateSyntaxError, nodes
from jinja2.visitor import NodeTransformer

__all__ = ["OUTER", "as_nunjucks"]

_ASSIGNING: Any = (nodes.Assign, nodes.AssignBlock)
_OTHER_FILES: Any = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)
OUTER = "outer_"
"""The namespace of names that are set both outside and inside a loop."""


def as_nunjucks(tree: nodes.Template) -> nodes.Template:
    """Raises TemplateSyntaxError for what only Jinja2 has, and for templates in other files."""
    if (piece := tree.find(nodes.Slice)) is not None:
        raise TemplateSyntaxError("promptfoo has no slices of lists: use .slice(start, end)", piece.lineno)
    if (other := tree.find(_OTHER_FILES)) is not None:
        raise TemplateSyntaxError("include, import and extends are not read: expected it all in one text", other.lineno)
    for pair in tree.find_all(nodes.Pair):
        if isinstance(pair.key, nodes.Name):
            pair.key = nodes.Const(pair.key.name)
    for choice in tree.find_all(nodes.CondExpr):
        choice.expr2 = choice.expr2 or nodes.Const("")
    for loop in tree.find_all(nodes.For):
        target = loop.target
        loop.iter = (
            _filtered(loop.iter, "pairs of", nodes.Const(len(target.items)))
            if isinstance(target, nodes.Tuple)
            else _filtered(loop.iter, "items of")
        )
    for macro in tree.find_all(nodes.Macro):
        # naming these makes a macro ignore what it has no parameter for
        macro.body[:0] = [nodes.ExprStmt(nodes.Name(name, "load")) for name in ("varargs", "kwargs")]
    _Literals().visit(tree)
    if shared := _set_in_loops(tree):
        _Shared(shared).visit(tree)
    return tree


def _filtered(value: Any, name: str, *arguments: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(value, name, [*arguments], [], None, None)


class _Literals(NodeTransformer):
    """Lists and mappings written in a template behave as in JavaScript: true even if they are empty."""

    def visit_List(self, node: nodes.List) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(node, "as in data")

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(node, "as in data")


def _names_set(node: nodes.Node) -> set[str]:
    targets = [assignment.target for kind in _ASSIGNING for assignment in node.find_all(kind)]
    return {name.name for target in targets for name in [target, *target.find_all(nodes.Name)] if _is_stored(name)}


def _is_stored(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Name) and node.ctx == "store"


def _set_in_loops(tree: nodes.Template) -> set[str]:
    """Names that are set both inside a loop and outside all loops: Nunjucks changes the outer one."""
    loops = list(tree.find_all(nodes.For))
    within = {name for loop in loops for name in _names_set(loop)}
    if not within:
        return set()
    of_loops = {id(node) for loop in loops for node in loop.find_all(_ASSIGNING)}
    outside = [node for node in tree.find_all(_ASSIGNING) if id(node) not in of_loops]
    return within & {name for node in outside for name in _names_set(nodes.Output([node]))}


class _Shared(NodeTransformer):
    """Puts names into a namespace that loops share with their surroundings."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def visit_Name(self, node: nodes.Name) -> nodes.Node:
        if node.name not in self._names:
            return node
        if node.ctx == "store":
            return nodes.NSRef(OUTER, node.name, lineno=node.lineno)
        return nodes.Getattr(nodes.Name(OUTER, "load"), node.name, "load", lineno=node.lineno)
