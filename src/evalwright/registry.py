"""What is available, by kind and name: what evalwright brings, what its formats add, and what other packages add.

Nothing is imported before it is used. Our names take precedence over the same names elsewhere.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from evalwright.built_in import KINDS
from evalwright.errors import EvalwrightError, InputError, did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from evalwright.model.format import EvaluatorEntry, Format, Ref
    from evalwright.model.plan import Plan

__all__ = [
    "FAMILIES",
    "INTERNAL",
    "NATIVE",
    "PREMADE",
    "WITH_COMMAND",
    "blaming",
    "families",
    "format_of",
    "format_of_run",
    "formats",
    "is_built_in",
    "knows",
    "load",
    "names",
    "our_formats",
    "package_of",
    "resolve",
    "summary",
]

PREMADE = (
    "AnswerCorrectness", "AnswerRelevancy", "Battle", "ClosedQA", "ContextRelevancy", "EmbeddingSimilarity",
    "ExactMatch", "Factuality", "Faithfulness", "Humor", "JSONDiff", "LevenshteinMatch", "ListContains", "Moderation",
    "NumericDiff", "Possible", "Security", "Sql", "Summary", "Translation", "ValidJSON",
)  # fmt: skip
"""Evaluators that every format knows by these names, which autoevals and ragas have in pixie-qa."""

FAMILIES = (
    "text", "values", "tools", "conversation", "steps", "limits", "similarity", "judges", "workspace", "code",
    "combined",
)  # fmt: skip
"""Sub-packages of `evaluators`; each has a table, `EVALUATORS`."""

INTERNAL = frozenset({"in_test", "pixie_app", "test_outcome", "wrap_check"})
"""Names of any kind that occur only in stored runs: no file can use them, so lists leave them out."""

NATIVE = "evalh"
"""The name under which records know the native format."""
WITH_COMMAND = {"letta": "letta-evals", NATIVE: "evalh", "pixie": "pixie"}
"""Our formats with the command line of their original, and its name, for `--help`, which loads no format."""
_STORED = {NATIVE: "native"}
"""Names in records and older command lines, with the formats' present names."""
_OF_FORMATS = ("targets", "evaluators", "extractors", "exports", "reports", "mirrors")
"""Kinds for which formats have their own tables."""

_MOST_NAMED = 30
"""Names in the error about an unknown one, if one of them is nearly the same."""
LABELS = {
    "formats": "format",
    "targets": "system adapter",
    "evaluators": "evaluator",
    "embedders": "embedder",
    "stores": "store",
    "extractors": "extractor",
    "providers": "provider of models",
    "mirrors": "store",
    "exports": "export",
    "workspaces": "workspace",
    "enrichers": "trace enricher",
    "datasets": "dataset",
    "importers": "input format",
    "reports": "report format",
}
"""What messages call one of a kind."""

_Loader = tuple[str, Callable[[], Any]]
"""The package that provides a name, and the function that loads it."""
_GROUPS = (b"[evalwright.", b"[eval_harness.")
"""How the names of the groups begin: ours, and those of originals from which a format adopts."""


def resolve(ref: EvaluatorEntry | Ref) -> Any:
    """The object that a reference names."""
    if isinstance(ref, str):
        module, _, attribute = ref.partition(":")
        return getattr(import_module(module), attribute)
    from evalwright.model.format import EvaluatorEntry

    return resolve(ref.ref) if isinstance(ref, EvaluatorEntry) else ref


def families() -> dict[str, Mapping[str, EvaluatorEntry]]:
    """The tables of evaluators by family; this imports no evaluator."""
    return {family: _register(family) for family in FAMILIES}


@cache
def _register(family: str) -> Mapping[str, EvaluatorEntry]:
    register: Mapping[str, EvaluatorEntry] = import_module(f"evalwright.evaluators.{family}").EVALUATORS
    return register


