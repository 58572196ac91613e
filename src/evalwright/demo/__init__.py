"""The built-in example: a support agent for a small shop, plain Python, no key and no network."""

from __future__ import annotations

from importlib.resources import files

__all__ = ["contents"]

_FILES = ("agent.py", "shop.py", "cases.yaml", "eval.yaml", "judged.yaml", "judgements.jsonl")


def contents() -> dict[str, bytes]:
    """The files of the example, by name."""
    suite = files(__name__) / "suite"
    return {name: (suite / name).read_bytes() for name in _FILES}
