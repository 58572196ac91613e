"""What evaluators and targets declare about themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from evalwright.errors import Problem
from evalwright.model.chat import ChatRequest
from evalwright.model.plan import EvaluatorSpec
from evalwright.model.snapshot import Case

__all__ = ["Traits"]


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """What an evaluator or a target declares about itself. Read by `evaluators.build` and `targets.build` only."""

    uses_case: bool = True
    """False: it never looks at `case`, which then need not be read when stored traces are re-evaluated."""
    expected_keys: frozenset[str] | None = None
    """The keys of the case's `expected` that it reads, if these are all that it looks at in a case."""
    looks: bool = False
    """`look` of our own onlookers may stand for `evaluate`, and what they declare to read is all that they look at."""
    uses_artifact: bool = False
    """`evaluate` gets an `Artifact | None` as a third argument: what the cell did to the files of its workspace."""
    uses_results: bool = False
    """`evaluate` is called last and gets the results of all other evaluators as a third argument."""
    compares: bool = False
    """It judges the answers of all variants to one case and trial together, after all other evaluators: instead of
    `evaluate`, `async compare(case, cells)` is called with the trace and the results of each cell, in the order of
    the variants, and returns an evaluation for each."""
    calls_models: bool | Callable[[Mapping[str, Any]], bool] = False
    """Whether evaluating waits for models; a static method decides it from the configuration."""
    imports_code: bool = False
    """Building it runs the user's code, so it is not built for suites that are only read."""
    blocks: bool | None = None
    """Whether `evaluate` may take any time before it returns; None for ours that soon return unless a pattern or a path
    of the user's takes long."""
    bind_members: Callable[[Callable[[EvaluatorSpec, Any], Callable[..., Any]]], None] | None = None
    """Of an evaluator made of others: takes what decides how each of them is called, given its specification and the
    evaluator as built. They may be slow or never return, like any evaluator."""
    asks: Callable[[Case], Iterable[ChatRequest]] | None = None
    """The model calls that a case will need, without their text, so that a missing key is reported before the run."""
    skips: Callable[[Case], bool] | None = None
    """Whether a case, with its recording if it has one, gives it nothing to judge, so that no model will be called."""
    paths: Mapping[str, str] = {}
    """Configuration keys that hold a path relative to the suite's folder, each with the value that is not a path."""
    scores: tuple[float, float] = (0.0, 1.0)
    """The lowest and the highest score that it can give; any other score is an error of the evaluator."""
    passes_from: str | None = None
    """The key of its configuration that is the lowest score that passes."""
    timeout_seconds: float = 0.0
    """The time limit that an asynchronous evaluator sets itself; 0 if it sets none."""
    config_problems: Callable[[dict[str, Any]], list[Problem]] | None = None
    """Rules across the fields of a configuration, given the values of the keys that are present."""
    config_doubts: Callable[[Mapping[str, Any]], list[Problem]] | None = None
    """Keys of an allowed configuration by which every answer passes, or none, given it as written: for warnings."""
