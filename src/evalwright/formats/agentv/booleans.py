"""Values that should be `true` or `false`. In YAML 1.2, in which AgentV's files are written, `yes` is a string."""

from __future__ import annotations

from typing import Any

from evalwright.files.key_paths import as_written

__all__ = ["boolean_mistake", "meant"]

_WORDS = {"yes": "true", "no": "false", "on": "true", "off": "false"}
_SPELT = {**_WORDS, "true": "true", "false": "false", "1": "true", "0": "false"}


def boolean_mistake(key: str, value: Any) -> str:
    """What is wrong with the value of a boolean key, if one is given; empty if nothing is."""
    if value is None or isinstance(value, bool):
        return ""
    return f"{key}: expected true or false, found {as_written(value)}{meant(value)}"


def meant(value: Any) -> str:
    """The boolean that a value was most likely meant to be, and why it is not one; empty for other values."""
    spelt = str(value).strip().lower()
    if spelt not in _SPELT:
        return ""
    if not isinstance(value, str):
        return f"; write {_SPELT[spelt]}"
    reason = "yes, no, on and off are texts in YAML 1.2" if spelt in _WORDS else "in quotes it is a text"
    return f" ({reason}); write {_SPELT[spelt]}"
