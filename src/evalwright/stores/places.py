"""Where the index of a run is kept when it cannot be beside the run."""

from __future__ import annotations

from pathlib import Path

from evalwright.files.durable import PRIVATE_FOLDER

__all__ = ["cache_for"]


def cache_for(run: str) -> Path:
    """A folder in the user's cache for the index of the run of that name. Raises OSError."""
    from platformdirs import user_cache_path

    place = user_cache_path("evalwright") / "indexes" / run
    place.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
    return place
