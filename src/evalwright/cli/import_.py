"""`evalwright import`."""

from __future__ import annotations

from pathlib import Path

import click

from evalwright import registry

__all__ = ["command"]


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--format", "format_", metavar="NAME", required=True, help="Input format of FILE: openai-messages, otlp-json, …"
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Folder for the suite (default: FILE-suite)."
)
@click.option("--map", "pairs", multiple=True, metavar="NAME=PATH", help="Path of a part in each record (repeatable).")
@click.option("--mapping", type=click.Path(path_type=Path), metavar="FILE", help="The same mapping as a YAML file.")
def command(file: Path, format_: str, out: Path | None, pairs: tuple[str, ...], mapping: Path | None) -> int:
    """Write a suite that replays and judges the recorded conversations or exported spans in FILE.

    `evalwright list importers` names the formats. Parts of conversations that can be mapped: id, trial, messages,
    actions, reward, started_at, finished_at, records, metadata.NAME and extra.NAME.
    """
    import shlex

    from evalwright.cli.screen import say
    from evalwright.errors import counted
    from evalwright.importers.mapping import pairs_to_mapping, read_mapping
    from evalwright.reports.text import harmless

    stated = {**(read_mapping(mapping) if mapping else {}), **pairs_to_mapping(pairs)}
    folder = out or Path(f"{file.stem}-suite")
    result = registry.load("importers", format_).import_file(file, folder, stated)
    trials = f", at most {counted(result.trials, 'trial')} each" if result.trials > 1 else ""
    say([f"{counted(result.cases, 'case')}, {counted(result.traces, 'recording')}{trials}", *result.notes])
    say(f"wrote {harmless(str(path))}" for path in result.files)
    suite = next((path for path in result.files if path.suffix in (".yaml", ".yml")), folder)
    say(["", f"Next: evalwright run {harmless(shlex.quote(str(suite)))}"])
    return 0
