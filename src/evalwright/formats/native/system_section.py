"""A system in `systems` of an `eval.yaml`: the variant that it is, and whether its target can be built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import UNSET

from evalwright import registry
from evalwright.files.key_paths import Place, steps_of
from evalwright.files.paths import import_folders
from evalwright.formats.native.file import SystemSection, as_in_json, config_of
from evalwright.formats.native.matrix import named_file
from evalwright.formats.native.suite_file import SuiteFile
from evalwright.model.plan import Placement, Plugin, Variant

__all__ = ["system_variant"]

_NO_CONFIG = {
    "schema_version",
    "name",
    "adapter",
    "metadata",
    "enrich_trace_from",
    "pool",
    "isolation",
    "trials",
    "ray",
}
_OF_FUNCTIONS = ("target", "init_kwargs")


def system_variant(suite: SuiteFile, system: SystemSection, *, to_run: bool) -> Variant:
    """The variant of a system; what is wrong with it is reported to the suite's file."""
    from evalwright.targets.build import WITHOUT_EFFECT, build_target, default_timeout, unread_of

    known = {key: value for key, value in system.plain().items() if value is not None or key in system.written}
    config = as_in_json({key: value for key, value in known.items() if key not in _NO_CONFIG})
    limited = "timeout_seconds" in system.written
    variant = Variant(
        name=system.name,
        adapter=system.adapter,
        config=_with_texts(suite, system, _with_folders(suite, system, config, to_run)),
        metadata=as_in_json(system.metadata),
        timeout_seconds=system.timeout_seconds if limited else default_timeout(system.adapter, config),
        concurrency=system.concurrency,
        isolation=system.isolation,
        trials=system.trials,
        pool=system.pool,
        enrich_trace_from=[Plugin(e.type, config_of(e)) for e in system.enrich_trace_from],
        evalh_rules=suite.original,
        ray=UNSET if system.ray is None else Placement(**system.ray.plain()),
    )
    if suite.expansion.expands:  # a run of the original is only read: nothing is asked for any more
        for key, message in unread_of(system.adapter, variant.config):
            if key in WITHOUT_EFFECT:
                suite.findings.warn(system.at(key), WITHOUT_EFFECT[key], unread=True)
            else:
                suite.report((*system.at(), *steps_of(key)), message)
        own = {key: value for key, value in system.extra.items() if key not in _OF_FUNCTIONS}
        if own and system.adapter == "python_function":
            from evalwright.formats.shared.isolation import isolating_function

            for key, message in isolating_function(own):
                suite.report(system.at(key), message)
        if "inner_system" in config or "inner_config" in config:
            from evalwright.formats.shared.isolation import isolating_inner_functions

            for place, message in isolating_inner_functions(config):
                suite.report((*system.at(), *place), message)
    if to_run and suite.known(system.at("adapter"), "targets", system.adapter):
        suite.take(system.at(), partial(build_target, variant, import_folders(suite.path)))
    for i, enricher in enumerate(variant.enrich_trace_from):
        place = system.at("enrich_trace_from", i)
        if to_run and suite.known((*place, "type"), "enrichers", enricher.type):
            suite.take(place, partial(suite.doubt_config, place, "enrichers", enricher))
            suite.take(place, partial(registry.load("enrichers", enricher.type), enricher.config))
    return variant


def _with_folders(suite: SuiteFile, system: SystemSection, config: dict[str, Any], to_run: bool) -> dict[str, Any]:
    """The configuration, with absolute paths for lists of folders, and for a working directory inside the suite's
    folder.

    The working directory does not bound what the target reads, and may lie anywhere.
    """
    target = registry.load("targets", system.adapter) if registry.knows("targets", system.adapter) else None
    key = "" if suite.original else getattr(target, "working_folder_key", "")
    if isinstance(name := config.get(key), str) and name and "\0" not in name:
        beside = suite.found(system.at(key), name).resolve()
        config = {**config, key: str(beside) if beside.is_relative_to(suite.path.resolve().parent) else name}
    for key in getattr(target, "folder_keys", ()):
        names = config.get(key)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            continue  # the target reports it
        folders = [suite.found((*system.at(key), i), name) for i, name in enumerate(names)]
        if to_run:
            for i, folder in enumerate(folders):
                suite.must_be_inside((*system.at(key), i), folder)
        config = {**config, key: [str(folder.resolve()) for folder in folders]}
    return config


def _with_texts(suite: SuiteFile, system: SystemSection, config: dict[str, Any]) -> dict[str, Any]:
    """The configuration, with the contents of files where the target takes text and the suite names a file."""
    known = registry.knows("targets", system.adapter) and not suite.original
    keys = getattr(registry.load("targets", system.adapter), "text_keys", ()) if known else ()
    if not keys:
        return config

    return {**config, **_texts_named(suite, system, config, keys)}


def _texts_named(
    suite: SuiteFile, system: SystemSection, config: Mapping[str, Any], keys: Iterable[str]
) -> dict[str, str]:
    """The contents of the files that the configuration names at those of the `keys` that name one."""
    texts = {}
    for key in keys:
        name = named_file(config.get(key))
        if name is not None:
            path = suite.found(system.at(key), name)
            if suite.must_be_inside(system.at(key), path):
                texts[key] = _text(suite, system.at(key), path)
    return texts


def _text(suite: SuiteFile, place: Place, path: Path) -> str:
    """The content of a file, without the final newline."""
    try:
        text = path.read_text(encoding="utf-8-sig").removesuffix("\n")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        suite.report(place, f"cannot read {path}: {why}")
        return ""
    if not text.strip():
        suite.report(place, f"{path} has no text")
    return text
