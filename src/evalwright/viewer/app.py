"""The viewer as a web application: maps addresses to pages. The content of pages is made in `pages/`."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from functools import cached_property
from hmac import compare_digest
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from evalwright.errors import EvalwrightError, StorageError
from evalwright.model.cell import cell_key
from evalwright.viewer.access import Access, Gatekeeper
from evalwright.viewer.changes import ChangeTally
from evalwright.viewer.filters import Filter
from evalwright.viewer.links import ServerLinks
from evalwright.viewer.pages import Page, PageNotFound, StillReading, table_of_cells
from evalwright.viewer.pages.cell import cell_page, stored_records, whole_text
from evalwright.viewer.pages.known_values import check_values
from evalwright.viewer.pages.label import Labelling, label_page, store_label
from evalwright.viewer.pages.run import run_page
from evalwright.viewer.pages.runs import run_before, runs_page
from evalwright.viewer.query import BadQuery, single_values, whole_number
from evalwright.viewer.rendering import assets
from evalwright.viewer.shelf import OpenRun, RunSource, Shelf

if TYPE_CHECKING:
    from evalwright.viewer.pairing import Pairings
    from evalwright.viewer.table import CellRow

__all__ = ["viewer"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Prefixes of texts that a spreadsheet evaluates; the last four are the full-width forms of the first four."""
_COLUMNS = (
    "case",
    "variant",
    "trial",
    "status",
    "score",
    "failed",
    "error",
    "latency_ms",
    "cost_usd",
    "tokens",
    "answer",
)
_ROWS = 1000
_FORM = "application/x-www-form-urlencoded"
_LARGEST_FORM = 64 * 1024
_EVENT_SECONDS = 1.0
_YEAR = "public, max-age=31536000, immutable"


def viewer(
    sources: Callable[[], Iterable[RunSource]], access: Access, *, labels: bool = True, labeller: str = ""
) -> Gatekeeper:
    """The application. `sources` lists the runs, and is called often; with `labels`, `labeller` can label answers."""
    site = _Site(Shelf(sources), access, labels, labeller)
    routes = [
        Route("/", site.runs),
        Route("/runs/{run}", site.run),
        Route("/runs/{run}/cells", site.find),
        Route("/runs/{run}/cells.csv", site.table),
        Route("/runs/{run}/cells/{key}.json", site.records),
        Route("/runs/{run}/cells/{key}/whole", site.whole),
        Route("/runs/{run}/cells/{key}", site.cell),
        Route("/runs/{run}/trials", site.trials),
        Route("/runs/{run}/events", site.events),
        Route("/runs/{run}/label", site.label),
        Route("/runs/{run}/labels", site.store_label, methods=["POST"]),
        Route("/compare", site.compare),
        Route("/compare/cells/{key}", site.compared_cell),
        Route("/assets/{name}", site.asset),
    ]
    handlers: dict[Any, Any] = {404: site.missing, 500: site.broken, BadQuery: site.misread, PageNotFound: site.missing}
    handlers[StillReading] = site.unready
    handlers[EvalwrightError] = site.unreadable
    handlers[StorageError] = site.failing
    handlers[OSError] = site.unreadable  # a folder can be removed between any two steps
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return Gatekeeper(app, access)


