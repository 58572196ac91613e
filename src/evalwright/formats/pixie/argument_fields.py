"""The arguments that a Runnable takes, read from its file without executing it.

What cannot be read that way (a model of another module, aliases, a base class that is not in the file, validators that
change values) is not checked, and is reported as unchecked.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.files.key_paths import as_written
from evalwright.formats.pixie.annotated_types import Classes, fits, limits_hold

__all__ = ["ArgumentModel", "argument_model", "is_function"]

_HARMLESS = {"extra", "title", "frozen", "json_schema_extra", "use_attribute_docstrings"}
"""Settings of a model that do not change which arguments it takes; except `extra`, which is read."""


class _Field(NamedTuple):
    """One field of a model."""

    annotation: ast.expr
    default: ast.expr | None
    """The expression after the equals sign."""

    @property
    def words(self) -> dict[str | None, ast.expr]:
        """The keywords of `Field(...)`."""
        called = self.default if _is_field(self.default) else None
        return {word.arg: word.value for word in called.keywords} if isinstance(called, ast.Call) else {}

    @property
    def required(self) -> bool:
        if not isinstance(self.default, ast.Call) or not _is_field(self.default):
            return self.default is None
        first = self.default.args[0] if self.default.args else None
        given = first is not None and not (isinstance(first, ast.Constant) and first.value is ...)
        return not given and not self.words.keys() & {"default", "default_factory"}


class ArgumentModel:
    """What a model takes, as far as the file says. Raises LookupError if it is unclear which names it takes."""

    def __init__(self, classes: Classes, name: str) -> None:
        self._classes = classes
        self._fields: dict[str, _Field] = {}
        self._forbids = self._validates = False
        self._read(name)

    def _read(self, name: str) -> None:
        node = self._classes[name]
        bases = [getattr(base, "attr", getattr(base, "id", "")) for base in node.bases]
        if not bases:
            raise LookupError(name)
        for base in bases:
            if base != "BaseModel":
                self._read(base)
        self._configure(node.keywords)
        for inner in node.body:
            self._take(inner)

    def _take(self, node: ast.stmt) -> None:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        named = target.id if isinstance(target, ast.Name) else ""
        if named == "model_config":
            self._configure(_settings(getattr(node, "value", None)))
        elif isinstance(node, ast.Assign):
            raise LookupError(named)
        elif isinstance(node, ast.AnnAssign) and not named.startswith("_"):
            field = _Field(node.annotation, node.value)
            if "ClassVar" in ast.unparse(field.annotation):
                return
            if field.words.keys() & {"alias", "validation_alias", None}:
                raise LookupError("alias")
            self._fields[named] = field
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            message = " ".join(ast.unparse(decorator) for decorator in node.decorator_list)
            if "validator" in message and any(word in message for word in ("before", "wrap", "plain", "pre=", "pre =")):
                raise LookupError(node.name)
            self._validates |= "validator" in message or node.name in ("__init__", "model_post_init")

    def _configure(self, words: list[ast.keyword]) -> None:
        for word in words:
            if word.arg not in _HARMLESS:
                raise LookupError(word.arg)
            if word.arg == "extra":
                self._forbids = "forbid" in ast.unparse(word.value)

    def mismatches(self, arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """The names of arguments that the model would reject, with the reason."""
        for name, field in self._fields.items():
            if name not in arguments:
                if field.required:
                    yield name, f"the Runnable's model requires {name!r}, found none"
            elif self._fits(field, value := arguments[name]) is False:
                wanted = ", ".join([ast.unparse(field.annotation), *_limits(field)])
                yield name, f"the Runnable's model expects {wanted}, found {as_written(value)}"
        for name in arguments if self._forbids else ():
            if name not in self._fields:
                yield name, f"the Runnable's model has no field {name!r} and forbids others"

    def is_sure_of(self, arguments: Mapping[str, Any]) -> bool:
        """Whether nothing outside the file could reject these."""
        given = (self._fits(field, arguments[name]) for name, field in self._fields.items() if name in arguments)
        return not self._validates and None not in given

    def fits(self, value: Any) -> bool | None:
        """Whether an object fits this model; None if that is unknown."""
        if not isinstance(value, dict):
            return False
        if next(self.mismatches(value), None):
            return False
        return True if self.is_sure_of(value) else None

    def _fits(self, field: _Field, value: Any) -> bool | None:
        fit = fits(field.annotation, value, self._classes, lambda name: ArgumentModel(self._classes, name).fits)
        return limits_hold(field.words, value) if fit else fit


def argument_model(file: Path, name: str) -> ArgumentModel | None:
    """The model that annotates `args` of `run`, in the class or a base in the file; None if it is unclear."""
    classes = _classes_in(file)
    run = _run_of(classes, name)
    annotation = next((arg.annotation for arg in run.args.args if arg.arg == "args"), None) if run else None
    model = annotation.value if isinstance(annotation, ast.Constant) else getattr(annotation, "id", None)
    try:
        return ArgumentModel(classes, str(model))
    except (LookupError, RecursionError):
        return None


def is_function(file: Path, name: str) -> bool:
    """Whether the name belongs to a function, which takes any arguments."""
    return any(isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name for node in _body(file))


def _body(file: Path) -> list[ast.stmt]:
    try:
        return ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return []


def _classes_in(file: Path) -> Classes:
    return {node.name: node for node in _body(file) if isinstance(node, ast.ClassDef)}


def _run_of(classes: Classes, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        node = classes.get(found := waiting.pop(0))
        if node is None or found in seen:
            continue
        seen.add(found)
        for statement in node.body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) and statement.name == "run":
                return statement
        waiting += [base.id for base in node.bases if isinstance(base, ast.Name)]
    return None


def _settings(value: ast.expr | None) -> list[ast.keyword]:
    """The settings of `ConfigDict(...)` or a mapping. Raises LookupError for anything else."""
    if isinstance(value, ast.Call) and not value.args:
        return value.keywords
    if isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values, strict=True)
        return [ast.keyword(str(getattr(key, "value", None)), one) for key, one in pairs]
    raise LookupError("model_config")


def _is_field(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and getattr(value.func, "id", getattr(value.func, "attr", "")) == "Field"


def _limits(field: _Field) -> Iterator[str]:
    for word in ("ge", "gt", "le", "lt", "min_length", "max_length"):
        if word in field.words:
            yield f"{word}={ast.unparse(field.words[word])}"
