"""The files that a run uses, and modules whose name could mean two of them."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalwright.errors import InputError, Problem
from evalwright.files.jsonl import repeated_keys, repeated_keys_in
from evalwright.files.key_paths import bracketed
from evalwright.files.paths import import_folders, seen_from_here
from evalwright.files.strict_json import repeated_json_keys
from evalwright.registry import knows, load
from evalwright.session import is_offline

if TYPE_CHECKING:
    from evalwright.model.suite import Suite

__all__ = [
    "announced_by",
    "beyond_reach",
    "changed_since",
    "doubled_files",
    "doubled_keys",
    "doubled_modules",
    "executed",
    "file_digest_of",
    "hashed",
    "is_unchanged",
    "recorded_for",
    "sha256_of",
]

_CODE = re.compile(r"([A-Za-z_]\w*)[\w.]*:[A-Za-z_][\w.]*")
"""`module.path:name`; a module is searched for by the first part of its path."""
_OF_CODE = (".py", ".ts", ".js", ".mjs", ".sh")
_FILE = re.compile(r"(.+\.py):[A-Za-z_][\w.]*")


_COMMANDS = ("cmd", "command", "command_template", "image", "script")
"""Keys of systems and evaluators below which a program is named."""


def hashed(suite: Suite) -> dict[str, str]:
    """SHA-256 (hex) by path: the suite's file, the files that it names and those with its code."""
    digests: dict[str, str] = {}
    for path in _files_of_suite(suite):
        try:
            if path.is_file():
                digests[str(path.resolve())] = sha256_of(path)
        except (OSError, ValueError):
            continue  # the code that reads it will report what is wrong
    return digests


def recorded_for(suite: Suite, files: Mapping[str, str], source: str) -> dict[str, str]:
    """The SHA-256 (hex) by path that `hashed` found elsewhere, for the files of this suite in the same places.

    `source` is where the suite's file was; files that `files` names and this suite does not are left out.
    """
    at = {os.path.relpath(name, Path(source).parent): digest for name, digest in files.items()}
    home = Path(os.path.realpath(suite.source)).parent
    here = {path: os.path.relpath(path, home) for path in map(os.path.realpath, _files_of_suite(suite))}
    return {path: at[place] for path, place in here.items() if place in at}


def _files_of_suite(suite: Suite) -> Iterator[Path]:
    """The suite's file, the files that it names and those with its code."""
    yield from (suite.source, *suite.files, *_code(suite))


def sha256_of(path: Path) -> str:
    """The SHA-256 (hex) of a file, read in pieces. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_unchanged(path: Path, digest: str) -> bool:
    """Whether a file still has this SHA-256 (hex). Raises OSError."""
    return sha256_of(path) == digest


def changed_since(files: Mapping[str, str]) -> list[Path]:
    """The files with another content than when `hashed` looked; one that is gone, or elsewhere now, is left out."""
    changed = []
    for name, digest in files.items():
        path = Path(name)
        with suppress(OSError, ValueError):
            if path.is_file() and not is_unchanged(path, digest):
                changed.append(path)
    return changed


def file_digest_of(path: str) -> str:
    """SHA-256 (hex) of a file that an evaluator's configuration names; empty for what is not a file, and for code.

    Code may contain the system as well, which is meant to change between two runs.
    """
    try:
        if Path(path).suffix in _OF_CODE or not os.path.isfile(path):
            return ""
        return sha256_of(Path(path))
    except (OSError, ValueError):
        return ""


def doubled_modules(suite: Suite) -> Iterator[Problem]:
    """Modules that the suite's folder and the working directory both have: the first one is imported."""
    for name, text in _texts(suite):
        match = _CODE.fullmatch(text)
        homes = _homes(match[1], suite) if match else []
        if len(homes) > 1:
            message = f"{text!r} is {homes[0]}; another module of that name is not used: {homes[1]}"
            yield Problem(str(suite.source), message, key=name)


def doubled_keys(suite: Suite) -> Iterator[Problem]:
    """Keys that occur twice in an object of a JSON file: all programs read only the last one."""
    known: Path | None = getattr(suite.cases, "without_repeats", None)
    for path in dict.fromkeys((suite.source, *suite.files)):
        if path.suffix not in (".json", ".jsonl", ".ndjson") or path == known:
            continue
        try:
            files: Iterable[tuple[int, str, str]]
            if path.suffix == ".json":
                files = _repeated_in_document(path)
            else:
                files = ((number, key, key) for number, key in repeated_keys_in(path))
            for number, key, place in files:
                yield Problem(str(path), f"the key {key!r} occurs more than once: the last one counts", number, place)
        except (OSError, ValueError, RecursionError, InputError):
            continue  # the code that reads it will report what is wrong


