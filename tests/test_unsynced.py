"""What stands in for a sync refuses what a sync refuses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import unsynced


def test_files_and_folders_are_taken_and_what_cannot_be_synced_is_refused(tmp_path: Path) -> None:
    assert os.fsync is unsynced.fsync
    folder = os.open(tmp_path, os.O_RDONLY)
    file = os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT)
    ends = os.pipe()
    for descriptor in (folder, file):
        os.fsync(descriptor)
    with pytest.raises(OSError, match="Invalid argument"):
        os.fsync(ends[1])
    for descriptor in (folder, file, *ends):
        os.close(descriptor)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fsync(file)
