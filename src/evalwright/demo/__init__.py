"""The built-in example: a support agent for a small shop, plain Python, no key and no network."""

from __future__ import annotations

import shutil
from importlib.resources import as_file, files
from pathlib import Path

from evalwright.errors import InputError

__all__ = ["write"]

_FILES = ("agent.py", "shop.py", "cases.yaml", "eval.yaml", "judged.yaml", "judgements.jsonl")


def write(folder: Path) -> Path:
    """Copy the example into a folder and return its `eval.yaml`; an example that is there stays as it is.

    Raises InputError if the folder cannot be written, or has files of the user's with these names: the command would
    run those, and call them the example.
    """
    taken = [name for name in _FILES if (folder / name).exists()]
    if taken and len(taken) < len(_FILES):
        raise InputError(f"{folder} has {', '.join(taken)} already: choose another folder with --out DIR")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with as_file(files(__name__) / "suite") as suite:
            for name in () if taken else _FILES:
                shutil.copyfile(suite / name, folder / name)
    except OSError as error:
        raise InputError(f"cannot write the example to {folder}: {error.strerror}") from error
    return folder / "eval.yaml"
