"""Datasets of evaluables in a folder, one JSON file each."""

from __future__ import annotations

import builtins
import fcntl
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalwright.files.durable import replace_file
from evalwright.formats.pixie.surface.config import get_config
from evalwright.formats.pixie.surface.evaluable import Evaluable

__all__ = ["Dataset", "DatasetStore"]


@dataclass
class Dataset:
    """A named list of items."""

    name: str
    items: list[Evaluable]


class DatasetStore:
    """Reads and writes the datasets of a folder; a name finds its file in any spelling with the same letters."""

    def __init__(self, dataset_dir: str | Path | None = None) -> None:
        self._folder = Path(dataset_dir if dataset_dir is not None else get_config().dataset_dir)

    def path(self, name: str) -> Path:
        """The file of a dataset. Raises ValueError for a name without letters or digits."""
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        if not slug:
            raise ValueError(f"a dataset's name needs letters or digits, found {name!r}")
        return self._folder / f"{slug}.json"

    def create(self, name: str, items: Iterable[Evaluable] | None = None) -> Dataset:
        """A new dataset. Raises FileExistsError."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(self._folder):
            if path.exists():
                raise FileExistsError(f"Dataset already exists: {name!r}")
            return _write_dataset(path, {"name": name, "items": [item.model_dump(mode="json") for item in items or ()]})

    def get(self, name: str) -> Dataset:
        """The dataset of that name. Raises FileNotFoundError."""
        path = self.path(name)
        if not path.is_file():
            raise FileNotFoundError(f"Dataset not found: {name!r}")
        return _read(path)

    def list(self) -> list[str]:
        """Names of all datasets that can be read, in the order of their files."""
        return [row["name"] for row in self.list_details()]

    def list_details(self) -> builtins.list[dict[str, Any]]:
        """Name, number of items and times of each dataset that can be read."""
        rows = []
        for path in sorted(self._folder.glob("*.json")):
            try:
                document, stat = json.loads(path.read_text("utf-8-sig")), path.stat()
                items = document["items"] if "items" in document else document["entries"]
            except (OSError, ValueError, TypeError, KeyError, RecursionError):
                continue
            if not isinstance(items, builtins.list):
                continue
            created = getattr(stat, "st_birthtime", stat.st_ctime)
            rows.append(
                {
                    "name": str(document.get("name") or path.stem),
                    "row_count": len(items),
                    "created_at": datetime.fromtimestamp(created, UTC),
                    "updated_at": datetime.fromtimestamp(stat.st_mtime, UTC),
                }
            )
        return rows

    def append(self, name: str, *items: Evaluable) -> Dataset:
        """Add items at the end. Raises FileNotFoundError, and ValueError for a file of entries."""
        with self._changing(name) as (path, document):
            document["items"] += [item.model_dump(mode="json") for item in items]
            return _write_dataset(path, document)

    def remove(self, name: str, index: int) -> Dataset:
        """Remove one item and return the dataset. Raises IndexError, FileNotFoundError, and ValueError for a file of
        entries."""
        with self._changing(name) as (path, document):
            if not 0 <= index < len(document["items"]):
                raise IndexError(f"no item {index} in {name!r}, which has {len(document['items'])}")
            del document["items"][index]
            return _write_dataset(path, document)

    def delete(self, name: str) -> None:
        """Remove the dataset. Raises FileNotFoundError."""
        try:
            self.path(name).unlink()
        except FileNotFoundError:
            raise FileNotFoundError(f"Dataset not found: {name!r}") from None

    @contextmanager
    def _changing(self, name: str) -> Iterator[tuple[Path, dict[str, Any]]]:
        """The file and the document of a dataset, locked against other writers during the block."""
        path = self.path(name)
        if not path.is_file():
            raise FileNotFoundError(f"Dataset not found: {name!r}")
        with _locked(self._folder):
            document = json.loads(path.read_text("utf-8-sig"))
            if not isinstance(document, dict) or not isinstance(document.get("items"), builtins.list):
                raise ValueError(f"{path}: expected an object with a list of items, which alone can be changed here")
            yield path, document


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock on the files of a folder; other processes wait for it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write_dataset(path: Path, document: dict[str, Any]) -> Dataset:
    dataset = _dataset(path, document)
    replace_file(path, (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode())
    return dataset


def _read(path: Path) -> Dataset:
    return _dataset(path, json.loads(path.read_text("utf-8-sig")))


def _dataset(path: Path, document: dict[str, Any]) -> Dataset:
    items = document["items"] if "items" in document else document.get("entries", [])
    return Dataset(str(document.get("name") or path.stem), [Evaluable.model_validate(item) for item in items])