class _Site:
    """Each method answers one address. They are plain functions, so that each runs in a thread."""

    def __init__(self, shelf: Shelf, access: Access, labels: bool, labeller: str) -> None:
        self._shelf, self._labels = shelf, labels
        self._labelling = Labelling(labeller, access.form_token())
        self._links, self._changes = ServerLinks(), ChangeTally()

    def _answer(self, page: Page, status: int = 200, **more: Any) -> HTMLResponse:
        _, text = page.fitted({"links": self._links, "labels": self._labels, **more})
        return HTMLResponse(text, status)

    def _read(self, request: Request) -> OpenRun:
        """The run, once its cells are read. Files and labels wait for them, while pages load themselves again."""
        run = self._shelf.open(_run_of(request, self._shelf))
        run.whole_table()
        return run

    def runs(self, request: Request) -> Response:
        return self._answer(runs_page(self._shelf, self._changes, request.query_params.multi_items()))

    def run(self, request: Request) -> Response:
        run = self._shelf.open(_run_of(request, self._shelf))
        progress = self._shelf.live(run).progress() if run.source.is_written() else None
        return self._answer(run_page(run, request.query_params.multi_items(), self._links, progress))

    async def events(self, request: Request) -> Response:
        run = await run_in_threadpool(self._shelf.open, _run_of(request, self._shelf))
        single_values(request.query_params.multi_items(), ())
        live = self._shelf.live(run)

        async def stream() -> AsyncIterator[bytes]:
            while True:
                progress = await run_in_threadpool(live.progress)
                yield b"event: progress\ndata: " + msgspec.json.encode(progress.event()) + b"\n\n"
                if progress.state != "running":
                    return
                await asyncio.sleep(_EVENT_SECONDS)

        return StreamingResponse(stream(), media_type="text/event-stream")

    def cell(self, request: Request) -> Response:
        run = self._shelf.open(_run_of(request, self._shelf))
        pairs = request.query_params.multi_items()
        page = cell_page(run, request.path_params["key"], pairs, self._links, run.labels)
        row = page.context["row"]
        before = run_before(self._shelf, run.id, row.variant)
        pair = cell_key(row.case_key, row.variant, 0)
        sides = {"a": before, "b": run.id, "va": row.variant, "vb": row.variant}
        return self._answer(page, change=self._links.compared_cell(pair, **sides) if before else "")

    def find(self, request: Request) -> Response:
        """`?case=ID&variant=V&trial=N`, as people and tools write it, to the address of the cell, whose page has its
        trials; if several variants have one, to the list of them."""
        run_id = _run_of(request, self._shelf)
        values = single_values(request.query_params.multi_items(), ("case", "variant", "trial"))
        trial = whole_number("trial", values["trial"]) if "trial" in values else None
        run = self._shelf.open(run_id)
        if not (case := values.get("case", "")):
            raise BadQuery("expected the id of a case as 'case', found none")
        every = table_of_cells(run).of_case(case, None)
        rows = [row for row in every if values.get("variant") in (None, row.variant) and trial in (None, row.trial)]
        if not rows:
            cells = ", ".join(f"{row.variant} trial {row.trial}" for row in every[:20])
            message = (
                f"no such cell of the case {case[:200]!r} (there are: {cells})" if every else f"no case {case[:200]!r}"
            )
            raise PageNotFound(f"The run {run_id} has {message}.", self._links.run(run_id))
        if len({row.variant for row in rows}) > 1:
            trials = () if trial is None else (trial,)
            return RedirectResponse(self._links.run(run_id, Filter(case=(case,), trial=trials)), 303)
        return RedirectResponse(self._links.cell(run_id, rows[0].key), 303)

    def records(self, request: Request) -> Response:
        run = self._read(request)
        single_values(request.query_params.multi_items(), ())
        body = msgspec.json.format(msgspec.json.encode(stored_records(run, request.path_params["key"])), indent=2)
        name = f"{request.path_params['key']}.json"
        return Response(
            body, headers={"Content-Disposition": f'attachment; filename="{name}"'}, media_type="application/json"
        )

    def whole(self, request: Request) -> Response:
        run = self._read(request)
        part = single_values(request.query_params.multi_items(), ("part",)).get("part", "")
        text = whole_text(stored_records(run, request.path_params["key"]), part)
        return Response(text.encode("utf-8", "backslashreplace"), media_type="text/plain")

    def table(self, request: Request) -> Response:
        run, chosen = self._read(request), Filter.of(request.query_params.multi_items())
        check_values([run], chosen)
        lines = _csv(run.whole_table().every(chosen))
        headers = {"Content-Disposition": 'attachment; filename="cells.csv"'}
        return StreamingResponse(lines, headers=headers, media_type="text/csv")

    def asset(self, request: Request) -> Response:
        for asset in assets().values():
            if asset.name == request.path_params["name"]:
                return Response(asset.content, headers={"Cache-Control": _YEAR}, media_type=asset.kind)
        raise PageNotFound("There is no such file.", "/")

    @cached_property
    def _pairings(self) -> Pairings:
        from evalwright.viewer.pairing import Pairings

        return Pairings()

    def trials(self, request: Request) -> Response:
        from evalwright.viewer.pages.trials import trials_page

        run = self._shelf.open(_run_of(request, self._shelf))
        return self._answer(trials_page(run, request.query_params.multi_items()))

    def label(self, request: Request) -> Response:
        run = self._shelf.open(_run_of(request, self._shelf))
        if not self._labels:
            raise PageNotFound("Labelling is off in this session.", self._links.run(run.id))
        return self._answer(label_page(run, request.query_params.multi_items(), self._labelling, self._links))

    async def store_label(self, request: Request) -> Response:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _LARGEST_FORM:
                return Response("The form is too large.\n", 403, media_type="text/plain")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, encoding="utf-8", errors="replace")
        form = dict(pairs)
        token = form.pop("form_token", "").encode("utf-8", "replace")
        if not self._labels or kind != _FORM or not compare_digest(token, self._labelling.form_token.encode()):
            return Response("The form was not sent by a page of this session.\n", 403, media_type="text/plain")
        return await run_in_threadpool(self._store_label, request, form)

    def _store_label(self, request: Request, form: dict[str, str]) -> Response:
        run = self._read(request)
        return RedirectResponse(store_label(run, form, self._labelling, self._links), 303)

    def compare(self, request: Request) -> Response:
        from evalwright.viewer.pages.compare import compare_page  # imported only when needed: it is slow

        pairs = request.query_params.multi_items()
        chosen = [value for name, value in pairs if name == "run"]
        if chosen:
            return self._older_first(chosen, [pair for pair in pairs if pair[0] != "run"])
        return self._answer(compare_page(self._shelf, self._pairings, pairs))

    def _older_first(self, chosen: list[str], rest: list[tuple[str, str]]) -> Response:
        """`?run=X&run=Y`, which the list of runs sends, to the comparison with the older run as A."""
        sources = self._shelf.sources()
        single_values(rest, ("run",))
        if len(chosen) != 2:
            raise BadQuery(f"a comparison needs two runs, found {len(chosen)}")
        for run in chosen:
            if run not in sources:
                raise PageNotFound(f"There is no run {run[:200]!r}.", "/")
        newest_first = list(sources)
        b, a = sorted(chosen, key=newest_first.index)
        return RedirectResponse(self._links.compare(a=a, b=b), 303)

    def compared_cell(self, request: Request) -> Response:
        from evalwright.viewer.pages.compared_cell import compared_cell_page

        key, pairs = request.path_params["key"], request.query_params.multi_items()
        return self._answer(compared_cell_page(self._shelf, self._pairings, key, pairs, self._links))

    # Error pages.

    def _problem(self, status: int, title: str, text: str, back: str = "/") -> Response:
        try:
            runs = list(self._shelf.sources())[:20]
        except (EvalwrightError, OSError):  # a folder that has been removed, perhaps that of the run itself
            runs = []
        return self._notice(status, title, text, back, runs)

    def _notice(self, status: int, title: str, text: str, back: str = "/", runs: Sequence[str] = ()) -> Response:
        context = {"heading": title, "text": text, "back": back, "runs": runs}
        return self._answer(Page("problem.html", f"{title} · evalwright", context), status)

    def missing(self, request: Request, error: Exception) -> Response:
        text = str(error) if isinstance(error, PageNotFound) else "There is no such page."
        return self._problem(404, "Not found", text, getattr(error, "back", "/"))

    def unready(self, request: Request, error: StillReading) -> Response:
        run = self._shelf.open(error.run_id)
        return self._answer(Page("reading.html", f"{run.plan.name} · evalwright", {"run": run}))

    def misread(self, request: Request, error: Exception) -> Response:
        return self._problem(400, "Not understood", str(error), request.url.path)

    def unreadable(self, request: Request, error: Exception) -> Response:
        return self._problem(404, "Cannot be read", str(error))

    def failing(self, request: Request, error: Exception) -> Response:
        """A disk is full, or a server does not answer: the same request may succeed later, and a list of runs now would
        wait as long again."""
        what = "stored" if request.method == "POST" else "read"
        return self._notice(503, f"Cannot be {what}", str(error))

    def broken(self, request: Request, error: Exception) -> Response:
        return self._problem(500, "Internal error", f"{type(error).__name__}: {error}")


def _run_of(request: Request, shelf: Shelf) -> str:
    """The run of an address, looked up among those that are listed."""
    run: str = request.path_params["run"]
    if shelf.source(run) is None:
        raise PageNotFound(f"There is no run {run[:200]!r}.", "/")
    return run


def _csv(rows: Iterable[CellRow]) -> Iterator[str]:
    """The rows in parts of many lines, as each part is handed from thread to thread."""
    yield _lines([_COLUMNS])
    rest = iter(rows)
    while some := list(islice(rest, _ROWS)):
        yield _lines(map(_values, some))


def _values(row: CellRow) -> Iterator[Any]:
    """Those of a line; no text of them is a formula of a spreadsheet, or has the character at which readers end."""
    failed = ", ".join(row.failed_evaluators)
    judged = (row.case_key, row.variant, row.trial, row.status, row.score, failed, row.error)
    for value in (*judged, row.latency, row.cost, row.tokens, row.answer):
        if isinstance(value, str):
            value = ("'" if value.startswith(_FORMULA) else "") + value.replace("\0", "\N{REPLACEMENT CHARACTER}")
        yield value


def _lines(rows: Iterable[Iterable[Any]]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()
