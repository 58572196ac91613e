"""A run as one JSON object, for programs."""

from __future__ import annotations

import msgspec

from evalwright.model.protocols import RunReader
from evalwright.model.summary import RunSummary
from evalwright.reports.failures import newest_verdicts

__all__ = ["JsonReport"]


class JsonReport:
    """One JSON object: `summary` as in summary.yaml, `cells` with the newest verdict of each finished cell."""

    def render(self, reader: RunReader, summary: RunSummary) -> str:
        document = {"summary": summary, "cells": list(newest_verdicts(reader))}
        return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
