"""Add to a built site what language models read: `python scripts/llms_txt.py build/site`, which `make docs` calls.

Each page also stands there as Markdown, and `llms.txt` (https://llmstxt.org) lists them with their first sentences, in
the order of the navigation.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FIRST_PARAGRAPH = re.compile(r"^(?![#\s])(?:.+\n)+", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def listing(settings: dict[str, Any]) -> Iterator[str]:
    """The lines of `llms.txt`."""
    yield f"# {settings['site_name']}"
    yield f"\n> {settings['site_description']}"
    for section in settings["nav"]:
        for title, pages in section.items():
            yield f"\n## {title}\n"
            for page in pages:
                for name, file in page.items():
                    yield f"- [{name}]({file}): {first_sentence((DOCS / file).read_text(encoding='utf-8'))}"


def first_sentence(page: str) -> str:
    """The first sentence below the title, on one line and without its links."""
    match = FIRST_PARAGRAPH.search(page)
    text = LINK.sub(r"\1", " ".join(match[0].split()) if match else "")
    return re.split(r"(?<=[.?!])\s", text, maxsplit=1)[0].rstrip(":")


def main(site: Path) -> None:
    for page in DOCS.glob("*.md"):
        shutil.copyfile(page, site / page.name)
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    (site / "llms.txt").write_text("\n".join(listing(settings)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
