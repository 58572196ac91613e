"""Masks for what is printed: the values of secret-looking environment variables, and those of a suite."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from evalwright.files.masker import Masker
from evalwright.model.plan import Plan
from evalwright.model.summary import RunSummary
from evalwright.stores.local_files.lines import reserved_words

__all__ = ["masked_summary", "masker_of"]


def masker_of(plan: Plan, secrets: Mapping[str, str] = {}) -> Masker:
    return Masker.of(secrets, os.environ).keeping(reserved_words(plan))


def masked_summary(summary: RunSummary, masker: Masker) -> RunSummary:
    """The summary with secrets masked by value, as it is in `summary.yaml`."""
    return msgspec.convert(masker.mask_strings(msgspec.to_builtins(summary)), RunSummary)