def _place(kind: str, name: str) -> EvaluatorEntry | Ref | None:
    """Where one of our names is. Opens the tables of evaluators one by one, until one has the name."""
    place: EvaluatorEntry | Ref | None = KINDS[kind].get(name)
    if place is None and kind == "evaluators":
        place = next((register[name] for register in map(_register, FAMILIES) if name in register), None)
    return place or _entries_of_our_formats(kind).get(name)


def knows(kind: str, name: str) -> bool:
    """Whether a name is registered; faster than searching all `names`."""
    return _place(kind, name) is not None or name in _plugins(kind)


def names(kind: str) -> list[str]:
    """Every registered name of a kind, ours and other packages', sorted."""
    registers = families().values() if kind == "evaluators" else ()
    ours = {*KINDS[kind], *_entries_of_our_formats(kind), *(name for register in registers for name in register)}
    return sorted({*ours, *_plugins(kind)})


def package_of(kind: str, name: str) -> str | None:
    """The other package that provides a name; None for ours."""
    plugin = None if _place(kind, name) else _plugins(kind).get(name)
    return plugin[0] if plugin is not None else None


@contextmanager
def blaming(kind: str, name: str) -> Iterator[None]:
    """Raise InputError, with the name of its package, for what a plug-in raises by mistake."""
    package = package_of(kind, name)
    try:
        yield
    except Exception as error:
        if package is None or isinstance(error, EvalwrightError | OSError):
            raise
        message = f"{type(error).__name__}: {error}"
        raise InputError(f"{LABELS[kind]} {name!r} of {package} failed: {message}") from error


def is_built_in(kind: type) -> bool:
    """Whether a class is evalwright's own: what others return is checked, as Python checks no types."""
    return kind.__module__.startswith("evalwright.")


@cache
def load(kind: str, name: str) -> Any:
    """The object registered under `name`. Raises InputError that lists the known names."""
    place = _place(kind, name)
    if place is not None:
        return resolve(place)
    plugin = _plugins(kind).get(name)
    if plugin is None:
        known = [known_name for known_name in names(kind) if known_name not in INTERNAL]
        near, there = did_you_mean(name, known), f"registered: {', '.join(known)}"
        if near and len(known) > _MOST_NAMED:
            there = f"`evalwright list {kind}` lists all {len(known)}"
        raise InputError(f"Unknown {LABELS[kind]} {name!r}{near} ({there})")
    package, load_it = plugin
    try:
        return load_it()
    except InputError:
        raise
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        raise InputError(f"{LABELS[kind]} {name!r} of {package} cannot be loaded: {message}") from error


def summary(kind: str, name: str) -> str:
    """One sentence about what is registered under `name`; why, if it is of a plug-in that cannot be loaded."""
    try:
        factory = load(kind, name)
    except InputError as error:  # must not hide all others
        return str(error)
    return factory.summary if kind == "formats" else first_sentence(factory)


def format_of(name: str) -> Format:
    """The format with a name, which may be one used in records. Raises InputError that lists the known names."""
    loaded: Format = load("formats", _STORED.get(name, name))
    return loaded


def format_of_run(plan: Plan) -> Format:
    """The format by whose rules a run is judged and counted: the one named by `totals`, if any, else its own.

    The native one for suites that no format reads, such as pytest's tests.
    """
    name = plan.totals or plan.dialect
    return format_of(name if plan.totals or knows("formats", _STORED.get(name, name)) else NATIVE)


def formats() -> list[Format]:
    """Every format that can be loaded, ours first. A warning, and `format_of`, name plug-ins that cannot be loaded."""
    return [*our_formats(), *_plugin_formats()]


@cache
def our_formats() -> tuple[Format, ...]:
    """The formats of this package; no other package is searched."""
    return tuple(map(resolve, KINDS["formats"].values()))


@cache
def _entries_of_our_formats(kind: str) -> dict[str, EvaluatorEntry | Ref]:
    """What our formats add to a kind."""
    tables = (getattr(our_format, kind) for our_format in our_formats()) if kind in _OF_FORMATS else ()
    return {name: ref for table in tables for name, ref in table.items()}


