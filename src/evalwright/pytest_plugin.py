"""pytest's plug-in: what tests evaluate becomes one run, and `@pytest.mark.evalwright` makes tests from a dataset.

Loaded in every pytest session of an environment that has evalwright, so nothing else of evalwright is imported here
before a test needs it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest

from evalwright.errors import EvalwrightError, InputError
from evalwright.formats.pixie.observer import keep_with
from evalwright.pytest_runs.folders import claimed, new_folder
from evalwright.pytest_runs.recorder import Recorder

if TYPE_CHECKING:
    from evalwright.pytest_runs.suites import CaseUnderTest
    from evalwright.run.outcomes import Outcome

__all__ = ["pytest_addoption", "pytest_configure"]

_ARGUMENT = "case"
_HIDDEN = "_evalwright_case"
"""The parameter of tests without a parameter for the case: evalwright runs the case for them."""

_ERRORED = "CaseErrored"
_OURS = (_ERRORED, "CaseFailed", "EvalAssertionError")
"""Exceptions whose message is complete: of their tracebacks, only the lines of the test are shown."""
_PACKAGE, _LIBRARY = (os.path.join(os.path.dirname(module), "") for module in (__file__, os.__file__))  # noqa: PTH118, PTH120
_MARK = "evalwright_error"
"""The attribute of reports of tests that could not be judged; it is passed between processes."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("evalwright", "evaluations in tests")
    folder = "Folder in which the run of a session is created"
    group.addoption("--evalwright-runs", metavar="DIR", help=f"{folder} (ini: evalwright_runs, else runs).")
    group.addoption("--evalwright-no-record", action="store_true", help="Store no run.")
    parser.addini("evalwright_runs", f"{folder}, below the root folder.", default="runs")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "evalwright(dataset, dialect=None): run the test for each case of the suite `dataset`; the argument `case` is "
        "the case, and for a test without it the suite's system is run.",
    )
    settings = getattr(config, "workerinput", {})
    if names := settings.get("evalwright_shims"):
        from evalwright.formats.shims import serve
        from evalwright.registry import format_of

        for name in names:
            serve(format_of(name))
    session = _Session(config, settings)
    config.pluginmanager.register(session, "evalwright-session")


def pytest_unconfigure(config: pytest.Config) -> None:
    keep_with(None)


def _runs(config: pytest.Config) -> Path:
    named = config.getoption("--evalwright-runs")
    if not named:
        return Path(config.rootpath, config.getini("evalwright_runs"))
    runs = Path(named).absolute()
    try:
        there = next(place for place in (runs, *runs.parents) if place.exists())
    except OSError as error:
        raise pytest.UsageError(f"--evalwright-runs: {error.strerror}: {named:.60}") from None
    if not there.is_dir():
        raise pytest.UsageError(f"--evalwright-runs: expected a folder, found a file: {there}")
    return runs


