"""Datasets of evaluables in a folder, one JSON file each."""

from __future__ import annotations

import builtins
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalwright.files.durable import replace_file
from evalwright.pixie.config import get_config
from evalwright.pixie.evaluable import Evaluable

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
        """The file of a dataset. Raises ValueError for a name without letters and digits."""
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        if not slug:
            raise ValueError(f"a dataset's name needs letters or digits, found {name!r}")
        return self._folder / f"{slug}.json"

    def create(self, name: str, items: Iterable[Evaluable] | None = None) -> Dataset:
        """A new dataset. Raises FileExistsError."""
        path = self.path(name)
        if path.exists():
            raise FileExistsError(f"Dataset already exists: {name!r}")
        dataset = Dataset(name, list(items or ()))
        self._write(path, dataset)
        return dataset

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
                dataset, stat = _read(path), path.stat()
            except (OSError, ValueError, TypeError, KeyError, AttributeError):
                continue
            created = getattr(stat, "st_birthtime", stat.st_ctime)
            rows.append(
                {
                    "name": dataset.name,
                    "row_count": len(dataset.items),
                    "created_at": datetime.fromtimestamp(created, UTC),
                    "updated_at": datetime.fromtimestamp(stat.st_mtime, UTC),
                }
            )
        return rows

    def append(self, name: str, *items: Evaluable) -> Dataset:
        """Add items at the end. Raises FileNotFoundError."""
        dataset = self.get(name)
        dataset.items.extend(items)
        self._write(self.path(name), dataset)
        return dataset

    def remove(self, name: str, index: int) -> Dataset:
        """Take one item out. Raises IndexError, FileNotFoundError."""
        dataset = self.get(name)
        if not 0 <= index < len(dataset.items):
            raise IndexError(f"no item {index} in {name!r}, which has {len(dataset.items)}")
        del dataset.items[index]
        self._write(self.path(name), dataset)
        return dataset

    def delete(self, name: str) -> None:
        """Remove the dataset. Raises FileNotFoundError."""
        path = self.path(name)
        if not path.is_file():
            raise FileNotFoundError(f"Dataset not found: {name!r}")
        path.unlink()

    def _write(self, path: Path, dataset: Dataset) -> None:
        items = [item.model_dump(mode="json") for item in dataset.items]
        text = json.dumps({"name": dataset.name, "items": items}, indent=2, ensure_ascii=False) + "\n"
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode())


def _read(path: Path) -> Dataset:
    raw = json.loads(path.read_text("utf-8"))
    items = raw["items"] if "items" in raw else raw.get("entries", [])
    return Dataset(str(raw.get("name") or path.stem), [Evaluable.model_validate(item) for item in items])
