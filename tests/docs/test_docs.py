"""Every example in the documentation is executed, page by page.

A fenced block with `file=NAME` is a file of the page's own folder, one with `append=NAME` more of it. A `console`
block is run line by line: behind `$ ` stands a command (with `# exit N` when it ends with N), below it lines that its
output must hold in this order, `...` standing for anything; `runs/RUN` in a command is the newest run there.
"""

from __future__ import annotations

import os
import re
import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import warm

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"(file|append)=([\w./-]+)")
LINK = re.compile(r"\]\(([^)#\s]+)")
VARIABLE = re.compile(r"([A-Z_]+)=(.*)")
EXIT = re.compile(r"\s+# exit (\d+)$")


def blocks(page):
    return FENCE.findall(page.read_text())


def commands(text):
    """Each command of a console block with the exit code and the output lines that are expected."""
    seen = []
    for line in text.splitlines():
        if line.startswith("$ "):
            code = EXIT.search(line)
            seen.append((EXIT.sub("", line[2:]), int(code[1]) if code else 0, []))
        else:
            seen[-1][2].append(line)
    return seen


def pattern(lines):
    parts = []
    for line in lines:
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
        elif line.strip():
            said = line.rstrip()
            whole = said.removesuffix(" ...").rstrip()  # further columns: there is none for latencies that are all 0
            more = "" if whole == said else r"(?:[ \t].*)?"
            parts.append(".*".join(map(_spaced, whole.split("..."))) + more + r"[ \t]*\n(?:[ \t]*\n)*")
    return re.compile(r"(?:.*\n)*?" + "".join(parts))


def _spaced(text):
    """The text, with columns as wide as they may be."""
    return r"[ \t]+".join(map(re.escape, re.split(r"[ \t]+", text)))


def run(command, folder):
    words = shlex.split(command)
    variables = {}
    while match := VARIABLE.fullmatch(words[0]):
        variables[match[1]] = match[2]
        words = words[1:]
    words[:1] = {"evalwright": ["-m", "evalwright"], "python": []}[words[0]]
    rewrites_imports = words[:2] == ["-m", "pytest"]
    has_packages = any(folder.glob("*.dist-info"))  # which there are is asked when a process starts
    with warm.starting_cold() if rewrites_imports or has_packages else nullcontext():
        return warm.run(words, cwd=folder, env={**os.environ, "COLUMNS": "120", **variables}, timeout=120)


def with_newest_run(command, folder):
    """`runs/RUN` in a command is the run in `runs` that was started last."""

    def newest(found):
        run = max((folder / found[1]).iterdir(), key=lambda run: run.name)
        return f"{found[1]}/{run.name}"

    return re.sub(r"(\w+)/RUN\b", newest, command)


MANY_PROCESSES = {
    "command-line", "convert", "cookbook", "decisions", "import", "judges", "plugins", "pytest", "python",
    "runs-on-disk", "targets", "tutorial", "workspaces",
}  # fmt: skip
"""Pages whose commands take more than half a CPU second together."""


def marked(page: Path) -> Any:
    slow = [pytest.mark.slow("a page of many commands")] if page.stem in MANY_PROCESSES else []
    return pytest.param(page, marks=slow, id=page.stem)


@pytest.mark.parametrize("page", [marked(page) for page in PAGES if "```console" in page.read_text()])
def test_the_commands_of_a_page_do_what_it_says(page, tmp_path):
    for language, info, text in blocks(page):
        if match := FILE.search(info):
            (tmp_path / match[2]).parent.mkdir(exist_ok=True)
            with (tmp_path / match[2]).open("w" if match[1] == "file" else "a") as file:
                file.write(text)
        elif language == "console":
            for command, code, expected in commands(text):
                done = run(with_newest_run(command, tmp_path), tmp_path)
                output = done.stdout + done.stderr
                ended = done.returncode if done.returncode >= 0 else 128 - done.returncode  # as a shell says it
                assert ended == code, f"{command}\n{output}"
                assert pattern(expected).match(output), f"{command} printed\n{output}"


@pytest.mark.parametrize(
    ("shown", "printed", "fits"),
    [
        ("a  b", "a     b\n", True),
        ("a ... c", "a b c\n", True),
        ("one\n...\nfour", "one\ntwo\nthree\nfour\n", True),
        ("one\nfour", "one\ntwo\nfour\n", False),
        ("two\none", "one\ntwo\n", False),
        ("on", "one\n", False),
    ],
)
def test_shown_output_is_held_to_what_was_printed(shown, printed, fits):
    assert bool(pattern(shown.splitlines()).match(printed)) is fits


def test_links_lead_somewhere():
    missing = [
        (page.name, target)
        for page in PAGES
        for target in LINK.findall(page.read_text())
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert missing == []


def test_files_of_the_repository_that_a_page_names_exist():
    place = re.compile(r"`((?:tests|scripts|files|dialects|stores|targets|cli|reports|model)/[\w./]*)`")
    named = [(page.name, name) for page in PAGES for name in place.findall(page.read_text())]
    roots = (ROOT, ROOT / "src/evalwright")
    assert [(page, name) for page, name in named if not any((root / name).exists() for root in roots)] == []


def test_the_first_two_shell_blocks_of_the_readme_are_one_command_each():
    first, second = [text for language, _, text in blocks(ROOT / "README.md") if language == "sh"][:2]
    assert (first.strip(), second.strip()) == ("make demo", "make test")
