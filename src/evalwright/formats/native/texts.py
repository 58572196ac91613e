"""Texts of systems that stand in files of their own, such as prompts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from evalwright.files.key_paths import Place
from evalwright.formats.native.file import SystemSection
from evalwright.formats.native.matrix import named_file
from evalwright.formats.native.suite_file import SuiteFile

__all__ = ["texts_named"]


def texts_named(
    suite: SuiteFile, system: SystemSection, config: Mapping[str, Any], keys: Iterable[str]
) -> dict[str, str]:
    """The contents of the files that the configuration names at those of the `keys` that name one."""
    texts = {}
    for key in keys:
        name = named_file(config.get(key))
        if name is not None:
            path = suite.found(system.at(key), name)
            if suite.must_be_inside(system.at(key), path):
                texts[key] = _text(suite, system.at(key), path)
    return texts


def _text(suite: SuiteFile, place: Place, path: Path) -> str:
    """The content of a file, without the final newline."""
    try:
        text = path.read_text(encoding="utf-8").removesuffix("\n")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        suite.report(place, f"cannot read {path}: {why}")
        return ""
    if not text.strip():
        suite.report(place, f"{path} has no text")
    return text
