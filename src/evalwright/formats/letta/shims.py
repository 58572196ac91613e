"""Serves the names `letta_evals` and `letta_client` to user code when those packages are not installed."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

__all__ = ["missing", "serve"]


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


def missing(error: ImportError) -> str:
    """What to say beside an import that failed since we stand in for a package and lack the name; "" for others."""
    package = (error.name or "").partition(".")[0]
    if not getattr(sys.modules.get(package), "stands_in", False):
        return ""
    modules = sorted(name for name in sys.modules if name.partition(".")[0] == package)
    served = sys.modules.get(error.name or "")
    known = modules if served is None else sorted(n for n in vars(served) if n[0] != "_" and n != "stands_in")
    return f" (evalwright stands in for {package}, which is not installed here, and has: {', '.join(known)})"


def _module(name: str, contents: dict[str, Any]) -> ModuleType:
    module = ModuleType(name, "Served by evalwright: the package itself is not installed.")
    module.__path__ = []
    module.__dict__.update(contents, stands_in=True)
    return module


def _evals() -> dict[str, dict[str, Any]]:
    from evalwright import letta
    from evalwright.formats.letta.surface import decorators, helpers, models, progress
    from evalwright.letta import runner as running

    of_decorators = {name: getattr(decorators, name) for name in decorators.__all__ if name.islower()}
    of_models = {name: getattr(models, name) for name in models.__all__ if name[0].isupper()}
    of_models |= {"RunnerResult": running.RunnerResult, "SuiteSpec": running.SuiteSpec}
    readers = {name: getattr(helpers, name) for name in helpers.__all__ if name.islower()}
    loaders = dict.fromkeys(("load_dataset", "load_jsonl", "load_csv"), letta.load_dataset)
    callback, style = {"ProgressCallback": progress.ProgressCallback}, {"ProgressStyle": progress.ProgressStyle}
    return {
        "letta_evals": {**of_decorators, **of_models, **{name: getattr(letta, name) for name in letta.__all__}},
        "letta_evals.datasets": loaders,
        "letta_evals.datasets.loader": loaders,
        "letta_evals.decorators": of_decorators,
        "letta_evals.extractors": {**helpers.EXTRACTORS, "get_extractor": helpers.get_extractor},
        "letta_evals.extractors.builtin": helpers.EXTRACTORS,
        "letta_evals.extractors.utils": readers,
        "letta_evals.models": of_models,
        "letta_evals.runner": {"Runner": running.Runner, "run_suite": running.run_suite},
        "letta_evals.visualization": {**callback, **style},
        "letta_evals.visualization.base": callback,
        "letta_evals.visualization.factory": style,
    }


def _client() -> dict[str, dict[str, Any]]:
    from evalwright.formats.letta.surface import client, messages, models

    types = {name: getattr(messages, name) for name in messages.__all__ if name[0].isupper() and name != "CLASSES"}
    types |= dict.fromkeys(("CreateBlock", "CreateBlockParam"), client.CreateBlock)
    types |= dict.fromkeys(("MessageCreate", "MessageCreateParam"), client.MessageCreate)
    types |= {"AgentState": models.AgentState, "LettaMessageUnion": models.LettaMessageUnion}
    return {
        "letta_client": {"AsyncLetta": client.AsyncLetta, "Letta": client.AsyncLetta, **types},
        "letta_client.client": {"BaseTool": client.BaseTool},
        "letta_client.types": types,
        "letta_client.types.agents": types,
    }
