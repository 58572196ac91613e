"""What a failed command prints: the one place where exceptions become messages and exit codes."""

from __future__ import annotations

import errno
import os
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from evalwright.errors import EvalwrightError, InputError, Interrupted, Problem, StorageError, counted

__all__ = ["OriginalCommands", "code_after", "input_error_lines", "is_of_index", "show_input_error"]

_ERROR = "Error:"
_INTERNAL = 4
_MOST_PROBLEMS, _MOST_ALIKE = 50, 10
_OF_THE_DISK = {getattr(errno, name) for name in ("EIO", "ESTALE", "ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM")}
"""Errors of a file whose cause is the disk or the rights to it, never the command."""
_LATER_LINE = re.compile(r"\n(?=\S)")
_WIDEST_COLUMN = 40
_NOTHING_DONE = {
    "run": "nothing was run",
    "demo": "nothing was run",
    "import": "nothing was written",
    "merge": "nothing was written",
    "re-evaluate": "nothing was changed",
    "calibrate": "nothing was changed",
}


def code_after(error: Exception | KeyboardInterrupt, arguments: Sequence[str]) -> int:
    """Print on stderr why the command of a command line ended, and return the exit code for that."""
    if isinstance(error, click.Abort | KeyboardInterrupt | Interrupted):
        from evalwright.session.signals import INTERRUPTED

        _print_err(["interrupted"])
        return INTERRUPTED
    if isinstance(error, click.ClickException):
        error.show()
        if isinstance(error, click.BadParameter):
            _explain(error)
            for other in _further(error, arguments):
                _print_err([f"{_ERROR} {other.format_message()}"])
                _explain(other)
        return error.exit_code
    if isinstance(error, InputError):
        show_input_error(error, arguments[0] if arguments else "")
        return error.exit_code
    return _report_failure(error)


def _explain(error: click.BadParameter) -> None:
    if isinstance(error.param, click.Option) and error.param.help:
        _print_err([f"{error.param.opts[0]}: {error.param.help}"])


def _further(error: click.BadParameter, arguments: Sequence[str]) -> Iterator[click.BadParameter]:
    """The other values on a command line that are none of their option's type: click stops at the first one."""
    ctx = error.ctx
    if ctx is None or error.param is None:
        return
    words = [*arguments[len(ctx.command_path.split()) - 1 :]]
    try:
        options, _, params = ctx.command.make_parser(ctx).parse_args(words)
    except click.UsageError:
        return  # already reported
    for param in dict.fromkeys(params):
        value = options.get(param.name)
        # an argument that may be left out has a placeholder of click's, which is no text
        if param.name != error.param.name and isinstance(value, str | tuple | list):
            try:
                param.type_cast_value(ctx, value)
            except click.BadParameter as other:
                yield other
            except InputError:
                continue  # of a run, which is opened once the options are right


def is_of_index(error: Exception | KeyboardInterrupt) -> bool:
    """Whether a command failed because the index of a run was not as expected: run again, it makes another one.

    Commands print only after the last use of an index, or continue with the records themselves.
    """
    from evalwright.model.cell_index import StaleIndex

    return isinstance(error, StaleIndex)


def show_input_error(error: InputError, command: str) -> None:
    """Print on stderr what is wrong, and what the command has therefore not done."""
    _print_err(input_error_lines(error, _NOTHING_DONE.get(command, "")))


