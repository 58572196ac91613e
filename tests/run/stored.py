"""Files of stored runs, read and cut off."""

import json
from pathlib import Path


def cut(path, records):
    """Keep only the first records of a file and half of the next one."""
    kept = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(kept[:records]) + kept[records][: len(kept[records]) // 2])


def rows_of(folder: Path, name: str):
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def stored(folder: Path, name: str):
    return json.loads((folder / name).read_text())
