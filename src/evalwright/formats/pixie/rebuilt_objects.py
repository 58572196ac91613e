"""Rebuilds objects that a dataset names by class, if the user trusts the file."""

from __future__ import annotations

import dataclasses
import importlib
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from evalwright.capture.values import OBJECT, served

__all__ = ["rebuilt"]

_log = logging.getLogger(__name__)


def rebuilt(value: Any, folders: Sequence[Path]) -> Any:
    """A JSON value with its tuples, sets and objects; only classes of modules inside `folders` are used.

    Any other object stays a plain mapping, which is logged.
    """
    if isinstance(value, list):
        return [rebuilt(item, folders) for item in value]
    if not isinstance(value, dict):
        return value
    place = value.get(OBJECT)
    if not isinstance(place, str):
        inner = {key: rebuilt(item, folders) for key, item in value.items()}
        return served(inner)
    fields = {key: rebuilt(item, folders) for key, item in value.items() if key != OBJECT}
    try:
        return _rebuilt(_class_at(place, folders), fields)
    except Exception as error:
        _log.warning("an object of %s is given as a plain mapping: %s: %s", place, type(error).__name__, error)
        return fields


def _class_at(place: str, folders: Sequence[Path]) -> type:
    module_name, _, name = place.rpartition(".")
    module = sys.modules.get(module_name) or _import_within(module_name, folders)
    if not _is_inside(module, folders):
        raise ImportError(f"{module_name} is not a module of the project")
    attribute = getattr(module, name)
    if not isinstance(attribute, type):
        raise TypeError(f"{place} is not a class")
    return attribute


def _import_within(name: str, folders: Sequence[Path]) -> ModuleType:
    """A module that lies in one of the folders; no other module is executed."""
    parts = Path(*name.split("."))
    if not any(
        os.path.isfile((folder / parts).with_suffix(".py")) or os.path.isdir(folder / parts) for folder in folders
    ):
        raise ImportError(f"{name} is not a module of the project")
    return importlib.import_module(name)


def _is_inside(module: ModuleType, folders: Sequence[Path]) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and any(Path(file).resolve().is_relative_to(folder.resolve()) for folder in folders)


def _rebuilt(kind: type, fields: dict[str, Any]) -> Any:
    if hasattr(kind, "model_validate"):
        return kind.model_validate(fields)
    if dataclasses.is_dataclass(kind):
        return kind(**fields)
    made: Any = object.__new__(kind)
    vars(made).update(fields)
    return made