def _repeated_in_document(path: Path) -> Iterator[tuple[int, str, str]]:
    """The line, the key and the place of each key that occurs again in an object of a JSON file."""
    data = path.read_bytes()
    if repeated_keys(data):  # looking for their places takes much longer
        yield from ((line, str(place[-1]), bracketed(place)) for place, line in repeated_json_keys(data))


def doubled_files(suite: Suite) -> Iterator[Problem]:
    """Files of commands that are also in the suite's folder: the command uses those in the working directory."""
    commands = [(variant.name, variant.config, "command") for variant in suite.variants if suite.workspace is None]
    commands += [(evaluator.name, evaluator.config, "script") for evaluator in suite.evaluators]
    for name, config, key in commands:
        words = config.get(key)
        for word in words if isinstance(words, list) and "cwd" not in config else ():
            beside, here = suite.source.parent / str(word), Path(str(word))
            try:
                if beside.is_file() and here.is_file() and not beside.samefile(here):
                    message = f"{word!r} is {here.absolute()}; the one in the suite's folder is not used: {beside}"
                    yield Problem(str(suite.source), message, key=name)
            except (OSError, ValueError):
                continue  # a word may be too long for a file name


def executed(suite: Suite) -> list[str]:
    """Programs that a run of the suite executes and that are not evalwright's: files of code, and each command's first
    word."""
    files = [str(seen_from_here(path)) for path in _code(suite)]
    commands = [variant.config.get("command") for variant in suite.variants]
    words = [
        command[0] if isinstance(command, list) else command.split()[0]
        for command in commands
        if command and isinstance(command, str | list)
    ]
    return list(dict.fromkeys([*files, *map(str, words)]))


def announced_by(suite: Suite) -> list[str]:
    """What the systems of a suite announce before every run, such as whose rights they have."""
    known = [variant for variant in suite.variants if knows("targets", variant.adapter)]
    texts = [getattr(load("targets", variant.adapter), "announces", lambda _: "")(variant.config) for variant in known]
    return [line for line in dict.fromkeys(texts) if line]


def beyond_reach(suite: Suite) -> Iterator[Problem]:
    """With --no-network, the systems and evaluators that start programs, which connect as they like."""
    for name, config in _owners(suite) if is_offline() else ():
        if program := next(_programs(config), ""):
            yield Problem(str(suite.source), f"--no-network does not restrict the program {program!r}", key=name)


def _programs(config: Any) -> Iterator[str]:
    """The first words of the commands in a configuration."""
    if isinstance(config, dict):
        for key, value in config.items():
            words = value if isinstance(value, list) else value.split() if isinstance(value, str) else []
            if key in _COMMANDS and words:
                yield str(words[0])
            else:
                yield from _programs(value)
    elif isinstance(config, list):
        for item in config:
            yield from _programs(item)


def _code(suite: Suite) -> Iterator[Path]:
    for _, text in _texts(suite):
        if match := _FILE.fullmatch(text):
            yield from (path for folder in import_folders(suite.source) if (path := Path(folder, match[1])).is_file())
        elif match := _CODE.fullmatch(text):
            yield from _homes(match[1], suite)[:1]


def _homes(module: str, suite: Suite) -> list[Path]:
    """The files that an import of the name may find, the one that it does find first."""
    paths = (
        Path(folder, place)
        for folder in import_folders(suite.source)
        for place in (f"{module}/__init__.py", f"{module}.py")
    )
    return [path for path in paths if path.is_file()]


def _texts(suite: Suite) -> Iterator[tuple[str, str]]:
    """The short strings in the configurations of a suite, with the name of the system or evaluator."""
    for name, config in _owners(suite):
        yield from ((name, text) for text in dict.fromkeys(_short_texts(config)))


def _owners(suite: Suite) -> list[tuple[str, dict[str, Any]]]:
    return [(variant.name, variant.config) for variant in suite.variants] + [
        (evaluator.name, evaluator.config) for evaluator in suite.evaluators
    ]


def _short_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if ":" in value and len(value) < 300:
            yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _short_texts(inner)
