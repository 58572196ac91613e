"""Makes `import northstar.evals` give our surface, for programs that ask for it."""

from __future__ import annotations

from evalwright.formats import shims
from evalwright.formats.northstar import FORMAT

__all__ = ["serve"]


def serve() -> None:
    """Bind `northstar.evals`. The rest of an installed package `northstar`, such as its SDK, stays as it is."""
    shims.serve(FORMAT)
