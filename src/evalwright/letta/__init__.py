"""The names that Letta suites' own code imports, and loading their datasets and suites from Python."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalwright.formats.letta.surface.datasets import load_dataset
    from evalwright.formats.letta.surface.decorators import (
        agent_factory,
        extractor,
        grader,
        reward_composer,
        suite_setup,
    )
    from evalwright.formats.letta.surface.models import (
        AgentState,
        GradeResult,
        LettaMessageUnion,
        PerTurnGrade,
        RewardOutput,
        Sample,
    )
    from evalwright.formats.letta.surface.progress import ProgressCallback
    from evalwright.letta.runner import Runner, RunnerResult, SuiteSpec, run_suite

__all__ = [
    "AgentState",
    "GradeResult",
    "LettaMessageUnion",
    "PerTurnGrade",
    "ProgressCallback",
    "RewardOutput",
    "Runner",
    "RunnerResult",
    "Sample",
    "SuiteSpec",
    "agent_factory",
    "extractor",
    "grader",
    "load_dataset",
    "reward_composer",
    "run_suite",
    "suite_setup",
]

_MODULES = {
    "AgentState": "formats.letta.surface.models",
    "GradeResult": "formats.letta.surface.models",
    "LettaMessageUnion": "formats.letta.surface.models",
    "PerTurnGrade": "formats.letta.surface.models",
    "ProgressCallback": "formats.letta.surface.progress",
    "RewardOutput": "formats.letta.surface.models",
    "Runner": "letta.runner",
    "RunnerResult": "letta.runner",
    "Sample": "formats.letta.surface.models",
    "SuiteSpec": "letta.runner",
    "agent_factory": "formats.letta.surface.decorators",
    "extractor": "formats.letta.surface.decorators",
    "grader": "formats.letta.surface.decorators",
    "load_dataset": "formats.letta.surface.datasets",
    "reward_composer": "formats.letta.surface.decorators",
    "run_suite": "letta.runner",
    "suite_setup": "formats.letta.surface.decorators",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"evalwright.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
