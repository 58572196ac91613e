"""`evalwright completion`, and the words that it offers to a shell."""

from __future__ import annotations

import csv
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from evalwright.cli.usage import Command

__all__ = ["WHERE", "case_ids", "command", "evaluator_names", "run_paths"]

WHERE = {
    "bash": "~/.local/share/bash-completion/completions/evalwright",
    "zsh": "a folder of $fpath, as _evalwright",
    "fish": "~/.config/fish/completions/evalwright.fish",
}
"""Where the script of each shell belongs."""
_MOST = 200
_LONGEST_FILE = 2_000_000
"""Bytes of a dataset that are searched for ids: the shell waits for the answer."""


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(list(WHERE)))
def command(shell: str) -> int:
    """Print the completion script of a shell, which completes commands, options, evaluators, cases and runs.

    \b
    bash  evalwright completion bash \\
            > ~/.local/share/bash-completion/completions/evalwright
    zsh   evalwright completion zsh > "${fpath[1]}/_evalwright"
    fish  evalwright completion fish > ~/.config/fish/completions/evalwright.fish
    """
    from evalwright.cli.screen import print_out

    root = click.get_current_context().find_root()
    kind = get_completion_class(shell)
    assert kind is not None
    print_out([kind(root.command, {}, "evalwright", "_EVALWRIGHT_COMPLETE").source().rstrip("\n")])
    return 0


def evaluator_names(incomplete: str) -> list[str]:
    """Names of evaluators, without importing any."""
    from evalwright.registry import INTERNAL, names

    return [name for name in names("evaluators") if name.startswith(incomplete) and name not in INTERNAL]


def case_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Case ids from files in the folder of the suite or run on the command line, else in the working directory."""
    from evalwright.run.case_places import ids_in

    # If the line ends with an option without its value, click leaves its words unparsed.
    words = [*(ctx.params.get("paths") or ()), ctx.params.get("run"), *ctx.args]
    path = Path(str(next((word for word in words if word and not str(word).startswith("-")), ".")))
    folder = path if path.is_dir() else path.parent
    ids: dict[str, None] = {}
    for file in sorted(folder.iterdir()) if folder.is_dir() else ():
        # The other files of a run folder only repeat the ids of this one.
        if (folder / "plan.json").exists() and file.name != "cases.jsonl":
            continue
        if len(ids) < _MOST and file.is_file() and file.stat().st_size <= _LONGEST_FILE:
            with suppress(OSError, ValueError, csv.Error):
                ids.update(dict.fromkeys(name for name, _ in ids_in(file) if name.startswith(incomplete)))
    return [*ids][:_MOST]


def run_paths(incomplete: str) -> list[CompletionItem]:
    """Run folders below `runs`, the newest first, and any path."""
    runs = sorted(Path("runs").glob("*/plan.json"), reverse=True) if Path("runs").is_dir() else []
    names = [str(plan.parent) for plan in runs if str(plan.parent).startswith(incomplete)]
    items = [CompletionItem(name) for name in names[:_MOST]]
    return items or [CompletionItem(incomplete, type="dir")]
