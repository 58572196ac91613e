"""Every exception that evalwright raises on purpose.

EvalwrightError            carries the exit code that the command line ends with
├── InputError             files or arguments that cannot be used; lists every Problem        exit 2
│   └── RunLockedError     another process is writing to this run                            exit 2
├── StorageError           a durable write failed; what was written before stays valid       exit 5
├── TargetError            a target could not answer: becomes the trace's error record
└── EvaluatorError         an evaluator could not judge: becomes the result's error record

LimitExceeded              a time limit fired inside user code
Interrupted                the user interrupted the run while user code was running
  Unsent                   and a model is no longer called, so that a cell is left to a later session
                           both are BaseExceptions, so that user code that catches Exception cannot swallow them
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

__all__ = [
    "AllMistakes",
    "EvaluatorError",
    "EvalwrightError",
    "FirstProblems",
    "InputError",
    "Interrupted",
    "LimitExceeded",
    "Problem",
    "RunLockedError",
    "StorageError",
    "TargetError",
    "UnsentCall",
    "apart_from",
    "below",
    "counted",
    "did_you_mean",
    "in_seconds",
    "money",
    "shorten",
    "with_others",
]


class EvalwrightError(Exception):
    """The root: catch this to catch everything that evalwright raises on purpose."""

    exit_code = 4


_MOST_LISTED, _MOST_ALIKE, _MOST_KINDS = 100, 3, 100
"""Problems of one file that an error lists: the first, and after them some of each further kind."""
_LONGEST = 4_096
"""Maximum length of a key or a message: what a file contains may be of any length, and no path is longer."""


def _cut(text: str) -> str:
    """The beginning and the end, where the reason usually is."""
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]}… ({len(text) - 2 * half:,} characters more) …{text[-half:]}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a user's file: where it is, what was found and what was expected."""

    file: str
    message: str
    line: int | None = None
    """Line of the value, from 1, if known."""
    key: str = ""
    """Dotted path of the value inside the file; empty for the file as a whole."""
    absent: bool = False
    """True if something that the file names is not on this machine: the file can be checked, but not run here."""
    unread: bool = False
    """True if nothing reads the key: without it the file means the same."""
    more: int = 0
    """Number of further places with the same problem, which are not listed."""
    option: str = ""
    """What an option of the command line could do about it, such as `or pass --allow-unpriced`: added there only."""
    unlisted: int = 0
    """For what stands in the place of problems that are not listed: how many these are."""

    def __post_init__(self) -> None:
        for name in ("message", "key"):
            if len(text := getattr(self, name)) > _LONGEST:
                object.__setattr__(self, name, _cut(text))

    @property
    def beside_key(self) -> str:
        """The message as it reads beside the key: formats whose own programs show no keys begin it with the key."""
        last = self.key.rpartition(".")[2]
        return self.message.removeprefix(f"{last}: ") if last else self.message

    @property
    def kind(self) -> tuple[str, str, str]:
        """What it shares with problems that differ only in line, position and the values found."""
        # only after a mistake: every command loads this module
        import re

        # an apostrophe, as in `doesn't`, begins no value
        values = r"""(?<![\w\\])(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|\d+"""
        return self.file, re.sub(r"\d+", "", self.key), re.sub(values, "…", self.message)

    def __str__(self) -> str:
        message = self.beside_key
        if self.more:
            message += f" (and in {counted(self.more, 'more place')})"
        if not self.file and self.key:
            return f"{self.key}: {message}"
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return "  ".join(part for part in (place, self.key, message) if part)


class FirstProblems:
    """The first problems of a file, as each line of a large one may have one, and the number of all.

    Later ones are held, too, if they are of another kind: a mistake in every line must not hide them.
    """

    def __init__(self, file: str) -> None:
        self._file, self._first = file, list[Problem]()
        self._alike: dict[tuple[str, str, str], int] = {}
        self.count: int = 0

    def add(self, *problems: Problem) -> None:
        for problem in problems:
            self.count += problem.unlisted or 1
            if not problem.unlisted and self._is_to_be_listed(problem.kind):
                self._first.append(problem)

    def _is_to_be_listed(self, kind: tuple[str, str, str]) -> bool:
        if (alike := self._alike.get(kind, 0)) == 0 and len(self._alike) == _MOST_KINDS:
            return False
        self._alike[kind] = alike + 1
        return len(self._first) < _MOST_LISTED or alike < _MOST_ALIKE

    def refuse(self) -> None:
        """Raise InputError if there are any."""
        if self.count:
            raise InputError(self)

    def __iter__(self) -> Iterator[Problem]:
        """Those that are held, and then how many more there are."""
        yield from self._first
        if (left := self.count - len(self._first)) > 0:
            yield Problem(self._file, f"and {counted(left, 'more problem')}", unlisted=left)


class InputError(EvalwrightError):
    """Files or arguments that cannot be used; nothing was run.

    `problems` lists every mistake that was found, sorted by file and line; of a file with very many, only the first,
    and last how many more there are.
    """

    exit_code = 2

    def __init__(self, problems: str | Problem | Iterable[Problem], headline: str = "") -> None:
        if isinstance(problems, str):
            headline, collected = problems, list[Problem]()
        else:
            collected = [problems] if isinstance(problems, Problem) else list(problems)
        in_order = sorted(collected, key=lambda p: (p.file, p.unlisted > 0, p.line or 0))
        self.problems: tuple[Problem, ...] = tuple(in_order)
        self.headline: str = _cut(headline)
        super().__init__("\n".join([self.headline, *map(str, self.problems)] if headline else map(str, self.problems)))

    @property
    def listed(self) -> tuple[Problem, ...]:
        """Every mistake; the headline as the only one if that is all there is."""
        return self.problems or (Problem("", self.headline),)

    @property
    def count(self) -> int:
        """Number of mistakes, with those that are not listed."""
        return sum(problem.unlisted or 1 for problem in self.problems)


