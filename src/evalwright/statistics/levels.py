"""Error rates that can be computed with."""

from __future__ import annotations

__all__ = ["LEAST_ALPHA"]

LEAST_ALPHA = 1e-9
"""The lowest alpha: levels are computed as 1 - alpha, which keeps seven digits of it, and none of one below 1e-16."""
