"""Serves the names `letta_evals` and `letta_client` to user code when those packages are not installed."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

__all__ = ["serve"]


def serve() -> None:
    """Make `import letta_evals` and `import letta_client` give our surface, unless the packages are there."""
    for package, modules in (("letta_evals", _evals), ("letta_client", _client)):
        if package not in sys.modules and importlib.util.find_spec(package) is None:
            for name, contents in modules().items():
                sys.modules[name] = _module(name, contents)
            for name in modules():
                parent, _, child = name.rpartition(".")
                if parent:
                    setattr(sys.modules[parent], child, sys.modules[name])


def _module(name: str, contents: dict[str, Any]) -> ModuleType:
    module = ModuleType(name, "Served by evalwright: the package itself is not installed.")
    module.__path__ = []
    module.__dict__.update(contents, stands_in=True)
    return module


def _evals() -> dict[str, dict[str, Any]]:
    from evalwright import letta
    from evalwright.letta import decorators, models

    of_decorators = {name: getattr(decorators, name) for name in decorators.__all__ if name.islower()}
    of_models = {name: getattr(models, name) for name in models.__all__}
    surface = {name: getattr(letta, name) for name in letta.__all__}
    return {
        "letta_evals": {**of_decorators, **of_models, **surface},
        "letta_evals.decorators": of_decorators,
        "letta_evals.models": of_models,
    }


def _client() -> dict[str, dict[str, Any]]:
    from evalwright.letta import client, messages

    types = {name: getattr(messages, name) for name in messages.__all__ if name[0].isupper() and name != "CLASSES"}
    types |= dict.fromkeys(("CreateBlock", "CreateBlockParam"), client.CreateBlock)
    return {
        "letta_client": {"AsyncLetta": client.AsyncLetta, "Letta": client.AsyncLetta, **types},
        "letta_client.types": types,
        "letta_client.types.agents": types,
    }
