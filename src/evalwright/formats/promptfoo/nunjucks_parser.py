"""The grammar of Nunjucks, where it differs from Jinja2's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from jinja2 import TemplateSyntaxError, nodes
from jinja2.environment import Environment
from jinja2.parser import Parser

__all__ = ["NO_PATTERNS", "NunjucksParser", "without_patterns"]

NO_PATTERNS = "{}: templates have no regular expressions here: replace texts, or write a filter (nunjucksFilters)"
RawToken = tuple[int, str, str]
_ORDERS = ("lt", "lteq", "gt", "gteq")
_EQUALITIES = ("eq", "ne")
_ADDING = ("add", "sub", "tilde")
_CLAUSES = ("name:elif", "name:elseif", "name:else", "name:endif")


class NunjucksParser(Parser):
    """Nunjucks writes expressions as JavaScript without adding parentheses, so that their meaning is JavaScript's."""

    def __init__(self, environment: Environment, source: str, name: str | None, filename: str | None) -> None:
        super().__init__(environment, source, name, filename)
        self.extensions["switch"] = lambda parser: self._switch()
        self._grouped: dict[int, nodes.Node] = {}
        """Expressions in parentheses, by their identity."""

    def parse_primary(self, *given: bool, **named: bool) -> nodes.Expr:  # `with_namespace`, since Jinja 3.1.5
        if self.stream.current.test_any("name:True", "name:False", "name:None"):
            token = next(self.stream)  # in Nunjucks, only `true`, `false` and `none` are more than names
            return nodes.Name(token.value, "load", lineno=token.lineno)
        in_parentheses = self.stream.current.type == "lparen"
        node = super().parse_primary(*given, **named)
        if in_parentheses:
            self._grouped[id(node)] = node
        return node

    def parse_not(self) -> nodes.Expr:
        if not self.stream.skip_if("name:not"):
            return self.parse_compare()
        return self._negated(self.parse_not())

    def _negated(self, node: Any) -> nodes.Expr:
        """`!` of JavaScript concerns the first operand only."""
        if id(node) not in self._grouped:
            if isinstance(node, (nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.Mod)):
                node.left = self._negated(node.left)
                return node
            if isinstance(node, nodes.Concat):
                first: Any = node.nodes[0]  # the text of it
                first.node = self._negated(first.node)
                return node
            if isinstance(node, nodes.Filter) and node.name in ("is equal", "is ordered"):
                node.node = self._negated(node.node)
                return node
        return nodes.Not(node, lineno=node.lineno)

    def parse_filter_expr(self, node: nodes.Expr) -> nodes.Expr:
        while (sign := self.stream.current.type) in ("pipe", "lparen"):
            node = cast(nodes.Expr, self.parse_filter(node)) if sign == "pipe" else self.parse_call(node)
        return node

    def parse_test(self, node: nodes.Expr) -> nodes.Expr:
        """A test has arguments only in parentheses."""
        lineno = next(self.stream).lineno
        turned = self.stream.skip_if("name:not")
        name = self.stream.expect("name").value
        calls = self.stream.current.type == "lparen"
        test = nodes.Test(node, name, *(self.parse_call_args() if calls else ([], [], None, None)), lineno=lineno)
        return nodes.Not(test, lineno=lineno) if turned else test

    def parse_compare(self) -> nodes.Expr:
        """`<` binds closer than `==`, and `is` less than both, and `in` less than that."""
        node = self._tested()
        while True:
            turned = self.stream.current.test("name:not") and self.stream.look().test("name:in")
            if turned:
                next(self.stream)
            if not self.stream.skip_if("name:in"):
                return node
            node = _filtered(node, "is in", self._tested())
            if turned:
                node = nodes.Not(node, lineno=node.lineno)

    def _tested(self) -> nodes.Expr:
        node = self._equality()
        return self.parse_test(node) if self.stream.current.test("name:is") else node

    def _equality(self) -> nodes.Expr:
        left = self._order()
        while (sign := self.stream.current.type) in _EQUALITIES:
            next(self.stream)
            strictly = self.stream.skip_if("assign")  # `===` is read as `==` and `=`
            left = _filtered(left, "is equal", self._order(), nodes.Const(strictly), nodes.Const(sign == "eq"))
        return left

    def _order(self) -> nodes.Expr:
        left = self.parse_math1()
        while (sign := self.stream.current.type) in _ORDERS:
            next(self.stream)
            left = _filtered(left, "is ordered", self.parse_math1(), nodes.Const(sign))
        return left

    def parse_math1(self) -> nodes.Expr:
        """`~` is `+` with a text."""
        left = self.parse_math2()
        while (sign := self.stream.current.type) in _ADDING:
            lineno = next(self.stream).lineno
            right = self.parse_math2()
            if sign == "tilde":
                left = nodes.Concat([_filtered(left, "text of"), _filtered(right, "text of")], lineno=lineno)
            else:
                left = (nodes.Add if sign == "add" else nodes.Sub)(left, right, lineno=lineno)
        return left

    def parse_if(self) -> nodes.If:
        result = node = nodes.If(lineno=self.stream.expect("name:if").lineno)
        while True:
            node.test = self.parse_tuple()
            node.body = self.parse_statements(_CLAUSES)
            node.elif_, node.else_ = [], []
            clause = next(self.stream)
            if not clause.test_any("name:elif", "name:elseif"):
                break
            node = nodes.If(lineno=self.stream.current.lineno)
            result.elif_.append(node)
        if clause.test("name:else"):
            result.else_ = self.parse_statements(("name:endif",), drop_needle=True)
        return result

    def parse_set(self) -> Any:
        """`{% set a, b = 1 %}` gives both names the value."""
        node = super().parse_set()
        target = node.target
        if not isinstance(node, nodes.Assign) or not isinstance(target, nodes.Tuple):
            return node
        if isinstance(node.node, nodes.Tuple):
            self.fail("expected a single value for all names", node.lineno)
        first = nodes.Assign(target.items[0], node.node, lineno=node.lineno)
        copied = nodes.Name(getattr(target.items[0], "name", ""), "load", lineno=node.lineno)
        return [first, *(nodes.Assign(other, copied, lineno=node.lineno) for other in target.items[1:])]

    def _switch(self) -> nodes.Node | list[nodes.Node]:
        """Cases without content share that of the next one."""
        lineno = next(self.stream).lineno
        value = self.parse_expression()
        ends = ("name:case", "name:default", "name:endswitch")
        self.parse_statements(ends)
        chosen: list[nodes.If] = []
        shared: nodes.Expr | None = None
        while (clause := next(self.stream)).test("name:case"):
            compared = self.parse_expression()
            test: nodes.Expr = _filtered(value, "is equal", compared, nodes.Const(True), nodes.Const(True))
            shared = nodes.Or(shared, test, lineno=lineno) if shared else test
            if body := self.parse_statements(ends):
                chosen.append(nodes.If(shared, body, [], [], lineno=clause.lineno))
                shared = None
        otherwise = self.parse_statements(("name:endswitch",), drop_needle=True) if clause.test("name:default") else []
        if not chosen:
            return otherwise
        chosen[0].elif_, chosen[0].else_ = chosen[1:], otherwise
        return chosen[0]


def without_patterns(tokens: Iterable[RawToken]) -> Iterator[RawToken]:
    """The same tokens. Raises TemplateSyntaxError at a regular expression, which would be read as divisions."""
    before = ""
    for token in tokens:
        if before == "r" and token[1] == "operator" and token[2] in ("/", "//"):
            raise TemplateSyntaxError(NO_PATTERNS.format("r/.../"), token[0])
        before = token[2] if token[1] == "name" else ""
        yield token


def _filtered(value: nodes.Expr, name: str, *arguments: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(value, name, [*arguments], [], None, None, lineno=value.lineno)