class _Session:
    """One session of pytest: the only process, the main one of several, or a worker."""

    def __init__(self, config: pytest.Config, given: dict[str, Any]) -> None:
        self._config = config
        self._runs, self._started = _runs(config), datetime.now(UTC)
        self._recorder: Recorder | None = None
        self._suites: dict[tuple[Path, str | None], Any] = {}
        self._outcomes: list[Outcome] = []
        self._problems: list[str] = []
        if config.getoption("--evalwright-no-record") or (given and "evalwright_folder" not in given):
            return
        self._folder = Path(given["evalwright_folder"]) if given else new_folder(self._runs)
        self._recorder = Recorder(self._folder, given.get("workerid", "main"), config.rootpath)
        keep_with(self._recorder)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """What pytest-xdist's processes need to know."""
        shims = sys.modules.get("evalwright.formats.shims")
        node.workerinput["evalwright_shims"] = shims.served_modules() if shims is not None else []
        if self._recorder is not None:
            node.workerinput["evalwright_folder"] = str(self._folder)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """What one of pytest-xdist's processes could not store; a killed process reports nothing."""
        self._problems += getattr(node, "workeroutput", {}).get("evalwright_problems", [])

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        marker = metafunc.definition.get_closest_marker("evalwright")
        if marker is None:
            return
        argument = _ARGUMENT
        if argument not in metafunc.fixturenames:
            argument = _HIDDEN
            metafunc.fixturenames.append(argument)
        cases = self._cases(metafunc, marker)
        metafunc.parametrize(argument, cases, ids=[case.key for case in cases])

    def _cases(self, metafunc: pytest.Metafunc, marker: pytest.Mark) -> list[CaseUnderTest]:
        from evalwright.pytest_runs.suites import cases_of, marked

        try:
            path, dialect = marked(marker, metafunc.definition.path.parent, self._config.rootpath)
            if (path, dialect) not in self._suites:
                self._suites[path, dialect] = cases_of(path, dialect)
        except InputError as error:
            raise pytest.Collector.CollectError(f"{metafunc.definition.nodeid}: {error}") from error
        suite, cases = self._suites[path, dialect]
        return [suite.under_test(case, self._recorder) for case in cases]

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if item.get_closest_marker("evalwright") is not None and not hasattr(item, "callspec"):
                raise pytest.UsageError(f"{item.nodeid}: evalwright marks test functions, found {type(item).__name__}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if self._recorder is not None:
            under_test = _case_of(item)
            if under_test is None:
                self._recorder.start(item.nodeid, None)
            else:
                self._recorder.start(item.nodeid, under_test.copy(), under_test.secrets)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        under_test = _case_of(item)
        if under_test is not None:
            under_test.start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> None:
        if hasattr(pyfuncitem, "callspec") and _HIDDEN in pyfuncitem.callspec.params:
            under_test: Any = pyfuncitem.callspec.params[_HIDDEN]
            under_test.run()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        error = call.excinfo.value if call.excinfo is not None else None
        kind = type(error).__name__
        own = None
        if error is not None and kind in _OURS:
            own = _within(item.path, error.__traceback__)
        elif error is not None and not self._config.getoption("fulltrace"):
            own = _of_user(error.__traceback__)
        if error is not None and own is not None:
            call.excinfo = pytest.ExceptionInfo.from_exception(error.with_traceback(own))
        report = yield
        if report.failed and kind in _OURS:
            _show_whole_message(report, str(error), own is not None)
        recorder = self._recorder
        if report.failed and error is not None and (kind == _ERRORED or (recorder and recorder.is_error(error))):
            setattr(report, _MARK, True)
        if recorder is not None and (call.when == "call" or (call.when == "setup" and error is not None)):
            recorder.finish(error, _status(error))
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, str] | None:
        """A test that could not be judged is an error, like one whose setup failed, unless it is about to run again."""
        return ("error", "E", "ERROR") if report.failed and getattr(report, _MARK, False) else None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        if self._recorder is None:
            return
        self._recorder.close()
        self._problems += [f"not recorded: {failure}" for failure in self._recorder.failures]
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput["evalwright_problems"] = self._problems
            return
        for folder in [*([self._folder] if self._folder.is_dir() else []), *claimed(self._runs)]:
            self._gather(folder)

    def _gather(self, folder: Path) -> None:
        from evalwright.pytest_runs.collection import gathered

        try:
            outcome = gathered(folder, self._runs, self._config.rootpath, self._started)
        except (EvalwrightError, OSError, ValueError) as error:
            self._problems.append(f"the cells in {folder} are not gathered yet: {error}")
        else:
            self._outcomes += [] if outcome is None else [outcome]
            if outcome is not None and folder != self._folder:
                outcome.notes.append("gathered from a session that ended early")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._outcomes and not self._problems:
            return
        from evalwright.reports.text import harmless

        terminalreporter.ensure_newline()
        terminalreporter.section("evalwright")
        for outcome in self._outcomes:
            from evalwright.pytest_runs.terminal import summary_lines

            for line in summary_lines(outcome, terminalreporter.hasmarkup):
                terminalreporter.write_line(line)
        for problem in self._problems:
            terminalreporter.write_line(harmless(problem), red=True)


def _case_of(item: pytest.Item) -> CaseUnderTest | None:
    """The case for which a marked test runs; None for a dataset without cases, whose test pytest skips."""
    if item.get_closest_marker("evalwright") is None:
        return None
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    parameter: Any = parameters.get(_HIDDEN) or parameters.get(_ARGUMENT)
    return parameter if hasattr(parameter, "acheck") else None


def _status(error: BaseException | None) -> str:
    if error is None:
        return "passed"
    if isinstance(error, pytest.skip.Exception):
        return "skipped"
    return "failed" if isinstance(error, (AssertionError, pytest.fail.Exception)) else "error"


def _show_whole_message(report: pytest.TestReport, message: str, has_lines: bool) -> None:
    """The message, without the name of its class in the short summary, and alone if no line of the test is in the
    traceback."""
    if not has_lines:
        report.longrepr = message
    elif (crash := getattr(report.longrepr, "reprcrash", None)) is not None:
        crash.message = message


def _of_user(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without the entries in evalwright, nor those in the standard library (asyncio, threads) that led to
    them; None if it does not pass through evalwright. What user code called stays, wherever it is."""
    entries = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    places = [_place(entry) for entry in entries]
    if "evalwright" not in places:
        return None
    last = len(places) - places[::-1].index("evalwright")
    callers = [entry for entry, place in zip(entries[:last], places, strict=False) if not place]
    shown = None
    for entry in reversed(callers + entries[last:]):
        shown = TracebackType(shown, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return shown


def _place(entry: TracebackType) -> str:
    """`evalwright`, `library` for the standard one, or nothing."""
    file = entry.tb_frame.f_code.co_filename
    if file.startswith(_PACKAGE):
        return "evalwright"
    return "library" if file.startswith(_LIBRARY) and "site-packages" not in file else ""


def _within(file: Path, traceback: TracebackType | None) -> TracebackType | None:
    """The entries of a traceback that are in a file."""
    if traceback is None:
        return None
    rest = _within(file, traceback.tb_next)
    if Path(traceback.tb_frame.f_code.co_filename) != file:
        return rest
    return TracebackType(rest, traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno)
