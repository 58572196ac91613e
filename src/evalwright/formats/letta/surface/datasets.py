"""Datasets from Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from evalwright.formats.letta.samples import Samples, Selection
from evalwright.formats.letta.surface.models import Sample, sample_of
from evalwright.formats.shared.python_errors import as_the_original
from evalwright.model.snapshot import snapshot

__all__ = ["load_dataset"]


def load_dataset(
    path: Path | str, max_samples: int | None = None, sample_tags: Sequence[str] | None = None
) -> Iterator[Sample]:
    """The samples of a JSONL or CSV file that carry all tags, the first `max_samples` of them.

    Raises FileNotFoundError, and ValueError with every mistake of the file; both are InputError too.
    """
    file = Path(path)
    with as_the_original(file):
        for case in Samples(file, file.resolve().parent, Selection(sample_tags or (), max_samples)):
            yield sample_of(snapshot(case))
