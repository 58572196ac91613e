"""What `convert` needs to know of a configuration before it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalwright.formats.promptfoo.file import env_defaults, env_names, mapping_of

__all__ = ["names_in"]


def names_in(source: Path, options: Mapping[str, Any]) -> Iterator[str]:
    """The variables that a configuration takes from the environment; `${...}` in it is JavaScript."""
    raw = [mapping_of(path, path.resolve().parent)[1] for path in (source, *options.get("add_config", ()))]
    for name in dict.fromkeys(env_names(raw)):
        yield "${" + name + "}"
    for name, default in dict.fromkeys(env_defaults(raw)):
        yield f"${{{name}:-{default}}}"
