"""The terms of Letta suites as enumerations; each member is its text."""

from __future__ import annotations

from enum import StrEnum

__all__ = [
    "Aggregation",
    "ErrorCategory",
    "GateKind",
    "GraderKind",
    "LLMProvider",
    "LogicalOp",
    "MetricOp",
    "RewardKind",
    "TargetKind",
]


class TargetKind(StrEnum):
    LETTA_AGENT = "letta_agent"
    LETTA_CODE = "letta_code"


class GraderKind(StrEnum):
    TOOL = "tool"
    MODEL_JUDGE = "model_judge"
    LETTA_JUDGE = "letta_judge"


class MetricOp(StrEnum):
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    EQ = "eq"


class Aggregation(StrEnum):
    AVG_SCORE = "avg_score"
    ACCURACY = "accuracy"
    MIN = "min"
    MAX = "max"
    MEDIAN = "median"
    P50 = "p50"
    P95 = "p95"
    P99 = "p99"


class GateKind(StrEnum):
    SIMPLE = "simple"
    WEIGHTED_AVERAGE = "weighted_average"
    LOGICAL = "logical"


class LogicalOp(StrEnum):
    AND = "and"
    OR = "or"


class LLMProvider(StrEnum):
    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    GOOGLE = "google"


class RewardKind(StrEnum):
    METRIC = "metric"
    CUSTOM = "custom"


class ErrorCategory(StrEnum):
    TARGET = "target"
    EXTRACTION = "extraction"
    GRADING = "grading"
    REWARD = "reward"
    UNKNOWN = "unknown"
