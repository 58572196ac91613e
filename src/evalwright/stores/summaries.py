"""The summary of a run as YAML, and back."""

from __future__ import annotations

from typing import Any

import msgspec

from evalwright.model.summary import RunSummary

__all__ = ["summary_from_yaml", "summary_to_plain", "summary_to_yaml"]


def summary_to_plain(summary: RunSummary) -> dict[str, Any]:
    """The summary as mappings, lists and scalars; dates as ISO 8601 text with `Z`."""
    plain: dict[str, Any] = msgspec.to_builtins(summary)
    return plain


def summary_to_yaml(plain: dict[str, Any]) -> bytes:
    """The summary as YAML that any loader reads back to the same strings."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(plain, Dumper=dumper, sort_keys=False, allow_unicode=True, width=1000)
    return text.encode()


def summary_from_yaml(data: bytes) -> RunSummary:
    """The summary in `data`; fields that older versions lack get defaults. Raises ValueError for anything else."""
    import yaml

    try:
        plain = yaml.load(data, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"not valid YAML: {error}") from error
    return msgspec.convert(plain, RunSummary, strict=False)
