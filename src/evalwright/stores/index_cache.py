"""Where the index of a run is kept when it cannot be beside the run."""

from __future__ import annotations

from pathlib import Path

from evalwright.files.user_folder import user_folder

__all__ = ["cache_for"]


def cache_for(run: str) -> Path:
    """A folder in the user's cache for the index of the run with that name. Raises OSError."""
    return user_folder("indexes", run)
