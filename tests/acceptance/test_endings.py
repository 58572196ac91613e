"""Exceptions as messages and exit codes, without a process of their own."""

from __future__ import annotations

import errno
from collections.abc import Iterator

import click
import pytest

from evalwright.cli.commands import exit_code_of
from evalwright.cli.screen import print_text, warn
from evalwright.errors import FirstProblems, InputError, Problem, StorageError
from evalwright.session.open_files import limit_of_files


def ended_by(error: BaseException, *arguments: str) -> int:
    @click.command(context_settings={"ignore_unknown_options": True})
    @click.argument("words", nargs=-1)
    def command(words: tuple[str, ...]) -> int:
        raise error

    return exit_code_of(command, arguments)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("no such thing"), 2),
        (click.UsageError("no such option"), 2),
        (RuntimeError("a mistake of ours"), 4),
        (StorageError("cannot write x: no space left"), 5),
        (OSError(errno.EMFILE, "Too many open files"), 5),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), 5),
        (RuntimeError("can't start new thread"), 5),
        (MemoryError(), 5),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), 5),
        (OSError(errno.EIO, "Input/output error", "runs/r"), 5),
        (PermissionError(errno.EACCES, "Permission denied", b"runs/r"), 5),
        (OSError(errno.EIO, "Input/output error"), 4),  # of which file is not known
        (KeyboardInterrupt(), 130),
    ],
)
def test_each_kind_of_end_has_its_exit_code(error: BaseException, code: int) -> None:
    assert ended_by(error) == code


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            RuntimeError("can't start new thread"),
            "no more processes or threads can be started (ulimit -u, or the limit",
        ),
        (MemoryError(), "out of memory (ulimit -v, or the limit"),
    ],
)
def test_a_limit_that_ends_a_command_is_named(error: Exception, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    ended_by(error)
    assert capsys.readouterr().err == f"Error: {said} of the container)\n"


def test_a_limit_on_open_files_that_ends_a_command_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    ended_by(OSError(errno.ENFILE, "Too many open files in system"))
    assert f"{limit_of_files()} may be open (ulimit -n)" in capsys.readouterr().err


def test_a_file_whose_disk_fails_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    ended_by(OSError(errno.EIO, "Input/output error", "runs/r"))
    assert capsys.readouterr().err == "Error: runs/r: Input/output error\n"


def test_a_text_whose_source_fails_half_way_is_no_text_that_nobody_reads(capsys: pytest.CaptureFixture[str]) -> None:
    def pieces() -> Iterator[str]:
        yield "the first half\n"
        raise OSError(errno.EIO, "Input/output error", "runs/r")

    with pytest.raises(OSError, match="runs/r"):
        print_text(pieces())


def test_an_internal_error_is_one_line_that_asks_for_a_report(capsys: pytest.CaptureFixture[str]) -> None:
    ended_by(RuntimeError("a mistake\nof ours"))
    told = capsys.readouterr().err
    assert "please report" in told
    assert "RuntimeError: a mistake" in told
    assert "Traceback" not in told


def test_the_traceback_is_there_when_asked(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALWRIGHT_DEBUG", "1")
    ended_by(RuntimeError("a mistake of ours"))
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_problems_are_aligned_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    problems = [
        Problem("cases.jsonl", "expected text, found the number 3", 14, "expected.contains[1]"),
        Problem("cases.jsonl", 'unknown field; did you mean "expected"?', 15, "expcted"),
    ]
    ended_by(InputError(problems), "run")
    assert capsys.readouterr().err.splitlines() == [
        "cases.jsonl:14  expected.contains[1]  expected text, found the number 3",
        'cases.jsonl:15  expcted               unknown field; did you mean "expected"?',
        "2 problems in cases.jsonl; nothing was run",
    ]


def test_a_very_long_list_of_problems_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    ended_by(InputError([Problem("cases.jsonl", "bad", line) for line in range(1, 201)]))
    assert capsys.readouterr().err.splitlines()[-2:] == ["... and 190 more", "200 problems in cases.jsonl"]


def test_problems_that_are_not_listed_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    problems = FirstProblems("cases.jsonl")
    for line in range(1, 10_001):
        problems.add(Problem("cases.jsonl", "bad", line))
    ended_by(InputError(problems))
    assert capsys.readouterr().err.splitlines()[-2:] == ["... and 9,990 more", "10,000 problems in cases.jsonl"]


def test_a_message_that_begins_with_its_key_does_not_show_it_twice(capsys: pytest.CaptureFixture[str]) -> None:
    problem = Problem("suite.yaml", "op: expected gte, found 'ge'", 5, "gate.op")
    ended_by(InputError([problem, Problem("suite.yaml", "op: no key", 6)]))
    assert capsys.readouterr().err.splitlines() == [
        "suite.yaml:5  gate.op  expected gte, found 'ge'",
        "suite.yaml:6           op: no key",
        "2 problems in suite.yaml",
    ]
    assert str(problem) == "suite.yaml:5  gate.op  expected gte, found 'ge'"


def test_a_mistake_in_every_line_hides_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    of_cases = FirstProblems("cases.jsonl")
    for line in range(1, 1_001):
        of_cases.add(
            Problem(
                "cases.jsonl", f"isn't a mapping: '{'a' * line}', \"it's {'b' * line}\"", line, f"cases[{line}].input"
            )
        )
    of_cases.add(Problem("cases.jsonl", "unknown key", 990, "cases[990].expcted"))
    ended_by(InputError([*of_cases, Problem("eval.yaml", "worse", 7), Problem("eval.yaml", "worst", 8)]))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines[:10]] == [f"cases.jsonl:{line}" for line in range(1, 11)]
    assert [line.split(maxsplit=1) for line in lines[10:]] == [
        ["cases.jsonl:990", "cases[990].expcted  unknown key"],
        ["eval.yaml:7", "worse"],
        ["eval.yaml:8", "worst"],
        ["...", "and 990 more"],
        ["1,003", "problems in 2 files"],
    ]


def test_a_message_made_of_data_cannot_act_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    ended_by(InputError(Problem("cases.jsonl", "found \x1b[2J")))
    assert "\x1b" not in capsys.readouterr().err


def test_what_a_file_says_cannot_pass_for_a_line_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    ended_by(
        InputError(Problem("cases\n1 case passed", "found a\nall is well\n ::error::x", key="input.a\n::error::b"))
    )
    problem, *rest = capsys.readouterr().err.splitlines()
    assert problem == "cases 1 case passed  input.a ::error::b  found a"
    assert rest == ["  all is well", " \\x3a:error::x", "1 problem in cases", "  1 case passed"]
    warn(["a\n::error::b", Problem("cases.yaml", "nothing reads this key", key="x\n1 case passed")])
    assert capsys.readouterr().err.splitlines() == [
        "warning: a ::error::b",
        "warning: cases.yaml  x 1 case passed  nothing reads this key",
    ]


def test_a_message_does_not_tell_secrets_of_the_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "sk-very-secret")
    ended_by(InputError("cannot use sk-very-secret"))
    assert "sk-very-secret" not in capsys.readouterr().err