class OriginalCommands(click.Group):
    """The commands of an original: they exit with 1, not 2, if a file cannot be used, as programs that call them
    expect."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except InputError as error:
            show_input_error(error, ctx.invoked_subcommand or "")
            return 1


def _report_failure(error: Exception) -> int:
    if os.environ.get("EVALWRIGHT_DEBUG") == "1":
        import traceback

        _print_err(traceback.format_exception(error))
    if isinstance(error, EvalwrightError):
        _print_err([f"{_ERROR} {error}", *_next(error)])
        return error.exit_code
    from evalwright.session.open_files import has_run_out, limit_of_files

    if has_run_out(error):
        _print_err([f"{_ERROR} too many open files: {limit_of_files()} may be open (ulimit -n)"])
        return StorageError.exit_code
    if _is_refused_start(error):
        _print_err([f"{_ERROR} no more processes or threads can be started (ulimit -u, or the limit of the container)"])
        return StorageError.exit_code
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        _print_err([f"{_ERROR} out of memory (ulimit -v, or the limit of the container)"])
        return StorageError.exit_code
    if isinstance(error, OSError) and error.errno in _OF_THE_DISK and error.filename is not None:
        _print_err([f"{_ERROR} {os.fsdecode(error.filename)}: {error.strerror}"])
        return StorageError.exit_code
    text = f"{type(error).__name__}: {error}"
    _print_err([f"Internal error, please report it (EVALWRIGHT_DEBUG=1 shows the traceback): {text}"])
    return _INTERNAL


def _next(error: EvalwrightError) -> Iterator[str]:
    """How to go on with a run that stopped."""
    if isinstance(error, StorageError) and error.run:
        from evalwright.files.paths import seen_from_here

        run = Path(error.run)
        if isinstance(error.__cause__, FileNotFoundError):
            yield "The run is gone. If it was moved: evalwright resume NEW_PLACE"
        elif _has_records(run):
            yield f"Next: evalwright resume {shlex.quote(str(seen_from_here(run)))}"


def _has_records(run: Path) -> bool:
    """Whether a run is not known to have lost the files of its records. A disk that fails now may work later."""
    from evalwright.stores.local_files import is_run

    try:
        return not os.path.isdir(run) or is_run(run)  # Path.is_dir may raise
    except StorageError:
        return True


def _is_refused_start(error: BaseException) -> bool:
    """Whether the system refused to start another process or thread, because there are too many."""
    if isinstance(error, RuntimeError):
        return "can't start new thread" in str(error)  # as Python says it; it gives no error number
    return isinstance(error, BlockingIOError) and error.errno == errno.EAGAIN


def input_error_lines(error: InputError, nothing_done: str = "") -> list[str]:
    """`file:line  key.path  what was found` for each problem, and the number of problems."""
    if not error.problems:
        return [f"{_ERROR} {error.headline}" + (f"; {nothing_done}" if nothing_done else "")]
    shown = _first_of_each_kind([problem for problem in error.problems if not problem.unlisted])
    lines = [f"{_ERROR} {error.headline}"] if error.headline else []
    lines += _aligned_problems([(_place(p), p.key, ", ".join(filter(None, (p.beside_key, p.option)))) for p in shown])
    if error.count > len(shown):
        lines.append(f"... and {error.count - len(shown):,} more")
    count = _count(error)
    return [*lines, f"{count}; {nothing_done}" if nothing_done else count]


def _first_of_each_kind(problems: Sequence[Problem]) -> list[Problem]:
    """All of a few problems, and of many at most `_MOST_PROBLEMS`, with `_MOST_ALIKE` of a kind: a long file with the
    same mistake in each line must not hide the others."""
    if len(problems) <= _MOST_PROBLEMS:
        return [*problems]
    before: Counter[tuple[str, str, str]] = Counter()
    ranks: list[int] = []
    for problem in problems:
        ranks.append(before[problem.kind])
        before[problem.kind] += 1
    ranked = sorted(range(len(problems)), key=ranks.__getitem__)
    chosen = [position for position in ranked if ranks[position] < _MOST_ALIKE][:_MOST_PROBLEMS]
    return [problems[position] for position in sorted(chosen)]


def _count(error: InputError) -> str:
    places = {problem.file for problem in error.problems}
    count = counted(error.count, "problem")
    if any(not place or place.startswith("--") for place in places):  # some are about options
        return count
    return f"{count} in {next(iter(places)) if len(places) == 1 else f'{len(places)} files'}"


def _place(problem: Problem) -> str:
    return problem.file if problem.line is None else f"{problem.file}:{problem.line}"


def _aligned_problems(problems: Sequence[tuple[str, str, str]]) -> list[str]:
    from evalwright.reports.text import flat

    rows = [(flat(place), flat(key), message) for place, key, message in problems]
    widths = [min(max(len(row[i]) for row in rows), _WIDEST_COLUMN) for i in range(2)]
    return ["  ".join([*(row[i].ljust(widths[i]) for i in range(2) if widths[i]), row[2]]) for row in rows]


def _print_err(lines: Sequence[str]) -> None:
    """Print lines on stderr, without secrets and without characters that control a terminal.

    Later lines of a message are indented, so that no text from a file passes for a line of ours.
    """
    from evalwright.cli.screen import screen_masker
    from evalwright.reports.text import harmless, paint_for

    mask = screen_masker().mask_text
    text = harmless("\n".join(_LATER_LINE.sub("\n  ", mask(line.rstrip("\n"))) for line in lines))
    if text.startswith(_ERROR):
        # Painted last: `harmless` removes our colour codes just as it removes those in a system's output.
        text = paint_for(sys.stderr)(_ERROR, "fail") + text.removeprefix(_ERROR)
    with suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)
