"""Parsed templates, rewritten where the same code means different things in Nunjucks and Jinja2."""

from __future__ import annotations

from typing import Any, TypeGuard

from jinja2 import TemplateSyntaxError, nodes
from jinja2.visitor import NodeTransformer

__all__ = ["FRAMES", "as_nunjucks"]

_ASSIGNING: Any = (nodes.Assign, nodes.AssignBlock)
_OTHER_FILES: Any = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)
FRAMES = "frames_"
"""The names that a template sets."""


def as_nunjucks(tree: nodes.Template) -> nodes.Template:
    """Raises TemplateSyntaxError for what only Jinja2 has, and for templates in other files."""
    if (piece := tree.find(nodes.Slice)) is not None:
        raise TemplateSyntaxError("promptfoo has no slices of lists: use .slice(start, end)", piece.lineno)
    if (other := tree.find(_OTHER_FILES)) is not None:
        raise TemplateSyntaxError("include, import and extends are not read: expected it all in one text", other.lineno)
    if (scope := tree.find(nodes.With)) is not None:
        raise TemplateSyntaxError("promptfoo has no tag 'with': use set", scope.lineno)
    for pair in tree.find_all(nodes.Pair):
        if isinstance(pair.key, nodes.Name):
            pair.key = nodes.Const(pair.key.name)
    for choice in tree.find_all(nodes.CondExpr):
        choice.expr2 = choice.expr2 or nodes.Const("")
    for loop in tree.find_all(nodes.For):
        target = loop.target
        if loop.test is not None or loop.recursive:
            raise TemplateSyntaxError(
                "promptfoo has no loops with 'if' or 'recursive': write an if within the loop", loop.lineno
            )
        loop.iter = (
            _filtered(loop.iter, "pairs of", nodes.Const(len(target.items)))
            if isinstance(target, nodes.Tuple)
            else _filtered(loop.iter, "items of")
        )
    for macro in tree.find_all(nodes.Macro):
        # naming these makes a macro ignore what it has no parameter for
        macro.body[:0] = [nodes.ExprStmt(nodes.Name(name, "load")) for name in ("varargs", "kwargs")]
    _Literals().visit(tree)
    if names := _names_set(tree):
        _Framed(names).visit(tree)
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


class _Framed(NodeTransformer):
    """Has names set and read in frames, which are those of Nunjucks."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def visit_Name(self, node: nodes.Name) -> nodes.Node:
        if node.name not in self._names or node.ctx != "load":
            return node
        return _of_frames("get", nodes.Const(node.name), node)

    def visit_Assign(self, node: nodes.Assign) -> nodes.Node:
        value: nodes.Expr = self.visit(node.node)
        node.node, target = value, node.target
        return _named("set", target.name, value) if self._has(target) else node

    def visit_AssignBlock(self, node: nodes.AssignBlock) -> Any:
        self.generic_visit(node)
        target = node.target
        return [node, _named("set", target.name, nodes.Name(target.name, "load"))] if self._has(target) else node

    def visit_For(self, node: nodes.For) -> list[nodes.Node]:
        node.iter = self.visit(node.iter)
        own = self._own([node.target, *node.target.find_all(nodes.Name), nodes.Name("loop", "store")])
        node.body, node.else_ = [*own, *self._visited(node.body)], self._visited(node.else_)
        return [_entering(_of_frames("here"), is_open=True), node, _leaving()]

    def visit_Macro(self, node: nodes.Macro) -> Any:
        node.defaults = self._visited(node.defaults)
        inside = [*self._own(node.args), *self._visited(node.body)]
        node.body = [_entering(nodes.Tuple([], "load"), is_open=False), *inside, _leaving()]
        return [node, _named("set", node.name, nodes.Name(node.name, "load"))] if node.name in self._names else node

    def visit_CallBlock(self, node: nodes.CallBlock) -> nodes.Node:
        """Its content sees the names of the macro that calls it."""
        node.call = self.visit(node.call)
        inside = [*self._own(node.args), *self._visited(node.body)]
        node.body = [_entering(_of_frames("here"), is_open=False), *inside, _leaving()]
        return node

    def _has(self, target: nodes.Node) -> TypeGuard[nodes.Name]:
        return isinstance(target, nodes.Name) and target.name in self._names

    def _own(self, targets: list[Any]) -> list[nodes.Node]:
        """Loops and macros have names of their own for their items and arguments."""
        return [_named("keep", target.name, nodes.Name(target.name, "load")) for target in targets if self._has(target)]

    def _visited(self, parts: list[Any]) -> list[Any]:
        holder = nodes.Scope(parts)
        self.generic_visit(holder)
        return holder.body


def _of_frames(method: str, *arguments: nodes.Expr) -> nodes.Call:
    return nodes.Call(nodes.Getattr(nodes.Name(FRAMES, "load"), method, "load"), [*arguments], [], None, None)


def _named(method: str, name: str, value: nodes.Expr) -> nodes.Node:
    return nodes.ExprStmt(_of_frames(method, nodes.Const(name), value))


def _entering(around: nodes.Expr, *, is_open: bool) -> nodes.Node:
    return nodes.ExprStmt(_of_frames("enter", around, nodes.Const(is_open)))


def _leaving() -> nodes.Node:
    return nodes.ExprStmt(_of_frames("leave"))