@cache
def _plugin_formats() -> tuple[Format, ...]:
    """Formats of other packages. One that cannot be loaded is left out, and named once."""
    entries = []
    for name in _plugins("formats"):
        if name not in KINDS["formats"]:
            try:
                entries.append(format_of(name))
            except InputError as error:
                import logging  # only if something is wrong: every command loads this module

                logging.getLogger(__name__).warning("%s", error)
    return tuple(entries)


@cache
def _plugins(kind: str) -> dict[str, _Loader]:
    """What other packages add to a kind, by name."""
    if kind == "formats":
        return _suite_formats()
    return {**_adopted_plugins(kind), **_loaders_of_plugin_formats(kind), **_loaders(f"evalwright.{kind}")}


def _adopted_plugins(kind: str) -> dict[str, _Loader]:
    """What other packages have registered for the original of one of our formats."""
    groups = [our_format.adopts[kind] for our_format in our_formats() if kind in our_format.adopts]
    return {
        name: (package, partial(_adopt, adapt, load))
        for group, adapt in groups
        for name, (package, load) in _loaders(group).items()
    }


def _adopt(adapt: Ref, load: Callable[[], Any]) -> Any:
    return resolve(adapt)(load)


def _loaders_of_plugin_formats(kind: str) -> dict[str, _Loader]:
    """What formats of other packages add to a kind."""
    return {
        name: (package_of("formats", plugin_format.name) or "", partial(resolve, ref))
        for plugin_format in (_plugin_formats() if kind in _OF_FORMATS else ())
        for name, ref in getattr(plugin_format, kind).items()
    }


def _loaders(group: str) -> dict[str, _Loader]:
    """What packages register in a group of entry points, by name."""
    return {point.name: (_package(point), point.load) for point in _points(group)}


def _suite_formats() -> dict[str, _Loader]:
    """Suite formats by name."""
    return {point.name: (_package(point), partial(_checked_format, point)) for point in _points("evalwright.formats")}


@cache
def _points(group: str) -> tuple[EntryPoint, ...]:
    if not _are_there(tuple(sys.path)):
        return ()
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


@cache
def _are_there(places: tuple[str, ...]) -> bool:
    """Whether a package in one of these places may have entry points for us, or for an original that we adopt from.

    Reading these few files takes a tenth of the time that importing `importlib.metadata` and reading all packages would
    take, for which every command would pay.
    """
    if sum(hasattr(finder, "find_distributions") for finder in sys.meta_path) > 1:
        return True  # packages need not be in folders
    for place in places:
        try:
            names = os.listdir(place or ".")  # noqa: PTH208 - without pathlib
        except NotADirectoryError:
            return True  # packages inside an archive
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")) and _has_groups(os.path.join(place, name)):  # noqa: PTH118
                return True
    return False


def _has_groups(folder: str) -> bool:
    try:
        with open(os.path.join(folder, "entry_points.txt"), "rb") as file:  # noqa: PTH118, PTH123 - without pathlib
            text = file.read()
            return any(group in text for group in _GROUPS)
    except OSError:
        return False


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "a plug-in"


def _checked_format(point: EntryPoint) -> Format:
    from evalwright.model.format import Format

    loaded = point.load()
    if not isinstance(loaded, Format):
        raise TypeError(f"expected a Format, found {loaded!r}")
    if loaded.name != point.name:
        raise ValueError(f"its name is {loaded.name!r}, but its entry point is called {point.name!r}")
    return loaded


def first_sentence(thing: object) -> str:
    """The first sentence of the docstring of a class or function, on one line; "" without a docstring."""
    from inspect import getdoc

    paragraph = " ".join((getdoc(thing) or "").partition("\n\n")[0].split())
    sentence, end, _ = paragraph.partition(". ")
    return sentence + end.rstrip()
