"""Services with too much to do are called again when they say so; what they refuse is not asked again."""

import asyncio
from contextlib import closing
from datetime import UTC, datetime
from time import monotonic
from typing import ClassVar

import msgspec
import pytest

from evalwright import registry
from evalwright.errors import TargetError
from evalwright.model.plan import Plan, RetryRule, RunSettings, Variant
from evalwright.model.trace import Answer, Output, Trace, TraceError
from evalwright.registry import load
from evalwright.run.addresses import Address, addresses_of, requested_pause
from evalwright.run.merge import merge
from evalwright.run.outcomes import folded_summary
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.resumption import resume
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from run.merging import sharded
from run.services import SAYS_FINE, service
from run.suites import suite


def error(status: int, seconds: float | None = None) -> TraceError:
    kind = "http_5xx" if status >= 500 else "adapter_error"
    found = TraceError(kind, "no", status=status)
    return found if seconds is None else TraceError(kind, "no", status=status, retry_after_seconds=seconds)


@pytest.mark.parametrize(
    ("failure", "seconds"),
    [
        (error(429, 2.5), 2.5),
        (error(503, 99_999_999_999.0), 60.0),
        (error(503, float("inf")), 60.0),
        (error(500, 2.0), None),
        (error(429), None),
        (TraceError("timeout", "late"), None),
    ],
)
def test_a_pause_is_what_the_service_asks_for_up_to_a_minute(failure, seconds):
    assert requested_pause(failure) == seconds


async def most_at_once(address: Address) -> int:
    inside = most = 0

    async def call():
        nonlocal inside, most
        async with address.gate:
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(call() for _ in range(20)))
    return most


def test_after_a_429_half_as_many_call_at_once_and_all_of_them_wait():
    async def main():
        address = Address(8)
        assert await most_at_once(address) == 8
        address.record(error(503, 5.0), 0)
        assert await most_at_once(address) == 8
        assert 4 < address.left() <= 5
        address.record(error(429), 0)
        address.record(error(429), 0)
        assert await most_at_once(address) == 4
        for _ in range(100):
            address.record(None, 1)
        assert await most_at_once(address) == 8

    asyncio.run(main())


def test_systems_of_one_address_share_it():
    def system(name: str, url: str, **limits: int) -> Variant:
        return Variant(name, "http", {"endpoint": url, "provider": "simple"}, **limits)

    variants = [
        system("a", "https://user:secret@one.example/x"),
        system("b", "https://one.example/y?key=secret"),
        system("c", "https://one.example:8443/y"),
        Variant("d", "python_function", {"target": "builtins:print"}),
    ]
    now = datetime.now(UTC)
    plan = Plan("id", "n", "evalh", now, "", "", 1, variants, [], run=RunSettings(max_concurrency=8))
    targets = {v.name: load("targets", v.adapter)(v) for v in variants}
    assert targets["a"].address == "https://one.example"
    addresses = addresses_of(plan, targets, None)
    assert addresses.keys() == {"a", "b", "c"}
    assert addresses["a"] is addresses["b"] is not addresses["c"]
    assert asyncio.run(most_at_once(addresses["a"])) == 8
    variants[1] = msgspec.structs.replace(variants[1], pool="small")
    pooled = msgspec.structs.replace(plan, run=RunSettings(max_concurrency=8, pools={"small": 3}))
    assert asyncio.run(most_at_once(addresses_of(pooled, targets, None)["a"])) == 8 + 3


def ran(folder, url, cases=1, **settings):
    variant = Variant("main", "http", {"endpoint": url, "provider": "simple"})
    outcome = run_suite(suite(folder, [{}] * cases, variants=[variant], evaluators=SAYS_FINE, **settings))
    reader, _ = open_run(outcome.run_dir)
    return outcome, list(reader.traces(Trace))


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_service_is_called_again_after_the_time_that_it_asks_for(tmp_path, status):
    with service([(status, {"Retry-After": "0.3"})]) as (url, times):
        outcome, [trace] = ran(tmp_path, url)
    assert (outcome.exit_code, len(times)) == (0, 2)
    assert times[1] - times[0] >= 0.3
    assert trace.metrics.custom["retries"] == 1
    assert str(status) in trace.extra["retried"][0]["message"]


class Busy:
    """Calls a service that asks the first one of all calls for time."""

    address = "https://busy.example"
    times: ClassVar[list[float]] = []

    def __init__(self, variant):
        pass

    async def run(self, case, trial):
        self.times.append(monotonic())
        if len(self.times) == 1:
            raise TargetError("no", status=429, retry_after=0.3)
        return Answer(Output(final_answer="fine"))


def test_every_cell_waits_while_the_service_asks_for_time(tmp_path, monkeypatch):
    monkeypatch.setitem(registry.KINDS["targets"], "busy", f"{__name__}:Busy")
    Busy.times.clear()
    variants = [Variant("main", "busy", {})]
    made = suite(tmp_path, [{}] * 3, variants=variants, evaluators=SAYS_FINE, max_concurrency=3)
    assert run_suite(made).exit_code == 0
    first, *others = Busy.times
    assert len(others) == 3
    assert min(others) - first >= 0.3


@pytest.mark.parametrize("on", [["adapter_error"], ["*"]])
def test_what_the_service_refuses_is_asked_once_whatever_the_suite_lists(tmp_path, on):
    with service([(401, {"Retry-After": "0"})] * 5) as (url, times):
        outcome, [trace] = ran(tmp_path, url, retry=RetryRule(max_attempts=3, on=on))
    assert (outcome.exit_code, len(times)) == (3, 1)
    assert trace.error.status == 401


@pytest.mark.parametrize("value", ["-5", "Thu, 01 Jan 1970 00:00:00 GMT"])
def test_times_in_the_past_hold_nothing_up(tmp_path, value):
    with service([(503, {"Retry-After": value})] * 9) as (url, times):
        outcome, _ = ran(tmp_path, url)
    assert (outcome.exit_code, len(times)) == (3, 5)


def test_a_busy_service_is_given_up_after_ten_minutes(tmp_path, monkeypatch):
    monkeypatch.setattr("evalwright.run.attempts._LONGEST_CALL", 0.0)
    with service([(503, {"Retry-After": "0.2"})] * 2) as (url, times):
        outcome, _ = ran(tmp_path, url)
    assert (outcome.exit_code, len(times)) == (3, 1)


def test_a_path_that_finds_nothing_in_any_reply_is_a_warning_of_the_run_and_stays_one(tmp_path):
    with service([(200, {})] * 6) as (url, _):
        config = {"endpoint": url, "response_mapping": {"final_answer": "$.output", "tool_calls": "$.toolz"}}
        variants = [Variant("main", "http", config)]
        outcome = run_suite(suite(tmp_path, [{}, {}], variants=variants, evaluators=SAYS_FINE))
        parts = sharded(suite(tmp_path, [{}] * 4, variants=variants, evaluators=SAYS_FINE), 2, tmp_path / "parts")
    warning = "main: response_mapping.tool_calls $.toolz found nothing in any of {} replies"
    assert outcome.summary.warnings == [warning.format(2)]
    reader, plan = open_run(outcome.run_dir)
    with closing(reader):
        assert folded_summary(reader, plan).warnings == [warning.format(2)]  # as reports have it
    merged = merge(parts, tmp_path / "merged")
    assert merged.summary.warnings == [warning.format(4)]
    for run, replies in ((outcome.run_dir, 2), (merged.run_dir, 4)):
        for again in (resume, re_evaluate, re_evaluate, resume):
            assert again(run).summary.warnings == [warning.format(replies)], again
