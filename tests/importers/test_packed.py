"""Small packed files that hold much: they are refused before they fill the memory or the disk."""

import gzip
import resource
from functools import partial

import pytest

from evalwright.errors import InputError
from evalwright.files import packed
from evalwright.importers.file_heads import head_of
from evalwright.importers.sources import document, lines
from importers.transcripts import imported


@pytest.mark.slow("packs and unpacks large files")
@pytest.mark.parametrize("read", [document, lambda file: list(lines(file))])
def test_a_small_packed_file_does_not_fill_the_memory(tmp_path, read):
    bomb = tmp_path / "bomb.json.gz"
    bomb.write_bytes(gzip.compress(bytes(1 << 20)) * 129)
    with pytest.raises(InputError, match=r"bomb\.json\.gz .*more than 128 MiB when unpacked: unpack it first"):
        read(bomb)


@pytest.mark.parametrize("format", [None, "openai-messages", "tau2"])
def test_a_small_packed_file_does_not_fill_the_disk(tmp_path, monkeypatch, format):
    monkeypatch.setattr(packed, "_MOST", 1000)
    bomb = tmp_path / "bomb.jsonl.gz"
    bomb.write_bytes(gzip.compress(b'{"messages": "' + bytes(9_000_000)))
    tell = head_of if format is None else partial(imported, tmp_path, format)
    # what a limit on files allows is written nowhere: the process would be killed otherwise
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, before[1]))
    try:
        with pytest.raises(InputError, match="when unpacked: unpack it first"):
            tell(bomb)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
