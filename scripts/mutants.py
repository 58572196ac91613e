#!/usr/bin/env python3
"""Breaks guards of the package, one at a time, and names those that no test notices.

    scripts/mutants.py [PLACE ...] [--count 40] [--seed N] [--limit SECONDS] [--root FOLDER]

A guard is a condition, a comparison, a cap, a limit or a call whose result nobody uses, such as a sync. `--count` of
those in the places (files or folders, by default the whole package) are drawn by the seed. Each is changed in a copy of
the checkout, where the quick tests of its room are run until the first that fails: then the mutant has died. It has
died as well when they take longer than the limit. Prints a line for each and exits with 1 if any has survived, and with
2 if nothing can be tried.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

ELSEWHERE = {
    "cli": ["acceptance"],
    "decisions": ["decisions", "run/test_decided.py", "acceptance/test_decide.py"],
    "demo": ["examples"],
    "letta": ["formats/letta"],
    "model": ["run", "scoring", "stores"],
    "northstar": ["formats/northstar"],
    "pixie": ["formats/pixie"],
    "processes": ["targets", "faults"],
    "pytest_runs": ["pytest_plugin"],
    "statistics": ["statistics", "scoring", "decisions"],
}
"""The tests of a room that are not just what `tests/` has under its name."""
OTHERWISE = ["api", "run", "acceptance"]
LEFT_OUT = shutil.ignore_patterns(".*", "build", "runs", "node_modules")
LEAVES = (ast.Raise, ast.Return, ast.Continue, ast.Break)
OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


class Mutant(NamedTuple):
    """Bytes of a file that are replaced by others."""

    file: Path
    line: int
    begin: int
    end: int
    text: str

    def changed(self, source: bytes) -> bytes:
        return source[: self.begin] + self.text.encode() + source[self.end :]

    def change(self, source: bytes) -> str:
        """On one line: what was there, and what is there instead."""
        return f"{' '.join(source[self.begin : self.end].decode().split())} -> {self.text}"


def mutants(file: Path) -> Iterator[Mutant]:
    """All that can be made of a file."""
    source = file.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in guarding(ast.parse(source)):
        for place, text in changes(node):
            assert place.end_lineno is not None
            assert place.end_col_offset is not None
            begin = starts[place.lineno - 1] + place.col_offset
            end = starts[place.end_lineno - 1] + place.end_col_offset
            yield Mutant(file, place.lineno, begin, end, text)


def guarding(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that decide something when the program runs: no annotations, nor what only a type checker reads, nor
    the insides of f-strings, whose places Python 3.11 does not know."""
    yield node
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, (ast.arg, ast.JoinedStr)):
                continue
            typing = isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "not TYPE_CHECKING")
            if name not in ("annotation", "returns", "bases") and not typing:
                yield from guarding(child)


def changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Places at a node, and what may stand there instead."""
    match node:
        case ast.If(test, body) if isinstance(body[-1], LEAVES):
            yield test, "False"
        case ast.Compare(left, [operator], [right]):
            yield node, text_of(ast.Compare(left, [OPPOSITES[type(operator)]()], [right]))
        case ast.BoolOp(operator, values):
            for left_out in range(len(values)):
                kept = values[:left_out] + values[left_out + 1 :]
                yield node, text_of(ast.BoolOp(operator, kept) if len(kept) > 1 else kept[0])
        case ast.UnaryOp(ast.Not(), operand):
            yield node, text_of(operand)
        case ast.Call(ast.Name("min" | "max"), [_, _] as values, []) if not isinstance(values[1], ast.Starred):
            for value in values:
                yield node, text_of(value)
        case ast.Expr(ast.Call() | ast.Await(ast.Call())):
            yield node, "pass"
        case ast.Assign([ast.Name(name)], ast.Constant(int() | float() as limit) as value) | ast.AnnAssign(
            ast.Name(name), _, ast.Constant(int() | float() as limit) as value
        ) if name.isupper() and not isinstance(limit, bool):
            yield value, repr(2 * limit + 1)


def text_of(expression: ast.expr) -> str:
    return f"({ast.unparse(expression)})"


class Checkout:
    """A copy in which tests are run on changed source."""

    def __init__(self, root: Path, copy: Path, limit: float) -> None:
        self.copy, self.limit = copy, limit
        shutil.copytree(root, copy, ignore=LEFT_OUT, symlinks=True)
        # What is compiled stays valid, as each file gets its time back; a mutant's must not take its place.
        self._environment = os.environ | {
            "PYTHONPATH": str(copy / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HYPOTHESIS_PROFILE": "quick",
        }

    def survives(self, mutant: Mutant) -> bool:
        source, stat = mutant.file.read_bytes(), mutant.file.stat()
        mutant.file.write_bytes(mutant.changed(source))
        try:
            return self.passes(self.tests_of(mutant.file))
        finally:
            mutant.file.write_bytes(source)
            os.utime(mutant.file, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    def tests_of(self, file: Path) -> list[str]:
        """Those of the module's folder, or of the nearest one above that has tests."""
        parts = file.relative_to(self.copy / "src").with_suffix("").parts[1:]
        if parts[0] in ELSEWHERE:
            return [f"tests/{place}" for place in ELSEWHERE[parts[0]]]
        folders = [Path("tests", *parts[:depth]) for depth in range(len(parts), 0, -1)]
        own = next((str(folder) for folder in folders if (self.copy / folder).is_dir()), None)
        return [own] if own else [f"tests/{room}" for room in OTHERWISE]

    def passes(self, tests: list[str]) -> bool:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", *tests]
        process = subprocess.Popen(
            command, cwd=self.copy, env=self._environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(self.limit) == 0
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)  # servers that tests have started would outlive a kill
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            return False
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def drawn(places: list[Path], count: int, seed: int) -> list[Mutant]:
    files = {file for place in places for file in ([place] if place.is_file() else place.rglob("*.py"))}
    listed = [mutant for file in sorted(files) for mutant in mutants(file)]
    return random.Random(seed).sample(listed, min(count, len(listed)))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("places", nargs="*", type=Path, metavar="PLACE", help="files or folders (default: the package)")
    parser.add_argument("--count", type=int, default=40, help="how many guards are broken (default: 40)")
    parser.add_argument("--seed", type=int, default=random.randrange(10_000), help="draws them (default: by chance)")
    parser.add_argument(
        "--limit", type=float, default=600, metavar="SECONDS", help="for the tests of one (default: 600)"
    )
    parser.add_argument("--root", type=Path, default=Path(__file__).parent.parent, help="the checkout")
    args = parser.parse_args()
    args.root = args.root.resolve()
    source = args.root / "src"
    args.places = [place.resolve() for place in args.places] or [source]
    if wrong := [str(place) for place in args.places if not (place.exists() and place.is_relative_to(source))]:
        parser.error(f"not in {source}: {', '.join(wrong)}")
    return args


def main() -> int:
    given = arguments()
    with tempfile.TemporaryDirectory() as folder:
        checkout = Checkout(given.root, Path(folder, "checkout"), given.limit)
        places = [checkout.copy / place.relative_to(given.root) for place in given.places]
        tried = drawn(places, given.count, given.seed)
        if not tried:
            print("no guard is there", file=sys.stderr)
            return 2
        print(f"{len(tried)} mutants of seed {given.seed}", flush=True)
        for tests in sorted({tuple(checkout.tests_of(mutant.file)) for mutant in tried}):
            if not checkout.passes(list(tests)):
                print(f"the tests of {' '.join(tests)} fail, or take too long, without a mutant", file=sys.stderr)
                return 2
        survivors = surviving(checkout, tried)
    print(f"{len(survivors)} of {len(tried)} survived", *survivors, sep="\n  ")
    return 1 if survivors else 0


def surviving(checkout: Checkout, tried: list[Mutant]) -> list[str]:
    survivors = []
    for mutant in tried:
        change = mutant.change(mutant.file.read_bytes())
        line = f"{mutant.file.relative_to(checkout.copy)}:{mutant.line}: {change}"
        begun = time.monotonic()
        survived = checkout.survives(mutant)
        print(f"{'survived' if survived else 'died':8} {time.monotonic() - begun:4.0f} s  {line}", flush=True)
        survivors += [line] * survived
    return survivors


if __name__ == "__main__":
    sys.exit(main())
