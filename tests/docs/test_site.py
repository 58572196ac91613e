"""The site of docs/: every page is reachable, every anchor exists, the API page is current, no other host is asked."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs import api_reference

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
SETTINGS: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text())


def pages_of(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    for inner in entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ():
        yield from pages_of(inner)


def test_the_navigation_has_each_page_once() -> None:
    assert sorted(pages_of(SETTINGS["nav"])) == [page.name for page in PAGES]


def test_nothing_is_fetched_from_other_hosts() -> None:
    assert SETTINGS["theme"]["font"] is False
    assert SETTINGS["plugins"] == ["search"], "the plug-in `offline` loads a script from another host"


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path, between: str) -> set[str]:
    """Of each heading; generators and GitHub differ in what they make of several characters between words."""
    found = (
        re.sub(r"[`*]", "", title).strip().lower() for title in re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    )
    return {re.sub(between, "-", re.sub(r"[^\w\s-]", "", title).strip()) for title in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_stay_in_the_site_and_lead_to_headings(page: Path) -> None:
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        other = DOCS / file if file else page
        if other.suffix == ".png" and other.is_file():
            continue
        if other not in PAGES:
            wrong.append(f"{target}: no page of the site")
        elif anchor and not all(anchor in anchors(other, between) for between in (r"[\s-]+", r"\s")):
            wrong.append(f"{target}: no such heading")
    assert wrong == []


def test_rows_belong_to_a_table() -> None:
    alone = []
    for page in PAGES:
        lines = ["", *prose(page).splitlines(), ""]
        first_rows = [n for n, line in enumerate(lines) if line.startswith("|") and not lines[n - 1].startswith("|")]
        alone += [(page.name, lines[n]) for n in first_rows if not re.fullmatch(r"[|:\- ]+", lines[n + 1])]
    assert alone == []


def test_language_models_find_each_page_as_markdown(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "scripts" / "llms_txt.py", tmp_path], check=True)
    listed = dict(re.findall(r"^- \[.+?\]\((.+?)\): (.+)$", (tmp_path / "llms.txt").read_text(), re.MULTILINE))
    assert [*listed] == list(pages_of(SETTINGS["nav"]))
    assert listed["quickstart.md"] == "A suite is three files."
    assert [page.name for page in PAGES if (tmp_path / page.name).read_text() != page.read_text()] == []


def test_the_api_page_is_what_the_docstrings_say() -> None:
    assert api_reference.PAGE.read_text() == api_reference.page(), "python tests/docs/api_reference.py writes it"
