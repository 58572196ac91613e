"""The `target` of a Letta suite: one variant for each model."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalwright.errors import InputError, did_you_mean
from evalwright.files.jsonl import decoded
from evalwright.files.key_paths import Place, as_written
from evalwright.files.numbers import finite_number_in
from evalwright.files.paths import import_folders, near_file
from evalwright.formats.letta.model_configs import SHIPPED_MODELS
from evalwright.formats.letta.retries import checked_retries
from evalwright.formats.shared.named_files import NamedFiles
from evalwright.model.plan import Variant

if TYPE_CHECKING:
    from evalwright.formats.letta.recorded_results import Cache

__all__ = ["NAMED_BY", "SOURCES", "TARGET_KINDS", "TargetSection"]

TARGET_KINDS = {
    "letta_agent": "agent", "agent": "agent", "letta_code": "code", "python": "backend", "http": "backend",
    "openai": "backend", "replay": "replay",
}  # fmt: skip
NAMED_BY = {"python": ("callable", "function"), "http": ("endpoint", "url"), "openai": ("model",), "replay": ("path",)}
"""Keys that name the backend, exactly one of which is needed, by the kinds that are themselves backends."""
SOURCES = ("agent_id", "agent_file", "agent_script")
_TIMEOUT = 300.0
_SECRET = "api_key"


class TargetSection:
    """Reads `target`, and the related settings of the command line and the environment."""

    cached: str | None

    def __init__(
        self,
        files: NamedFiles,
        suite: Mapping[str, Any],
        options: Mapping[str, Any],
        environment: Mapping[str, str],
        report: Callable[[Place, str], None],
        warn: Callable[[Place, str], None],
    ) -> None:
        self._files, self._folder, self._suite = files, files.folder, suite
        self._report, self._warn = report, warn
        raw = suite.get("target")
        if not isinstance(raw, dict):
            report(
                ("target",),
                "target: it is missing" if raw is None else f"target: expected a mapping, found {as_written(raw)}",
            )
            raw = {}
        self._raw: dict[str, Any] = raw
        self._handle: str | None = options.get("model_handle")
        self._kind = self._known_kind()
        self._backend, self.cached = self._answering(options, environment)
        self._cache: Cache | None = None
        self._cleanup = self._cleans_up()
        self.attempts: int = 1 + checked_retries(raw.get("max_retries", 0), ("target", "max_retries"), report)

    def variants(self, to_run: bool, take: Callable[[Place, Callable[[], object]], None]) -> list[Variant]:
        """One for each model; without models, a single one."""
        self._check_source()
        if not to_run:
            return [self._variant(name, model, i) for i, (name, model) in enumerate(self._models().items())]
        self._check_file()
        if self.cached is not None:
            take(("target",), self._read_cache)
        variants = []
        for i, (name, model) in enumerate(self._models().items()):
            variant = self._variant(name, model, i)
            variants.append(variant)
            if not self._files.refused:
                take((), partial(_built, variant, import_folders(self._folder / "suite.yaml"), self._backend_from))
        return variants

    def recorded_inputs(self, sample_id: str) -> list[Any]:
        return self._cache.inputs(sample_id) if self._cache is not None else []

    def document(self) -> dict[str, Any]:
        """The section without its key."""
        return {key: value for key, value in self._raw.items() if key != _SECRET}

    def _read_cache(self) -> None:
        from evalwright.formats.letta.recorded_results import read_cache

        assert self.cached is not None
        self._cache = read_cache(Path(self.cached))

    def _known_kind(self) -> str:
        if not self._raw:
            return ""
        kind = self._raw.get("kind")
        if not isinstance(kind, str) or kind not in TARGET_KINDS:
            known = f"{did_you_mean(str(kind), TARGET_KINDS)} (there are: {', '.join(TARGET_KINDS)})"
            self._report(("target", "kind"), f"unknown kind {kind!r}{known}")
        return TARGET_KINDS.get(str(kind), "")

    def _answering(self, options: Mapping[str, Any], environment: Mapping[str, str]) -> tuple[str | None, str | None]:
        """The backend, and the folder of recordings: from the command line, else the suite, else the environment."""
        self._backend_from = ("--target", "")
        spec = options.get("target") or self._own_backend()
        if not spec and (spec := environment.get("EVALWRIGHT_TARGET")):
            self._backend_from = ("EVALWRIGHT_TARGET", "")
        cached = options.get("cached")
        if spec is not None and spec.startswith("replay:"):
            cached = spec.removeprefix("replay:")
            spec = None
        return spec, None if cached is None else os.path.abspath(str(cached))  # noqa: PTH100 - keeps links as given

    def _own_backend(self) -> str | None:
        """The suite's own backend, with its files within the boundary; files of functions in the folder, if they are
        there."""
        spec, kind = self._raw.get("backend"), self._raw.get("kind")
        key = "backend" if spec else next((key for key in NAMED_BY.get(str(kind), ()) if self._raw.get(key)), "kind")
        spec = spec or self._place_of_kind()
        if spec is not None and not isinstance(spec, str):
            self._report(("target", key), f"{key}: expected text, found {as_written(spec)}")
            return None
        if spec is None:
            return None
        self._backend_from = ("", f"target.{key}")
        file, _, name = spec.rpartition(":")
        if file.endswith(".py"):
            here = os.path.isfile(self._folder / file) or not os.path.isfile(file)
            return self._files.function(spec if here else f"{Path(file).absolute()}:{name}", ("target", key))
        if spec.startswith("replay:"):
            self._files.path(str(Path(spec.removeprefix("replay:")).absolute()), ("target", key))
        return spec

    def _place_of_kind(self) -> str | None:
        """`kind: python|http|openai|replay`, a backend named without its prefix."""
        kind, raw = self._raw.get("kind"), self._raw
        if kind == "python":
            return raw.get("callable") or raw.get("function")
        if kind == "http":
            return raw.get("endpoint") or raw.get("url")
        if kind == "openai":
            return f"openai:{raw.get('model', '')}" + (f"@{raw['base_url']}" if raw.get("base_url") else "")
        return f"replay:{self._folder / str(raw.get('path', ''))}" if kind == "replay" else None

    def _check_source(self) -> None:
        for place, value in (
            *((("target", key), self._raw.get(key)) for key in (*SOURCES, "working_dir")),
            (("setup_script",), self._suite.get("setup_script")),
        ):
            if value is not None and not isinstance(value, str):
                self._report(place, f"{place[-1]}: expected text, found {as_written(value)}")
        sources = [name for name in SOURCES if self._raw.get(name)]
        if self._kind == "agent" and len(sources) != 1:
            found = " and ".join(sources) or "none"
            self._report(("target",), f"target: expected exactly one of {', '.join(SOURCES)}, found {found}")
        keys = NAMED_BY.get(str(self._raw.get("kind")), ())
        if keys and not any(isinstance(self._raw.get(key), str) and self._raw[key] for key in keys):
            self._report(("target",), f"target: a target of this kind needs {' or '.join(map(repr, keys))}, a text")
        if isinstance(work := self._raw.get("working_dir"), str):
            self._files.path(work, ("target", "working_dir"))
        named = self._raw.get("agent_file")
        if named is not None and not str(named).endswith(".af"):
            self._report(
                ("target", "agent_file"), f"agent_file: expected a file that ends in .af, found {as_written(named)}"
            )

    def _check_file(self) -> None:
        named = str(self._raw.get("agent_file") or "")
        if named.endswith(".af") and not os.path.isfile(file := self._files.path(named, ("target", "agent_file"))):
            self._report(("target", "agent_file"), f"agent_file: there is no file {named!r}{near_file(file)}")

    def _models(self) -> dict[str, str | None]:
        """Models by the names of their variants; a model with several configurations by the names of those."""
        given = {key: self._raw[key] for key in ("model_handles", "model_configs") if self._raw.get(key) is not None}
        if len(given) > 1:
            self._report(("target",), "target: expected model_configs or model_handles, found both")
        for key, listed in given.items():
            if not isinstance(listed, list) or not listed or not all(isinstance(name, str) for name in listed):
                found = "an empty list; without this key, the agent's own model is used" if listed == [] else listed
                self._report(("target", key), f"{key}: expected a list of names, found {found}")
                return {"agent": None}
            for name, times in Counter(listed).items():
                if times > 1:
                    self._warn(("target", key), f"{name!r} is listed {times} times, and is run once")
        if self._handle:
            return {self._handle: self._handle}
        configured = {name: self._configured_model(name, i) for i, name in enumerate(given.get("model_configs", ()))}
        shared = Counter(configured.values())
        models = {model if shared[model] == 1 else name: model for name, model in configured.items()}
        return {**models, **{name: name for name in given.get("model_handles", ())}} or {"agent": None}

    def _configured_model(self, name: str, i: int) -> str:
        """The model of a configuration: a file in the suite's folder, or one that letta-evals contains."""
        place: Place = ("target", "model_configs", i)
        for file in (f"{name}.json", f"llm_model_configs/{name}.json"):
            if os.path.isfile(self._folder / file):
                return self._model_in(file, place)
        if name not in SHIPPED_MODELS:
            near = did_you_mean(name, SHIPPED_MODELS)
            self._report(place, f"model_configs: no model configuration {name!r}{near}: there is no {name}.json")
        return SHIPPED_MODELS.get(name, name)

    def _model_in(self, file: str, place: Place) -> str:
        text = self._files.text(file, place)
        try:
            model = None if text is None else decoded(text.encode())["model"]
        except (ValueError, TypeError, KeyError):
            model = None
        if text is not None and not isinstance(model, str):
            self._report(place, f"model_configs: {file}: expected a JSON object with the name of a 'model'")
        return model if isinstance(model, str) else file

    def _variant(self, name: str, model: str | None, position: int) -> Variant:
        raw = self._raw
        config: dict[str, Any] = {
            "folder": str(self._folder),
            "backend": self._backend,
            "cached": self.cached,
            "agent_id": raw.get("agent_id"),
            "agent_script": self._script(raw.get("agent_script"), ("target", "agent_script")),
            "model": model,
            "setup_script": self._script(self._suite.get("setup_script"), ("setup_script",)),
            "setup_once": position == 0,
            "cleanup": self._cleanup,
        }
        return Variant(
            name=name,
            adapter="letta_agent",
            config={key: value for key, value in config.items() if value is not None},
            timeout_seconds=self._timeout_seconds(),
        )

    def _script(self, named: Any, place: Place) -> str | None:
        return self._files.function(named, place) if named and isinstance(named, str) else None

    def _cleans_up(self) -> bool | None:
        value = self._suite.get("cleanup")
        if value is None or isinstance(value, bool):
            return value
        self._report(("cleanup",), f"cleanup: expected true or false, found {as_written(value)}")
        return None

    def _timeout_seconds(self) -> float:
        value = self._raw.get("timeout", _TIMEOUT)
        seconds = finite_number_in(value)
        if seconds is None or seconds <= 0:
            self._report(("target", "timeout"), f"timeout: expected seconds, more than 0, found {as_written(value)}")
            return _TIMEOUT
        return seconds


def _built(variant: Variant, import_paths: list[str], backend_from: tuple[str, str]) -> object:
    """The target; its problems are placed where the suite, the command line or the environment names its parts.

    `backend_from` is the option or variable that names the backend, or the key of the suite that does.
    """
    from evalwright.targets.build import build_target

    try:
        return build_target(variant, import_paths)
    except InputError as error:
        places = {"backend": backend_from, "setup_script": ("", "setup_script")}
        problems = ((problem, *places.get(problem.key, ("", f"target.{problem.key}"))) for problem in error.listed)
        raise InputError(
            replace(problem, file=option, key=key, message=problem.message.removeprefix("backend: "))
            for problem, option, key in problems
        ) from error
