"""The names that Letta suites' own code imports, and loading their datasets and suites from Python."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalwright.letta.datasets import load_dataset
    from evalwright.letta.decorators import agent_factory, extractor, grader, reward_composer, suite_setup
    from evalwright.letta.models import AgentState, GradeResult, LettaMessageUnion, PerTurnGrade, RewardOutput, Sample
    from evalwright.letta.progress import ProgressCallback
    from evalwright.letta.running import Runner, RunnerResult, SuiteSpec, run_suite

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
    "AgentState": "models",
    "GradeResult": "models",
    "LettaMessageUnion": "models",
    "PerTurnGrade": "models",
    "ProgressCallback": "progress",
    "RewardOutput": "models",
    "Runner": "running",
    "RunnerResult": "running",
    "Sample": "models",
    "SuiteSpec": "running",
    "agent_factory": "decorators",
    "extractor": "decorators",
    "grader": "decorators",
    "load_dataset": "datasets",
    "reward_composer": "decorators",
    "run_suite": "running",
    "suite_setup": "decorators",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
