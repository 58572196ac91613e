"""Running several suites, each in a process of its own, so that modules and variables of one never reach another."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from evalwright.cli.screen import print_err
from evalwright.errors import InputError, Problem, counted
from evalwright.model.suite import Suite
from evalwright.processes import ties
from evalwright.run.missing_keys import check_models
from evalwright.run.options import RunOptions
from evalwright.run.selection import options_that_fit, options_without_effect
from evalwright.session import Session
from evalwright.session.imports import NotExecutedError, nothing_imported

__all__ = ["run_each", "runnable_files"]

_INTERRUPTED = 130
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_MEANINGS = {0: "passed", 1: "did not pass", 2: "rejected", 3: "without a verdict"}


def runnable_files(
    files: Sequence[Path], load: Callable[[Path], Suite], options: RunOptions
) -> list[tuple[Path, RunOptions]]:
    """The suites of which a case is chosen, each with the globs and tags that fit some of its cases.

    Those whose cases are made by code, which is only executed in the process of their run, are chosen as they are.
    Raises InputError with the mistakes of all others, or if a glob or tag fits in none.
    """
    problems: list[Problem] = []
    chosen: list[tuple[Path, RunOptions]] = []
    for file in files:
        try:
            with nothing_imported(), Session(stdout="keep"):  # one suite's `.env` must not reach another
                suite = load(file)
                if suite.unexecuted:
                    chosen.append((file, options))
                    continue
                its_own = options_that_fit(suite, options) if suite.variants else None
                if its_own is not None:
                    check_models(suite, its_own)  # the key that only the last suite lacks is known before the first run
                    chosen.append((file, its_own))
        except NotExecutedError:
            chosen.append((file, options))
        except InputError as error:
            problems += error.problems or [Problem(str(file), error.headline)]
    if problems:
        raise InputError(problems)
    idle = options_without_effect(options, [its_own for _, its_own in chosen])
    if not chosen or ((idle.cases or idle.tags) and not options.allow_empty):
        raise InputError(f"no case matches {idle.narrowed}" if options.narrowed else "nothing to run")
    return chosen


def run_each(files: Sequence[tuple[Path, RunOptions]], context: click.Context) -> int:
    """Run the command of `context` for each file, with its globs and tags and otherwise the same options.

    The highest exit code; 130 ends them all.
    """
    # With `-m` alone, the working directory would be searched before installed packages; -P prevents that.
    words = [sys.executable, "-P", "-m", "evalwright", str(context.info_name)]
    codes: list[int] = []
    for file, its_own in files:
        print_err([f"== {file}"])
        params = {**context.params, "cases": its_own.cases, "tags": its_own.tags}
        # After `--`, a file whose name begins with a dash is not taken for an option.
        codes.append(_run_suite([*words, *_options(context, params), "--", str(file)]))
        if codes[-1] == _INTERRUPTED:
            break
    print_err(_ends([file for file, _ in files], codes))
    return max(codes)


def _ends(files: Sequence[Path], codes: Sequence[int]) -> Iterator[str]:
    """How many suites ended in which way, and which of them did not pass."""
    meaning_of = {code: _MEANINGS.get(code, f"ended with {code}") for code in sorted(set(codes))}
    counts = [f"{codes.count(code)} {how}" for code, how in meaning_of.items()]
    left = f", {len(files) - len(codes)} not run" if len(codes) < len(files) else ""
    yield f"{counted(len(files), 'suite')}: {', '.join(counts)}{left}"
    for file, code in zip(files, codes, strict=False):  # shorter if the run was interrupted
        if code:
            yield f"  {meaning_of[code]:{max(map(len, meaning_of.values()))}}  {file}"


def _options(context: click.Context, params: Mapping[str, Any]) -> Iterator[str]:
    for option in context.command.params:
        is_typed = context.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE
        if isinstance(option, click.Option) and is_typed and option.name in params:
            value = params[str(option.name)]
            for value_given in value if option.multiple else [value]:
                # With `=`, because a value may begin with a dash.
                yield option.opts[0] if option.is_flag else f"{option.opts[0]}={value_given}"
    if context.color is not None:
        yield f"--color={'always' if context.color else 'never'}"


def _run_suite(words: Sequence[str]) -> int:
    """The exit code, 130 after a signal. Signals are passed on: those of the terminal do not reach the process."""
    mark, its_mark = os.pipe()
    # Tied, so that it ends with us even if we are killed and cannot pass on a signal.
    process, tied = ties.start(words, mark=mark, pass_fds=[its_mark])
    signalled = False

    def hand_on(number: int, _frame: object) -> None:
        nonlocal signalled
        signalled = True
        process.send_signal(number)

    previous = {number: signal.signal(number, hand_on) for number in _FORWARDED}
    try:
        code = process.wait()
        return _INTERRUPTED if signalled else code
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        ties.untie(*tied)
        os.close(mark)
        os.close(its_mark)
