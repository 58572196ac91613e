"""The file of a suite while it is read: the files it names, and its problems with their places."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from evalwright import registry
from evalwright.errors import Problem, did_you_mean
from evalwright.files import yaml
from evalwright.files.boundary import Boundary, OutsideError
from evalwright.files.key_paths import Place, as_written, bracketed, dotted
from evalwright.files.paths import also_here, named_in
from evalwright.formats.native.file import Section
from evalwright.formats.shared.environment import Expansion, is_folder
from evalwright.formats.shared.findings import Findings
from evalwright.model.plan import Plugin

__all__ = ["SuiteFile"]


class SuiteFile:
    """One reading of one `eval.yaml`, gathering its problems; the parts read may name other files."""

    def __init__(
        self,
        path: Path,
        document: yaml.Document,
        environment: Mapping[str, str] | None,
        allow_outside: Sequence[Path] = (),
        original: bool = False,
    ) -> None:
        self.path: Path = path
        self.document: yaml.Document = document
        self.original: bool = original
        self.headline: str = f"Invalid config {path}"
        self.findings: Findings = Findings(path, document, dotted if original else bracketed)
        self.report: Callable[[Place, str], None] = self.findings.report
        self.take: Callable[[Place, Callable[[], object]], None] = self.findings.take
        self.warn: Callable[[Place, str], None] = self.findings.warn
        self.files: list[Path] = []
        """The files it names, for the hash of the inputs of a run."""
        self.expansion: Expansion = Expansion(environment, str(path.resolve().parent))
        self._allowed = allow_outside

    def unread(self, variables: Iterable[str]) -> list[Problem]:
        """The caller's variables that the file, once read, does not use."""
        named = self.expansion.named
        unread = (name for name in variables if name not in named)
        return [
            Problem(str(self.path), f"nothing here reads the variable {name!r}{did_you_mean(name, named)}")
            for name in unread
        ]

    def expanded(self) -> dict[Any, Any]:
        raw = self.document.value
        if not isinstance(raw, dict):
            found = "the file is empty" if raw is None else f"found {as_written(raw)}"
            self.report((), f"{found}, expected a mapping with eval, dataset, systems, evaluators and output")
            self.findings.refuse(self.headline)
        expanded: dict[Any, Any] = self.expansion.expanded(raw)
        for place, name in self.expansion.unset:
            message = f"the environment variable {name!r} is not set and has no default"
            message += f": export it, or pass --var {name}=VALUE to `run`"
            line = self.document.line(place)
            self.findings.problems.append(Problem(str(self.path), message, line, bracketed(place)))
            self.findings.settled.append(place)
        for place, text in () if self.original else self.expansion.misspelt:
            # evalh leaves it as it is, and the program gets a text that its author meant as a value.
            bare = text.strip("${ }").rpartition(".")[2].partition(":")[0].strip()
            near = re.sub(r"\W", "_", bare).upper()
            how = "write" if near == bare else "names are upper case:"
            meant = f"{how} ${{{near}}}; for the text itself, write ${{__:-$}} for its dollar sign"
            self.report(place, f"{text} is not a reference to a variable ({meant})")
        for place, name in self.expansion.secret:
            if place[-1:] == ("name",) or is_folder(place):
                what = "name" if place[-1:] == ("name",) else "path"
                self.report(place, f"{what}s are stored: {name!r} is a secret, expected a {what} without it")
        if isinstance(expanded.get("output"), dict):
            expanded["output"] = [expanded["output"]]
        systems = expanded.get("systems")
        systems = systems if isinstance(systems, list) and not self.original else []
        if any(isinstance(system, dict) and "matrix" in system for system in systems):
            from evalwright.formats.native.matrix import unfolded

            unfolding = unfolded(systems, self.report)
            expanded["systems"], self.findings.authored = unfolding.systems, unfolding.authored
        return expanded

    def found(self, place: Place, name: str) -> Path:
        """The file or folder of that name; a warning if the working directory has another one."""
        if doubt := also_here(self.path, name):
            self.warn(place, doubt)
        path = named_in(self.path, name)
        self.files.append(path)
        return path

    def doubt_keys(self, place: Place, section: Section, also: Collection[str] = ()) -> None:
        """Warn of keys of an open section that its type, one of ours, does not read; `also` lists more that are
        read."""
        for key in section.extra:
            if key not in also:
                self.findings.warn_unread((*place, key), [*section.keys(), *also])

    def doubt_config(self, place: Place, kind: str, given: Plugin) -> None:
        """Warn of keys that a mirror, an enricher or a workspace does not read; its `config_keys` are those it does."""
        known: tuple[str, ...] | None = getattr(registry.load(kind, given.type), "config_keys", None)
        for key in given.config:
            if known is not None and key not in known:
                self.findings.warn_unread((*place, key), known)

    def known(self, place: Place, kind: str, name: str) -> bool:
        """Whether a name is registered; reported as a problem if not."""
        if registry.knows(kind, name):
            return True
        self.take(place, partial(registry.load, kind, name))
        return False

    def wanted(self, place: Place, kind: str, name: str, to_run: bool) -> bool:
        """Whether a name is registered and may be built: the user's code is not imported needlessly."""
        from evalwright.evaluators.build import declared

        return self.known(place, kind, name) and (to_run or not declared(kind, name).imports_code)

    def must_be_inside(self, place: Place, path: Path) -> bool:
        """Whether a path in the suite lies inside its boundary or the working directory; reported if not."""
        folder = self.path.resolve().parent
        with suppress(OSError, RuntimeError, ValueError):  # the boundary reports paths that cannot be resolved
            if path.resolve().is_relative_to(folder) and (path.is_file() or path.is_dir()):
                return True  # inside any boundary that the folder has
        boundary = Boundary(folder, [*self._allowed, Path.cwd()])
        try:
            boundary.check(path)
        except OutsideError as error:
            self.report(place, str(error))
            return False
        return True
