"""What tests in a real browser share: when they run, and what they ask of a page."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

CHROMIUM = os.environ.get("EVALWRIGHT_CHROMIUM") or shutil.which("chromium")
REQUIRED = os.environ.get("EVALWRIGHT_BROWSER_TESTS") == "required"
IN_CHROMIUM = [
    pytest.mark.slow("a real browser"),
    pytest.mark.skipif(
        not (CHROMIUM or REQUIRED), reason="no chromium: apt-get install --no-install-recommends chromium"
    ),
]
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
TOKEN = "b" * 32


def when_read(page) -> None:
    """Pages of what is still being read or compared load themselves again."""
    from playwright.sync_api import expect

    expect(page.locator("[data-refresh]")).to_have_count(0, timeout=60_000)
    page.wait_for_load_state("load")


def violations(page, rules=TAGS):
    """What axe finds on a page."""
    import axe_playwright_python

    page.evaluate((Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text() + ";0")
    found = page.evaluate("rules => axe.run(document, {runOnly: rules, preload: false})", rules)["violations"]
    return [(one["id"], one["nodes"][0]["target"]) for one in found]


def press(page, *keys: str) -> None:
    for key in keys:
        page.wait_for_load_state("load")
        page.keyboard.press(key)
