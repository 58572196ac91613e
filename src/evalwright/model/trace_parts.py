"""Traces without the parts that are not asked for: to skip messages takes a fraction of the time of decoding them."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import msgspec

from evalwright.model.cell import OfCase
from evalwright.model.trace import Trace

__all__ = ["TRACE_PARTS", "trace_with"]

TRACE_PARTS = frozenset({"input", "output", "messages", "tool_calls", "tool_results", "extra", "spans"})
"""The parts of a trace that may be long; what else it has tells which cell it is of, and is counted."""


def _default(field: msgspec.structs.FieldInfo) -> Any:
    options: Any = {"default": field.default, "default_factory": field.default_factory}
    return msgspec.field(**{how: setting for how, setting in options.items() if setting is not msgspec.NODEFAULT})


@cache
def trace_with(parts: frozenset[str]) -> type[Trace]:
    """A type to decode traces as, which has only these of the `TRACE_PARTS`; reading another one raises AttributeError.

    What is skipped must be JSON, but is not checked to be what a trace has there.
    """
    if parts >= TRACE_PARTS:
        return Trace
    fields = [
        (field.name, field.type, _default(field))
        for field in msgspec.structs.fields(Trace)
        if field.name not in TRACE_PARTS - parts and field.name not in OfCase.__struct_fields__
    ]
    return cast(type[Trace], msgspec.defstruct("Trace", fields, bases=(OfCase,), gc=False, kw_only=True))
