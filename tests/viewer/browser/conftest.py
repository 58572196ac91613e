"""Runs, a server that shows them, and a browser that visits it; made once for all tests of this folder."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from contextlib import closing

import pytest
import uvicorn

from evalwright.cli.bundling import write_pages
from evalwright.cli.report_context import opened_context
from evalwright.cli.viewed_runs import StoredRun, runs_at
from evalwright.model.cell import cell_key
from evalwright.run.stored_run import open_run
from evalwright.viewer.access import Access
from evalwright.viewer.app import viewer
from evalwright.viewer.document import HtmlDocument
from viewer.browser.pages import CHROMIUM, TOKEN, when_read
from viewer.runs import cut_short, made_run


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browsed")
    return made_run(folder, trials=1), made_run(folder, trials=1, lost=1)


@pytest.fixture(scope="session")
def origin(runs):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        access = Access(TOKEN, (f"127.0.0.1:{port}",), port)
        app = viewer(lambda: runs_at([runs[0].parent]), access, labeller="ann")
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{port}"
        server.should_exit = server.force_exit = True
        thread.join()


@pytest.fixture(scope="module")
def browser(origin):
    """Closed after each module: while it is open, this thread has an event loop that runs, and tests of other folders
    that come next could run none of their own."""
    del origin
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        opened = play.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield opened
        opened.close()


@pytest.fixture
def live(runs):
    """A run that is being written."""
    run = runs[0].with_name("2020-01-01T00-00-00_live")
    shutil.copytree(runs[0], run)
    cut_short(run)
    yield run
    shutil.rmtree(run)


@pytest.fixture
def visit(browser, origin):
    """Opens pages; afterwards no error may be in the console, and no other host may have been asked."""
    asked: list[str] = []
    said: list[str] = []
    contexts = []

    def opened(path: str, **settings: object):
        context = browser.new_context(viewport=settings.pop("viewport", {"width": 1280, "height": 900}), **settings)
        contexts.append(context)
        context.set_default_timeout(20_000)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: (said.append("dialog"), dialog.dismiss()))
        page.goto(f"{origin}{path}{'&' if '?' in path else '?'}token={TOKEN}")
        when_read(page)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert said == []
    assert [url for url in asked if not url.startswith((origin, "data:", "file:"))] == []


@pytest.fixture(scope="session")
def written(runs, tmp_path_factory):
    """Pages as files, and the run as one file."""
    folder = tmp_path_factory.mktemp("written")
    write_pages([runs[1]], folder / "pages", "all", runs[0], 100)
    with opened_context(runs[1], runs[0]) as context, closing(open_run(runs[1])[0]) as reader:
        text = HtmlDocument().render(reader, StoredRun(runs[1]).summary(), context)
    (folder / "run.html").write_text(text.replace("<details id", "<details open id"))
    run = folder / "pages" / "runs" / runs[1].name
    cell = run / "cells" / f"{cell_key('case-3', 'agent', 0)}.html"
    pages = [folder / "pages" / "index.html", run / "index.html", cell, folder / "pages" / "compare" / "index.html"]
    return [path.as_uri() for path in [*pages, folder / "run.html"]]
