"""Arguments and options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from pathlib import Path
from typing import Any, TypeVar

import click

__all__ = [
    "as_json",
    "dialect",
    "format_options",
    "model_options",
    "quiet",
    "run_argument",
    "suite_argument",
    "suites_argument",
]

F = TypeVar("F", bound=Callable[..., Any])

as_json: Callable[[F], F] = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
quiet: Callable[[F], F] = click.option(
    "--quiet", "-q", is_flag=True, help="Print the run folder only, and no progress."
)
dialect: Callable[[F], F] = click.option(
    "--format", "--dialect", "dialect", metavar="NAME", help="Read the suite as this format instead of detecting it."
)


def run_argument(name: str = "run") -> Callable[[F], F]:
    """A run folder; whether it is one is checked where it is opened."""
    return click.argument(name, type=click.Path(path_type=Path), metavar=name.upper())


def model_options(command: F) -> F:
    """Options of commands that may ask models: the wrapped command gets them as `models`."""

    def wrapped(*arguments: Any, **given: Any) -> Any:
        from evalwright.llm.choices import ModelChoices

        names = (
            "budget_usd",
            "allow_unpriced",
            "requests_per_minute",
            "cache",
            "no_cache",
            "record",
            "replay",
            "no_network",
        )
        models = ModelChoices(**{name: given.pop(name) for name in names})
        if models != ModelChoices():
            models.check()
        return command(*arguments, **given, models=models)

    decorated = update_wrapper(wrapped, command)
    for option in reversed(_MODEL_OPTIONS):
        decorated = option(decorated)
    return decorated  # type: ignore[return-value]


_MODEL_OPTIONS = (
    click.option("--budget", "budget_usd", type=click.FloatRange(min=0), metavar="USD", help="A cap for model calls."),
    click.option("--allow-unpriced", is_flag=True, help="With --budget: ask models without a price too."),
    click.option("--requests-per-minute", type=click.FloatRange(min=0, min_open=True), metavar="N", help="Of models."),
    click.option("--cache", type=click.Path(path_type=Path), metavar="FILE", help="Where judges' replies are kept."),
    click.option("--no-cache", is_flag=True, help="Ask judges anew."),
    click.option("--record", type=click.Path(path_type=Path), metavar="FILE", help="Write down every model call."),
    click.option("--replay", type=click.Path(path_type=Path), metavar="FILE", help="Serve recorded model calls only."),
    click.option("--no-network", is_flag=True, help="Refuse model calls that leave this machine."),
)


def format_options(command: F) -> F:
    """Options that only some formats have; a suite of another format refuses them."""
    for option in reversed(_FORMAT_OPTIONS):
        command = option(command)
    return command


_FORMAT_OPTIONS = (
    click.option("--targets", type=click.Path(path_type=Path), metavar="FILE", help="agentv: where targets are named."),
    click.option(
        "--agent-timeout", type=click.FloatRange(0, min_open=True), metavar="S", help="agentv: seconds a try."
    ),
    click.option("--max-retries", type=click.IntRange(min=0), metavar="N", help="agentv: tries after a time-out."),
    click.option("--workers", type=click.IntRange(1, 50), metavar="N", help="agentv: cases at the same time."),
    click.option(
        "--threshold", type=click.FloatRange(0, 1), metavar="F", help="agentv: pass from this score on, else fail."
    ),
    click.option(
        "--output-format", type=click.Choice(["jsonl", "json", "junit", "html"]), help="agentv: the form of --output."
    ),
    click.option(
        "--cached", "-c", type=click.Path(path_type=Path), metavar="DIR", help="letta: replay recorded results."
    ),
    click.option(
        "--output",
        "-o",
        type=click.Path(path_type=Path),
        metavar="PATH",
        help="letta, agentv: write result files as the original does, too: into a folder, into a file.",
    ),
    click.option("--model-handle", metavar="MODEL", help="letta: this model instead of those of the suite."),
    click.option("--strict", is_flag=True, help="letta: refuse unknown keys; northstar: refuse repeated ids."),
    click.option("--strict-rubric", is_flag=True, help="letta: refuse unknown names in rubrics."),
    click.option("--allow-empty", is_flag=True, help="letta: allow a dataset without samples."),
    click.option("--max-error-rate", type=click.FloatRange(0, 1), metavar="F", help="letta: fail above this share."),
    click.option("--plan", metavar="NAME", help="northstar: deterministic, quality, agentic or trace."),
    click.option("--graders", type=click.Path(path_type=Path), metavar="FILE", help="northstar: a run configuration."),
    click.option("--judge-model", metavar="MODEL", help="northstar: the model of judges that name none."),
    click.option("--trust-pickled-types", is_flag=True, help="pixie: make objects of the project's classes again."),
)


def suite_argument() -> Callable[[F], F]:
    """A suite's file (or folder, where a dialect has those)."""
    return click.argument("path", type=click.Path(path_type=Path))


def suites_argument() -> Callable[[F], F]:
    """Suites' files, folders to search for them, and globs; none where a repository says itself what it has."""
    return click.argument("paths", type=click.Path(path_type=Path), nargs=-1, metavar="PATH...")
