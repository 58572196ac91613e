"""Where Hugging Face keeps datasets on disk: saved ones, copies of repositories, and this account's cache.

Nothing is downloaded. A saved dataset is a folder with `state.json`, or, if it has several splits, with
`dataset_dict.json`; a repository has its files named by split, or listed under `configs` of its README; the cache has
both, the repository as it was fetched (`hub`) and the dataset as the `datasets` package prepared it (`datasets`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import msgspec

from evalwright.errors import InputError, Problem, did_you_mean
from evalwright.files import yaml
from evalwright.files.key_paths import as_written
from evalwright.files.packed import unpacked_name

__all__ = ["dataset_files"]

_ENDINGS = (".parquet", ".arrow", ".csv", ".tsv", ".json", ".jsonl", ".ndjson")
_NO_DATA = frozenset({"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"})
_SPLITS = {
    "train": "train", "training": "train", "test": "test", "testing": "test", "eval": "test", "evaluation": "test",
    "validation": "validation", "valid": "validation", "val": "validation", "dev": "validation",
}  # fmt: skip
"""Words in the names of files and folders, as the `datasets` package reads them."""
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})$")
_WORD = re.compile(r"[^a-z0-9]+")
_WHOLE = "train"
"""The split for files whose names contain no such word."""


def dataset_files(config: Mapping[str, Any], beside: Path) -> list[Path]:
    """The files, in order, of the dataset that `path`, or `name` in the cache, selects with `split` and `subset`.

    Raises InputError with keys of `dataset`.
    """
    path, name = config.get("path"), config.get("name")
    if (path is None) == (name is None):
        raise _wrong("path", "expected either 'path', a folder, or 'name', a dataset in the cache")
    for key in ("path", "name", "split", "subset"):
        if not isinstance(config.get(key), str | None):
            raise _wrong(key, "expected text")
    split, subset = config.get("split"), config.get("subset")
    if name is not None:
        return _cached_files(name, split, subset)
    folder = beside / Path(str(path)).expanduser()
    if not os.path.isdir(folder):
        raise _wrong("path", f"there is no folder {path!r}")
    return _in_folder(folder, split, subset)


def _wrong(key: str, message: str) -> InputError:
    return InputError(Problem("", message, key=f"dataset.{key}"))


def _in_folder(folder: Path, split: str | None, subset: str | None) -> list[Path]:
    if os.path.isfile(folder / "state.json"):
        if split is not None or subset is not None:
            raise _wrong("split" if split is not None else "subset", "the folder contains one dataset, without splits")
        return _saved_files(folder)
    if os.path.isfile(folder / "dataset_dict.json"):
        listed = _document(folder / "dataset_dict.json").get("splits")
        splits = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
        if subset is not None:
            raise _wrong("subset", "the folder contains splits of one dataset")
        chosen = folder / _chosen_name("split", split, splits)
        return _saved_files(chosen)
    return _in_repository(folder, split, subset)


def _saved_files(folder: Path) -> list[Path]:
    """The files listed in the state of a saved dataset."""
    state = _document(folder / "state.json")
    if state.get("_indices_data_files"):  # written by early releases only
        reason = "its rows are chosen by a file of indices, which is not read: save it again after flatten_indices()"
        raise InputError(Problem(str(folder / "state.json"), reason))
    listed = state.get("_data_files")
    names = (
        [sibling.get("filename") for sibling in listed if isinstance(sibling, dict)] if isinstance(listed, list) else []
    )
    files = [folder / name for name in names if isinstance(name, str) and Path(name).name == name]
    missing = [file for file in files if not os.path.isfile(file)]
    if missing or not files or len(files) < len(names):
        what = f"{missing[0].name} is missing" if missing else "names no files"
        raise InputError(Problem(str(folder / "state.json"), what))
    return files


def _in_repository(folder: Path, split: str | None, subset: str | None) -> list[Path]:
    configs = {name: data for name, data in _configs(folder) if data}
    if configs:
        chosen = configs[_chosen_name("subset", subset, [*configs])]
    else:
        inner = folder if subset is None else folder / subset
        if subset is not None and (Path(subset).name != subset or not os.path.isdir(inner)):
            raise _wrong("subset", f"there is no folder {subset!r} in {folder}")
        chosen = {}
        for file in _data_files(inner):
            chosen.setdefault(_split_of(file.relative_to(inner)), []).append(file)
        if not chosen:
            raise _wrong("path", f"{inner} contains no dataset: no {', '.join(_ENDINGS)}")
    return _complete(chosen[_chosen_name("split", split, [*chosen])])


def _complete(files: list[Path]) -> list[Path]:
    """The files of a split. Raises InputError if they are numbered and some are missing: half a download, perhaps."""
    shards: dict[tuple[Path, int], set[str]] = {}
    for file in files:
        stem = unpacked_name(file).stem
        if shard := _SHARD.search(stem):
            name = file.with_name(stem.removesuffix(shard[0]))
            shards.setdefault((name, int(shard[2])), set()).add(shard[1])
    missing = [
        Problem(str(name.parent), f"has {len(numbers)} of the {total} files of {name.name}")
        for (name, total), numbers in shards.items()
        if len(numbers) != total
    ]
    if missing:
        raise InputError(missing)
    return files


def _data_files(folder: Path) -> list[Path]:
    return sorted(
        file
        for file in folder.rglob("*")
        if unpacked_name(file).suffix.lower() in _ENDINGS
        and file.name not in _NO_DATA
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
        and os.path.isfile(file)
    )


def _split_of(file: Path) -> str:
    """The split named by a word in a file's name, else in the name of a folder around it."""
    for part in (unpacked_name(Path(file.name)).stem, *reversed(file.parent.parts)):
        for word in _WORD.split(part.lower()):
            if word in _SPLITS:
                return _SPLITS[word]
    return _WHOLE


