"""JSONPaths of a configuration, each parsed once."""

from __future__ import annotations

from functools import cache
from typing import Any

from evalwright.errors import EvaluatorError, TargetError

__all__ = ["JsonPath"]


class JsonPath:
    """A path and the configuration key that it belongs to.

    A malformed path is an error of each call and not of the whole file, so that the suite's other systems still run, as
    with evalh; it is kept in `problem` until the path is needed.
    """

    def __init__(self, key: str, path: str) -> None:
        self._key = key
        self.written: str = f"{key} {path}"
        """The key and the path, for messages."""
        parsed = _parsed_path(path)
        self.problem: str | None = (
            f"{key}: {path!r:.80} is not a JSONPath: {parsed}" if isinstance(parsed, str) else None
        )
        self._parsed_path = parsed

    def find(self, document: Any) -> Any:
        """None without a match, the value of a single match, a list of several values."""
        values = self.matches(document)
        return values if len(values) > 1 else next(iter(values), None)

    def matches(self, document: Any) -> list[Any]:
        """The value of each match."""
        try:
            return [match.value for match in self._parsed_path.find(document)]
        except EvaluatorError as error:
            raise TargetError(f"{self._key}: {error}", error.type) from None
        except Exception as error:  # raised by the path library, which has no class of its own for its errors
            raise TargetError(f"{self._key} cannot be evaluated: {type(error).__name__}: {error}") from None


@cache
def _parsed_path(path: str) -> Any:
    """The parsed path, or what is wrong with it."""
    from evalwright.sandbox.jsonpaths import parsed

    try:
        return parsed(path)
    except Exception as error:
        return str(error) or type(error).__name__
