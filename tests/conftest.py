"""What all tests share: processes that start warm, slow tests told apart, and the processor time of each.

Property tests try the same examples in every run: 100, or 10 with `HYPOTHESIS_PROFILE=quick`; `explore` looks for new
ones.
"""

from __future__ import annotations

import gc
import itertools
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

import unsynced
import warm

# On a busy machine, drawing examples may take any time.
UNHURRIED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("repeatable", derandomize=True, database=None, **UNHURRIED)
settings.register_profile("quick", settings.get_profile("repeatable"), max_examples=10)
settings.register_profile("explore", max_examples=2000, **UNHURRIED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

LEFT_OUT = "slow_left_out"
CPU_SECONDS = "cpu_seconds"
TOGETHER = {
    "PostgreSQL": ("tests/acceptance/test_other_stores.py",),
    "browser": ("tests/viewer/browser/",),
    "clients of models": (
        "tests/capture/test_targets.py",
        "tests/evaluators/judges/test_over_http.py",
        "tests/formats/agentv/test_models.py",
        "tests/formats/pixie/test_premade.py",
        "tests/formats/promptfoo/test_models.py",
        "tests/llm/",
        "tests/run/test_batches.py",
    ),
    "examples": ("tests/examples/",),
    "scipy": ("tests/statistics/test_against_scipy.py",),
    "source": ("tests/architecture/", "tests/docs/test_words.py"),
    # Their limit of processes counts those of all code that runs as the same user.
    "walls": ("tests/evaluators/code/", "tests/formats/northstar/test_code_graders.py", "tests/sandbox/"),
    "warm": ("tests/test_warm.py",),
}
"""Tests that one worker runs, because they share what is costly or may not run at the same time."""
_numbers = itertools.count()
_begun = pytest.StashKey[float]()
_left_out = pytest.StashKey[int]()
_earlier_runs = pytest.StashKey[set[str]]()


@pytest.fixture(autouse=True, scope="session")
def _alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What models said in an earlier session, or to the user, must not answer for what is tested, nor a proxy; and no
    home is needed, as runs are sealed with a key of this session."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.lower() in ("http_proxy", "https_proxy", "all_proxy")]:
            patch.delenv(name)
        for kind in ("cache", "state"):
            patch.setenv(f"XDG_{kind.upper()}_HOME", str(tmp_path_factory.mktemp(kind)))
        yield


@pytest.fixture(autouse=True, scope="session")
def _unsynced() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", unsynced.fsync)
        yield


@pytest.fixture(autouse=True, scope="session")
def _hung_up() -> None:
    """What tests start would inherit that `nohup` lets a signal be ignored, but not a handler that does nothing."""
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As that of pytest, which lists the folders of all earlier tests for the number of the next."""
    path = tmp_path_factory.getbasetemp() / f"{request.node.originalname[:30]}{next(_numbers)}"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def collect() -> Callable[[], int]:
    """Lets go the garbage of the test alone: to look through all that a worker keeps takes a second."""
    gc.freeze()
    return gc.collect


@pytest.fixture
def untouched_environment():
    """The variables of the process are afterwards what they were."""
    before = _variables()
    yield
    assert _variables() == before


@pytest.fixture
def descriptors() -> Callable[[], dict[str, str]]:
    """Lists the open descriptors of this process, and what each stands for.

    What is there only afterwards is left open; what is there no more may have been garbage of an earlier test.
    """
    place = Path("/proc/self/fd")
    if not place.is_dir():
        pytest.skip("finds descriptors in /proc")

    def listed() -> dict[str, str]:
        found: dict[str, str] = {}
        for path in place.iterdir():
            with suppress(OSError):  # the listing itself
                found[path.name] = str(path.readlink())
        return {name: what for name, what in found.items() if not what.endswith("/fd")}

    return listed


def _variables():
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are named by their argument: what a compressor puts into its header differs in each worker, and workers
    that collect different names refuse to run."""
    return argname if isinstance(val, bytes) else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cpu-limit", type=float, metavar="SECONDS", help="fail when a test that is not slow uses more than this"
    )


