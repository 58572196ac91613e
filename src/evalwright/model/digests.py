"""What a case asks and what an evaluator looks for, as one hash each: equal ones were run alike.

They are made of the values before secrets are masked: what is stored may show `${NAME}` for two different values.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import msgspec

from evalwright.model.plan import EvaluatorSpec
from evalwright.model.snapshot import Case

__all__ = ["case_digest", "evaluator_digests", "with_digest"]


def case_digest(case: Case) -> str:
    """Of input, expectation, group, and what else the case is judged by."""
    beside = _placeless(msgspec.to_builtins([case.extra, case.evaluators]))
    return _digest([case.input, case.expected, case.group, beside])


def with_digest(case: Case) -> Case:
    """The case with its hash, as a run stores it."""
    return msgspec.structs.replace(case, digest=case_digest(case))


def evaluator_digests(specs: Iterable[EvaluatorSpec]) -> dict[str, str]:
    """By name, of what decides an evaluator's verdict; its weight is the suite's."""
    return {
        spec.name: _digest(
            _placeless(
                msgspec.to_builtins(
                    [spec.type, spec.config, spec.threshold, spec.threshold_op, spec.required, spec.extractor]
                )
            )
        )
        for spec in specs
    }


def _digest(parts: Any) -> str:
    return blake2b(msgspec.json.encode(parts, order="sorted"), digest_size=12).hexdigest()


def _placeless(value: Any) -> Any:
    """Absolute paths by their last part: a suite that lies in another folder is the same suite."""
    if isinstance(value, dict):
        return {key: _placeless(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_placeless(inner) for inner in value]
    return value.rpartition("/")[2] if isinstance(value, str) and value.startswith("/") else value