def _configs(folder: Path) -> Iterator[tuple[str, dict[str, list[Path]]]]:
    """The subsets that the head of a repository's README lists, and the files of their splits."""
    try:
        text = (folder / "README.md").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    head = text.removeprefix("---\n").partition("\n---")[0] if text.startswith("---\n") else ""
    listed = yaml.parse(head.encode(), str(folder / "README.md"), "true_false").value if head else None
    configs = listed.get("configs") if isinstance(listed, dict) else None
    for config in configs if isinstance(configs, list) else ():
        if isinstance(config, dict) and isinstance(config.get("config_name"), str):
            inner = config.get("data_dir", ".")
            if _is_inside(inner):
                yield config["config_name"], dict(_files_of_patterns(folder / inner, config.get("data_files")))


def _is_inside(name: object) -> TypeGuard[str]:
    """Whether a path in a repository's README stays inside the repository: anyone may have written it."""
    return isinstance(name, str) and not Path(name).is_absolute() and ".." not in Path(name).parts


def _files_of_patterns(folder: Path, value: Any) -> Iterator[tuple[str, list[Path]]]:
    entries = value if isinstance(value, list) else [] if value is None else [value]
    bare = [entry for entry in entries if isinstance(entry, str)]
    for item in [*([{"split": _WHOLE, "path": bare}] if bare else []), *entries]:
        if not isinstance(item, dict) or not isinstance(item.get("split"), str):
            continue
        patterns = item.get("path")
        named = patterns if isinstance(patterns, list) else [patterns]
        files = [
            file for name in filter(_is_inside, named) for file in sorted(folder.glob(name)) if os.path.isfile(file)
        ]
        if files:
            yield item["split"], files


def _cached_files(name: str, split: str | None, subset: str | None) -> list[Path]:
    owner, slash, bare = name.rpartition("/")
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name) or bare in (".", ".."):
        raise _wrong("name", f"expected the name of a dataset like 'org/name', found {as_written(name)}")
    prepared = _cache("HF_DATASETS_CACHE", "datasets") / (f"{owner}___{bare}" if slash else bare)
    repository = _cache("HF_HUB_CACHE", "hub") / f"datasets--{name.replace('/', '--')}"
    if any(prepared.glob("*/*/*/dataset_info.json")):
        return _prepared_files(prepared, split, subset)
    snapshot = _snapshot(repository)
    if snapshot is not None:
        return _in_repository(snapshot, split, subset)
    download = f"hf download {name} --repo-type dataset"
    raise _wrong("name", f"{name!r} is not in the cache of Hugging Face, and nothing is downloaded here: {download}")


def _cache(variable: str, name: str) -> Path:
    if folder := os.environ.get(variable):
        return Path(folder).expanduser()
    home = os.environ.get("HF_HOME") or f"{os.environ.get('XDG_CACHE_HOME') or '~/.cache'}/huggingface"
    return Path(home).expanduser() / name


def _snapshot(repository: Path) -> Path | None:
    try:
        named = repository / "snapshots" / (repository / "refs" / "main").read_text(encoding="ascii").strip()
        if os.path.isdir(named):
            return named
    except (OSError, ValueError):
        pass
    fetched = [snapshot for snapshot in repository.glob("snapshots/*") if os.path.isdir(snapshot)]
    return max(fetched, key=lambda snapshot: snapshot.stat().st_mtime, default=None)


def _prepared_files(folder: Path, split: str | None, subset: str | None) -> list[Path]:
    """The files that the `datasets` package prepared: `SUBSET/VERSION/HASH/NAME-SPLIT[-00000-of-00002].arrow`."""
    infos = sorted(folder.glob("*/*/*/dataset_info.json"), key=lambda info: info.stat().st_mtime)
    newest = {info.parts[-4]: info.parent for info in infos}
    made = newest[_chosen_name("subset", subset, sorted(newest))]
    splits: dict[str, list[Path]] = {}
    for file in sorted(made.glob("*.arrow")):
        splits.setdefault(_SHARD.sub("", file.stem).rpartition("-")[2], []).append(file)
    files = splits[_chosen_name("split", split, [*splits])]
    return _complete(files)


def _chosen_name(key: str, name: str | None, there: Sequence[str]) -> str:
    """The one with that name, or the only one."""
    if name is None and len(there) == 1:
        return there[0]
    has = ", ".join(there) or "none"
    if name is None:
        raise _wrong(key, f"the dataset has several: say which of {has}")
    if name not in there:
        raise _wrong(key, f"the dataset has no {key} {name!r}{did_you_mean(name, there)} (it has {has})")
    return name


def _document(file: Path) -> dict[str, Any]:
    try:
        info = msgspec.json.decode(file.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(Problem(str(file), f"cannot be read: {error}")) from None
    return info if isinstance(info, dict) else {}
