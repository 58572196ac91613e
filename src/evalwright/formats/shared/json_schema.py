"""JSON Schemas that editors read (draft 7), made from those that pydantic and msgspec write (draft 2020-12)."""

from __future__ import annotations

from typing import Any

__all__ = ["DRAFT", "REFERENCES", "lenient"]

DRAFT = "http://json-schema.org/draft-07/schema#"
REFERENCES = "#/definitions/{name}"

_REFERENCE = r"\$\{"
"""Where a variable's value will be inserted, its type is not known yet."""
_NUMBER = rf"{_REFERENCE}|^\s*[-+]?(\d[\d_]*\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"
_BOOLEAN = rf"{_REFERENCE}|^([yYnNtTfF01]|[Tt]rue|TRUE|[Ff]alse|FALSE|[Oo]n|ON|[Oo]ff|OFF|[Yy]es|YES|[Nn]o|NO)$"
_TEXT: dict[str, dict[str, Any]] = {
    "integer": {"type": "string", "pattern": _NUMBER},
    "number": {"type": "string", "pattern": _NUMBER},
    "boolean": {"type": "string", "pattern": _BOOLEAN},
}
_BOUNDS: dict[str, str] = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_ABOUT = ("title", "description", "default", "examples")


def lenient(schema: Any) -> Any:
    """The schema in the terms of draft 7, with `${NAME}` allowed wherever a number, a boolean or a fixed word may
    be."""
    if isinstance(schema, list):
        return [lenient(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    node: dict[str, Any] = {_BOUNDS.get(str(key), str(key)): value for key, value in schema.items()}
    node.pop("discriminator", None)
    if "prefixItems" in node:
        node["items"], rest = node.pop("prefixItems"), node.get("items", True)
        node["additionalItems"] = rest
    made = {key: value if key in _DATA else _inside(key, value) for key, value in node.items()}
    return _with_texts(made)


_DATA = ("default", "examples", "enum", "const", "required", "pattern", "type", "title", "description")
"""Keys below which there is no schema."""


def _inside(key: str, value: Any) -> Any:
    if key == "$ref":
        return value.replace("#/$defs/", "#/definitions/")
    if key in ("properties", "patternProperties", "$defs", "definitions"):
        return {name: lenient(item) for name, item in value.items()}
    return lenient(value)


def _with_texts(node: dict[str, Any]) -> dict[str, Any]:
    """The node, or the node with the string that may replace its value."""
    kind = node.get("type")
    text = _TEXT.get(kind) if isinstance(kind, str) else None
    if text is None and ("enum" in node or "const" in node) and kind in (None, "string"):
        text = {"type": "string", "pattern": _REFERENCE}
    if "$defs" in node:
        node["definitions"] = node.pop("$defs")
    if text is None:
        return node
    about = {key: node[key] for key in _ABOUT if key in node}
    strict = {key: value for key, value in node.items() if key not in _ABOUT}
    alone = [strict, {"enum": [0, 1]}] if kind == "boolean" else [strict]
    return {**about, "anyOf": [*alone, text]}