def with_others(problems: Sequence[Problem], others: Iterable[Problem]) -> Iterator[Problem]:
    """The problems, and the others that are in other places: what is wrong there is already reported."""
    places = {(problem.file, problem.key) for problem in problems}
    yield from problems
    yield from (problem for problem in others if (problem.file, problem.key) not in places)


class AllMistakes:
    """The mistakes that several checks find, each in a `with` block of its own, to be reported at once."""

    def __init__(self) -> None:
        self._found: list[InputError] = []

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        """An InputError is kept and goes no further."""
        if not isinstance(error, InputError):
            return False
        self._found.append(error)
        return True

    def refuse(self, beside: Iterable[Problem] = ()) -> None:
        """Raise InputError with all mistakes, if there are any, and then with the problems `beside` them, too."""
        if not self._found:
            return
        listed = [problem for error in self._found for problem in error.listed]
        every = [*with_others(listed, beside)]
        raise self._found[0] if len(self._found) == 1 and every == listed else InputError(every)


@contextmanager
def below(place: str) -> Iterator[None]:
    """Put the keys of an InputError from the block below `place`: a part knows only its own."""
    try:
        yield
    except InputError as error:
        keys = [(problem, f"{place}.{problem.key}".rstrip(".")) for problem in error.listed]
        raise InputError([replace(problem, key=key) for problem, key in keys]) from error


class RunLockedError(InputError):
    """Another live process is writing to this run; the message names it."""


class StorageError(EvalwrightError):
    """A durable write failed (full disk, quota, I/O error); the run stops and can be resumed."""

    exit_code = 5
    run: str = ""
    """The run that stopped, as commands take it; "" if none did, or none leads to it."""


class TargetError(EvalwrightError):
    """A target could not answer; `type` and the message become the trace's error.

    `status` is the status of an HTTP response, and `retry_after` the seconds that it asked to wait. `attempts` is how
    often a model was called by the layer that retries such calls; None for all other errors.
    """

    def __init__(
        self,
        message: str,
        type: str = "adapter_error",
        *,
        status: int | None = None,
        retry_after: float | None = None,
        attempts: int | None = None,
    ) -> None:
        super().__init__(message)
        self.type: str = type
        self.status: int | None = status
        self.retry_after: float | None = retry_after
        self.attempts: int | None = attempts


class EvaluatorError(EvalwrightError):
    """An evaluator could not judge; `type` and the message become the result's error.

    `detail` and `cost_usd` (US dollars) are kept in the result: what was sent to the judge, and what the failed calls
    cost. `status` is the status of the HTTP response with which a judge's model was refused.
    """

    def __init__(
        self,
        message: str,
        type: str = "evaluator_error",
        detail: Mapping[str, Any] | None = None,
        cost_usd: float | None = None,
        *,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.type = type
        self.status = status
        self.detail: dict[str, Any] = dict(detail or {})
        self.cost_usd = cost_usd


class LimitExceeded(BaseException):
    """A time limit fired inside user code; raised there by the watchdog."""


class Interrupted(BaseException):
    """The user interrupted the run while user code was blocking it; never recorded as an error of that code."""


class UnsentCall(Interrupted):
    """A model was not called, as its turn did not come before the end of the run: a later session runs its cell."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """A count in a message: `1 case`, `24 cases`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def shorten(text: str, longest: int = 120, mark: str = "...") -> str:
    """The text, or as much of its beginning as has room for a mark at its end."""
    return text if len(text) <= longest else text[: longest - len(mark)] + mark


def in_seconds(limit: float) -> str:
    """A time limit in a message: `1 second`, `0.5 seconds`."""
    number = f"{limit:g}"
    return f"{number} second{'' if number == '1' else 's'}"


def money(dollars: float) -> str:
    """US dollars in a message: cents from one dollar on, two significant digits below that."""
    if dollars >= 1 or dollars < 5e-13:  # also -0.0, and what sums of fractions leave
        return f"${max(0.0, dollars):,.2f}"
    digits = 4
    while digits < 12 and round(dollars, digits) < 10 ** (1 - digits):
        digits += 1
    return f"${dollars:.{digits}f}"


def apart_from(limit: float, value: float, digits: int) -> str:
    """A number in `digits` significant digits, or in as many as it takes not to look like a limit that it is not."""
    texts = (f"{value:.{count}g}" for count in range(digits, 18))
    return next((text for text in texts if value == limit or float(text) != limit), repr(value))


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """`; did you mean "x"?` for the known name with the same meaning elsewhere, else for the nearest one, else
    nothing. `name` is whatever was given for one: a number, perhaps."""
    # only after a mistake: every command loads this module
    from difflib import get_close_matches

    from evalwright.synonyms import SYNONYMS

    names, text = list(known), str(name)
    word = text.lower().replace("-", "_")
    same_letters = (other for other in names if other.lower().replace("_", "") == word.replace("_", ""))
    same_meaning = (other for group in SYNONYMS if word in group for other in group if other in names)
    match = next(same_letters, None) or next(same_meaning, None)
    near = [match] if match is not None else get_close_matches(text, names, n=1, cutoff=0.6)
    return f'; did you mean "{near[0]}"?' if near else ""