class BriefReports:
    """A worker tells the controller how each test ended, and nothing else: sending and reading all six messages about
    a test takes longer than pytest takes to run an empty one."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        for report in runtestprotocol(item, nextitem=nextitem, log=False):
            if report.when == "call" or not report.passed:
                item.ihook.pytest_runtest_logreport(report=report)
        return True


def pytest_configure(config: pytest.Config) -> None:
    wants_times = any(config.getoption(name) is not None for name in ("cpu_limit", "durations", "xmlpath"))
    if hasattr(config, "workerinput") and not wants_times:
        config.pluginmanager.register(BriefReports())
    config.stash[_earlier_runs] = _runs_in_the_checkout(config)
    # A shell ignores it in what it starts in the background, and what tests start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Nearly all that is made for thousands of tests stays until the end: to look through it again and again for what
    can go takes a quarter of the time.

    Afterwards it belongs to the oldest generation, but is not frozen: each run counts what is frozen, one by one.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.unfreeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """What pytest has just found to be in use is not looked through once more."""
    gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if item.config.option.cpu_limit is not None:
        item.stash[_begun] = _cpu_seconds()
    import_path = sys.path[:]
    try:
        with nullcontext() if item.get_closest_marker("cold") is None else warm.starting_cold():
            return (yield)
    finally:
        # Suites that are run without a session leave their folders there, where a later test would find their modules.
        sys.path[:] = import_path
        gc.unfreeze()  # commands freeze what there is, and each run in this process would count it, object by object


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    if call.when == "teardown" and _begun in item.stash and item.get_closest_marker("slow") is None:
        item.user_properties.append((CPU_SECONDS, _cpu_seconds() - item.stash[_begun]))
    return (yield)


def _cpu_seconds() -> float:
    """Of this process and of its children that ended."""
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    forked = warm.parent().cpu_seconds if warm.parent.cache_info().currsize else 0
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime + forked


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """One worker runs the tests of each row of `TOGETHER`, and those that need the one server of PostgreSQL."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if "postgres" in nodeid.lower() or "database" in nodeid:
                return "PostgreSQL"
            # A module by one worker: another one would make its fixtures again, and be told of each test by itself.
            module = nodeid.partition("::")[0]
            return next((name for name, files in TOGETHER.items() if nodeid.startswith(files)), module)

        def _pending_of(self, workload: dict[str, dict[str, bool]]) -> int:
            # It is asked after each test, and finished ones left in it make the controller's work quadratic.
            for scope in [scope for scope, done in workload.items() if all(done.values())]:
                del workload[scope]
            return super()._pending_of(workload)

    return Scheduling(config, log)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    if items:
        stash = items[0].config.stash
        slow = sum(item.get_closest_marker("slow") is not None for item in items)
        stash[_left_out] = stash.get(_left_out, 0) + slow


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[LEFT_OUT] = session.config.stash.get(_left_out, 0)
    elif _over_the_limit(session.config) or _left_runs(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A worker of xdist has ended: all of them leave out the same."""
    node.config.stash[_left_out] = getattr(node, "workeroutput", {}).get(LEFT_OUT, 0)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for seconds, name in _over_the_limit(config):
        terminalreporter.write_line(f"{seconds:.1f} CPU seconds (limit {config.option.cpu_limit:g}): {name}", red=True)
    for name in _left_runs(config):
        terminalreporter.write_line(f"a test left runs/{name} in the checkout: it must write to tmp_path", red=True)
    if slow := config.stash.get(_left_out, 0):
        terminalreporter.write_line(f"{slow} slow tests left out: make test-all")


def _runs_in_the_checkout(config: pytest.Config) -> set[str]:
    """There go the runs of a test that names no folder and stays in that of the checkout."""
    folder = config.rootpath / "runs"
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def _left_runs(config: pytest.Config) -> list[str]:
    return sorted(_runs_in_the_checkout(config) - config.stash[_earlier_runs])


def _over_the_limit(config: pytest.Config) -> list[tuple[float, str]]:
    limit = config.option.cpu_limit
    if limit is None:
        return []
    stats = config.pluginmanager.get_plugin("terminalreporter").stats
    reports = [report for group in stats.values() for report in group if isinstance(report, pytest.TestReport)]
    used = [(dict(report.user_properties).get(CPU_SECONDS, 0.0), report.nodeid) for report in reports]
    return sorted({pair for pair in used if pair[0] > limit}, reverse=True)
