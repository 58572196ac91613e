"""Shards of a run, and what of them is compared."""

import json
import random
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
import yaml

from evalwright.errors import InputError
from evalwright.model.plan import Shard
from evalwright.model.suite import Suite
from evalwright.run.merge import merge
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from evalwright.stores.index.file import INDEX
from evalwright.stores.local_files import LocalFiles

LOOSE = {"run_id", "started_at", "finished_at", "latency_ms", "avg_latency_ms", "avg_latency_delta_ms"}
"""What two honest runs of the same cells may differ in."""
RECORDS = ("cases", "traces", "results", "verdicts")


def plain(value):
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items() if key not in LOOSE}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


def records(folder: Path, name: str) -> list[str]:
    return [json.dumps(plain(json.loads(line))) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def summary(folder: Path) -> str:
    return yaml.safe_dump(plain(yaml.safe_load((folder / "summary.yaml").read_text())), sort_keys=False)


def sharded(suite: Suite, of: int, out: Path) -> list[Path]:
    return [run_suite(suite, RunOptions(shard=Shard(k, of), out=out / str(k))).run_dir for k in range(1, of + 1)]


def bytes_of(folder: Path) -> dict[str, bytes]:
    names = [*(f"{name}.jsonl" for name in RECORDS), "plan.json", "manifest.json"]
    return {name: (folder / name).read_bytes() for name in names}


TEXTS = ["done", "no", "done", "done", "no"]


def indexed(part: Path) -> Path:
    """The shard, with the index that a larger one has."""
    with closing(LocalFiles(part.parent).read(part.name)) as reader, closing(reader.index("to_keep")) as index:
        assert index.path == part / INDEX
    return part


def answers(run: Path) -> list[object]:
    with closing(LocalFiles(run.parent).read(run.name)) as reader, closing(reader.index("always")) as index:
        cells = list(index.cells())
        counts = sorted(msgspec.json.encode(count._replace(alike=0)) for count in index.counts())
        kinds = [msgspec.structs.replace(cell, alike=None) for cell in cells]
        return [kinds, counts, index.sums(), index.superseded(), [index.records(cell) for cell in cells]]


def crash(folder: Path, dice: random.Random) -> None:
    """What a SIGKILL leaves: the last record torn, results at most of traces, verdicts at most of results."""
    kept: set[tuple[str, str, int]] | None = None
    for name in ("traces", "results", "verdicts"):
        path = folder / f"{name}.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        cells = [(r["case_id"], r["variant_name"], r["trial"]) for r in map(json.loads, lines)]
        if kept is None:
            kept = {*cells[: dice.randint(0, len(cells))]}
        there = [(cell, line) for cell, line in zip(cells, lines, strict=True) if cell in kept]
        cut = dice.randint(max(0, len(there) - 3), len(there))
        torn = there[cut][1][: dice.randint(0, 40)] if cut < len(there) else b""
        path.write_bytes(b"".join(line for _, line in there[:cut]) + torn)
        kept -= {cell for cell, _ in there[cut:]}  # a verdict is written when all results are
    (folder / "manifest.json").unlink()
    if dice.random() < 0.5:
        (folder / "summary.yaml").unlink()


def refused(runs, out: Path, **options) -> str:
    with pytest.raises(InputError) as error:
        merge(runs, out, **options)
    assert not out.exists()
    return str(error.value)
