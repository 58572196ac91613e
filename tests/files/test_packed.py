"""Files that are packed with gzip or zstd are read as they were before."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard

from evalwright.errors import InputError
from evalwright.files.packed import opened, unpacked_name

TEXT = b"".join(b"line %d\n" % number for number in range(20_000))


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


PACKINGS = {
    "plain": TEXT,
    "gzip": gzip.compress(TEXT),
    "zstd": zstd(TEXT),
    "zstd of several frames": zstd(TEXT[:7]) + zstd(b"") + zstd(TEXT[7:]),
}


@pytest.mark.parametrize("packed", PACKINGS.values(), ids=PACKINGS)
def test_the_first_bytes_say_how_a_file_is_packed(tmp_path: Path, packed: bytes) -> None:
    (tmp_path / "file").write_bytes(packed)
    with opened(tmp_path / "file") as file:
        assert file.readline() == b"line 0\n"
        assert list(file) == TEXT.splitlines(keepends=True)[1:]


def test_an_empty_file_is_no_packed_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with opened(tmp_path / "file") as file:
        assert file.read() == b""


@pytest.mark.parametrize("damage", ["cut", "changed"])
@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_a_damaged_file_is_named(tmp_path: Path, packing: str, damage: str) -> None:
    packed = PACKINGS[packing]
    half = len(packed) // 2
    (tmp_path / "file").write_bytes(packed[:half] + (b"" if damage == "cut" else bytes(64) + packed[half + 64 :]))
    told = ".*ended before" if damage == "cut" else "(?!.*ended before)"
    with pytest.raises(InputError, match=rf"file  cannot be read: {told}"), opened(tmp_path / "file") as file:
        file.read()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"), opened(tmp_path / "gone"):
        pass


@pytest.mark.parametrize(("name", "unpacked"), [("a.jsonl.gz", "a.jsonl"), ("a.ZST", "a"), ("a.json", "a.json")])
def test_the_name_without_the_packing(name: str, unpacked: str) -> None:
    assert unpacked_name(Path(name)) == Path(unpacked)
