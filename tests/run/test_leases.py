"""Limits that shards share by a ledger: what one leaves the others may use, and all together use no more."""

import asyncio
import json
import time
from contextlib import closing, contextmanager
from time import monotonic

import pytest

from evalwright.cli import main
from evalwright.errors import InputError, StorageError, UnsentCall
from evalwright.llm.choices import ModelChoices
from evalwright.llm.models import LiveModels
from evalwright.model.plan import Price, Shard, Variant
from evalwright.run.cells import RunState
from evalwright.run.leases import take_part
from evalwright.run.leases.sqlite import LEDGER
from evalwright.run.options import RunOptions
from evalwright.run.resumption import resume, retry
from evalwright.run.start import run_suite
from evalwright.testing import a_plan
from llm.models import Impatient, openai, refused, request
from run.leases import KINDS, address, ledger_at
from run.services import SAYS_FINE, service
from run.stored import cut
from run.suites import suite
from targets.loopback import serving

COSTS = [{"cost_usd": 0.0}, {"cost_usd": 0.02}] * 5
"""All that costs anything is in the second of two shards."""


def shard(tmp_path, index, inputs=COSTS, target="agents:metered", watch=None, models=None, lease=True, **settings):
    settings = {"max_concurrency": 1, "cost_limit_usd": 0.1, **settings}
    where = str(tmp_path / "ledger") if lease else None
    options = RunOptions(shard=Shard(index, 2), out=tmp_path / "out", lease=where, models=models)
    return run_suite(suite(tmp_path, inputs, target, **settings), options, watch)


def shared(tmp_path, state=None, shards=1, index=1, **choices):
    """One shard's lease of a run without a limit on its systems."""
    plan = a_plan(shard=Shard(index, shards, leased=True))
    lease = take_part(str(tmp_path / "ledger"), plan, ModelChoices(**choices), state or RunState())
    lease.hold(f"shard {index}")
    return lease


def holdings(tmp_path):
    ledger = ledger_at(tmp_path / "ledger")
    with ledger._transaction() as execute:
        return sorted(row[0] for row in execute("SELECT amount FROM lease_holdings"))


def test_what_one_shard_does_not_spend_another_may(tmp_path, agents):
    first, second = (shard(tmp_path, k) for k in (1, 2))
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert second.summary.variants[0].cells["error"] == 0  # its share would have been for three of its cells
    assert len(agents.calls) == 10
    assert holdings(tmp_path) == [0, 100_000_000]
    described = json.loads((second.run_dir / "shard.json").read_text())
    assert (described["leased"], described["cost_limit_usd"]) == (True, None)


@pytest.mark.parametrize("width", [1, 4])
def test_all_shards_together_spend_no_more_than_the_limit_and_their_last_cells(tmp_path, agents, width):
    for k in (1, 2):
        shard(tmp_path, k, [{"cost_usd": 0.01}] * 40, cost_limit_usd=0.125, max_concurrency=width)
    assert 13 <= len(agents.calls) <= 14
    assert sum(holdings(tmp_path)) == len(agents.calls) * 10_000_000


def test_a_cell_without_money_says_what_there_was(tmp_path):
    shard(tmp_path, 1, [{"cost_usd": 0.05}] * 4)
    outcome = shard(tmp_path, 2, [{"cost_usd": 0.05}] * 4)
    traces = [json.loads(line) for line in (outcome.run_dir / "traces.jsonl").read_text().splitlines()]
    why = "not run: cost limit reached ($0.00 of $0.00 that this shard could get of $0.1000 for all, "
    assert [trace["error"]["message"] for trace in traces] == [f"{why}run.cost_limit_usd)"] * 2


def test_what_is_left_is_said_at_the_start(tmp_path):
    said = []

    @contextmanager
    def watch(state):
        said.extend(state.about)
        yield

    models = ModelChoices(budget_usd=2.0, requests_per_minute=90)
    for k in (2, 1):
        shard(tmp_path, k, watch=watch, models=models, cost_limit_usd=0.3)
    limits = "--budget $2 ($2 left), --requests-per-minute 90, leased from"
    assert said == [
        f"shard {k} of 2: 5 of 10 cases; limits of all shards: run.cost_limit_usd $0.3 (${left} left), {limits} "
        f"{tmp_path / 'ledger' / LEDGER}"
        for k, left in ((2, 0.3), (1, 0.2))
    ]


def test_what_a_dead_shard_held_is_spent_until_its_records_are_read(tmp_path, agents):
    dear = [{"cost_usd": 0.02}] * 10
    folder = shard(tmp_path, 2, dear).run_dir
    (folder / "manifest.json").unlink()
    for name in ("traces", "results", "verdicts"):
        cut(folder / f"{name}.jsonl", 1)
    assert shard(tmp_path, 1, dear).summary.variants[0].cells["error"] == 5
    agents.calls.clear()
    assert resume(folder, lease=str(tmp_path / "ledger")).exit_code == 0
    assert agents.calls == ["c3", "c5", "c7", "c9"]
    assert holdings(tmp_path) == [0, 100_000_000]


def test_a_finished_shard_is_put_right_in_the_ledger_too(tmp_path, agents):
    folder = shard(tmp_path, 2, [{"cost_usd": 0.0}, {"cost_usd": 0.01}] * 3).run_dir
    with ledger_at(tmp_path / "ledger")._transaction() as execute:
        execute("UPDATE lease_holdings SET amount = 100000000")
    agents.calls.clear()
    again = resume(folder, lease=str(tmp_path / "ledger"))
    assert (again.exit_code, agents.calls, holdings(tmp_path)) == (0, [], [30_000_000])
    assert resume(folder).exit_code == 0  # it calls nothing that would need a limit


def test_a_ledger_that_is_gone_ends_the_session_and_the_rest_can_be_resumed(tmp_path, agents, monkeypatch):
    monkeypatch.setattr("evalwright.run.leases.lease.PATIENCE", 0.3)
    file, aside = tmp_path / "ledger" / LEDGER, tmp_path / "aside"

    async def losing(case, variant):
        agents.calls.append(case["id"])
        if len(agents.calls) == 3:
            file.rename(aside)
        return {"final_answer": "done", "metrics": {"cost_usd": 0.02}}

    agents.losing = losing
    outcome = shard(tmp_path, 1, [0] * 40, "agents:losing", cost_limit_usd=1.0)
    assert (outcome.exit_code, outcome.interrupted) == (3, False)
    assert len(agents.calls) < 10
    assert any(f"the ledger {file} of --lease could not be reached for 0.3 seconds" in note for note in outcome.notes)
    assert any("what this shard holds counts as spent until it is resumed" in note for note in outcome.notes)
    aside.rename(file)
    monkeypatch.setattr("evalwright.run.leases.lease.PATIENCE", 30)  # a busy machine may take longer to go on
    assert resume(outcome.run_dir, lease=str(tmp_path / "ledger")).exit_code == 0
    assert len(agents.calls) == 20
    assert holdings(tmp_path) == [400_000_000]


def test_a_shard_keeps_the_kind_of_limits_that_it_was_begun_with(tmp_path):
    folder = shard(tmp_path, 1, [1] * 4, "agents:broken", stop_after_errors=1, max_concurrency=1).run_dir
    for going_on in (resume, retry):
        with pytest.raises(InputError, match=r"has no share of run\.cost_limit_usd: give --lease again"):
            going_on(folder)
    with pytest.raises(InputError, match="has no share of"):
        shard(tmp_path, 1, [1] * 4, "agents:broken", stop_after_errors=1, max_concurrency=1, lease=False)
    alone = shard(tmp_path / "alone", 1, [1] * 4, "agents:broken", stop_after_errors=1, lease=False).run_dir
    with pytest.raises(InputError, match="was begun without it, and has its share of the limits"):
        resume(alone, lease=str(tmp_path / "ledger"))
    whole = run_suite(suite(tmp_path, [1])).run_dir
    with pytest.raises(InputError, match="this run is no shard"):
        resume(whole, lease=str(tmp_path / "ledger"))


def test_shards_with_other_limits_are_refused_before_anything_is_there(tmp_path):
    shard(tmp_path, 1)
    with pytest.raises(InputError, match=r"run\.cost_limit_usd 0\.1, this one 0\.2"):
        shard(tmp_path, 2, cost_limit_usd=0.2)
    assert len(list((tmp_path / "out").glob("[!.]*"))) == 1


def test_a_ledger_that_cannot_be_reached_is_said_before_anything_is_there(tmp_path, monkeypatch):
    monkeypatch.setenv("EVALWRIGHT_POSTGRES_DSN", "postgresql://me:hunter22@127.0.0.1:9/x")
    options = RunOptions(shard=Shard(1, 2), out=tmp_path / "out", lease="postgres:leases")
    with pytest.raises(StorageError, match="the ledger postgres:leases of --lease cannot be reached") as refused:
        run_suite(suite(tmp_path, COSTS), options)
    assert "hunter22" not in str(refused.value)
    assert not list((tmp_path / "out").glob("[!.]*"))


def test_only_shards_have_a_lease(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["run", "eval.yaml", "--lease", "ledger"])
    assert ended.value.code == 2
    assert "--lease  needs --shard K/N" in capsys.readouterr().err


PRICES = {"gpt-test": Price(10.0, 100.0)}


async def judged(leases, url, calls, rules=None):
    """What came of calls that are divided among shards."""
    here = {"OPENAI_BASE_URL": f"{url}/v1"}
    models = [LiveModels(PRICES, ModelChoices(shared=lease), here, rules or Impatient()) for lease in leases]
    asked = [models[n % len(models)].chat(request(f"{n:0100}", max_tokens=10), "system") for n in range(calls)]
    try:
        return await asyncio.gather(*asked, return_exceptions=True)
    finally:
        for model in (*models, *leases):
            await (model.close() if model in models else model.settle())


def test_a_budget_is_for_the_models_of_all_shards(tmp_path):
    """A call costs 0.002, and could cost a little more."""
    leases = [shared(tmp_path, shards=2, index=k, budget_usd=0.05) for k in (1, 2)]

    async def ask():
        async with serving(openai("yes")) as server:
            return await judged(leases, f"http://127.0.0.1:{server.port}", 60), len(server.requests)

    said, calls = asyncio.run(ask())
    assert 20 <= calls <= 25
    assert sum(isinstance(one, Exception) and "would exceed it" in str(one) for one in said) == 60 - calls
    assert sum(holdings(tmp_path)) == calls * 2_000_000


def test_calls_per_minute_are_those_of_all_shards(tmp_path):
    leases = [shared(tmp_path, shards=2, index=k, requests_per_minute=6000) for k in (1, 2)]

    async def ask():
        async with serving(openai("yes")) as server:
            started = asyncio.get_running_loop().time()
            evaluation = await judged(leases, f"http://127.0.0.1:{server.port}", 20)
            return evaluation, asyncio.get_running_loop().time() - started

    said, seconds = asyncio.run(ask())
    assert [one.text for one in said] == ["yes"] * 20
    assert seconds >= 19 * 0.01


def next_moment(tmp_path):
    """When a shard may make the next call: seconds since 1970."""
    with ledger_at(tmp_path / "ledger")._transaction() as execute:
        return execute("SELECT next FROM lease_moments")[0][0] / 1e9


def test_a_call_of_one_shard_puts_the_next_one_of_all_off(tmp_path):
    lease = shared(tmp_path, shards=2, requests_per_minute=0.1)

    async def call():
        await lease.pace.turn()
        await lease.settle()

    asyncio.run(call())
    assert next_moment(tmp_path) - time.time() == pytest.approx(600, abs=60)


def test_moments_are_taken_only_for_calls_that_wait_for_one(tmp_path):
    lease = shared(tmp_path, requests_per_minute=40)

    async def call():
        await lease.pace.turn()
        first = next_moment(tmp_path)
        waiting = [asyncio.create_task(lease.pace.turn()) for _ in range(3)]
        await asyncio.wait(waiting, timeout=0.2)
        for turn in waiting:
            turn.cancel()
        earliest = max(first, time.time())
        await lease.settle()
        return earliest

    earliest = asyncio.run(call())
    assert next_moment(tmp_path) - earliest <= 3.01  # two of them at once


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_of_one_shard_use_its_ledger_one_after_the_other(tmp_path, monkeypatch, kind):
    plan = a_plan(shard=Shard(1, 1, leased=True))
    lease = take_part(address(kind, tmp_path, monkeypatch), plan, ModelChoices(), RunState())
    hour = 3600 * 10**9

    async def take():
        moments = await asyncio.gather(*(lease.do(lease.ledger.moments, lease.run, 1, hour) for _ in range(6)))
        await lease.settle()
        return [round(seconds / 3600) for [seconds] in moments]

    assert asyncio.run(take()) == [0, 1, 2, 3, 4, 5]


class Hurried(asyncio.SelectorEventLoop):
    """A loop whose clock can be put forward."""

    ahead = 0.0

    def time(self):
        return super().time() + self.ahead


def test_a_moment_that_no_call_has_used_in_time_is_used_by_none(tmp_path):
    """A later call in it would come on top of those of other shards."""
    lease = shared(tmp_path, requests_per_minute=6000)

    async def call():
        turns = [asyncio.create_task(lease.pace.turn()) for _ in range(4)]
        await turns[1]  # has taken moments for all that waited
        for turn in turns:
            turn.cancel()
        before = next_moment(tmp_path)
        asyncio.get_running_loop().ahead = 10.0
        await lease.pace.turn()
        await lease.settle()
        return before

    with closing(Hurried()) as loop:
        assert loop.run_until_complete(call()) < next_moment(tmp_path)


def test_a_model_that_asks_one_shard_for_time_is_called_by_none(tmp_path):
    leases = [shared(tmp_path, shards=2, index=k) for k in (1, 2)]
    heard = asyncio.Queue()

    async def ask():
        async with serving(refused(429, headers=("Retry-After: 7",)), openai("yes")) as server:
            url = f"http://127.0.0.1:{server.port}"
            leases[1].shared(f"openai {url}/v1 gpt-test", heard.put_nowait)
            watch = asyncio.create_task(leases[1].watch())
            task = asyncio.create_task(judged(leases[:1], url, 1, Short()))
            seconds = await heard.get()
            watch.cancel()
            await task
            return seconds

    assert 0 < asyncio.run(ask()) <= 7


def test_a_pause_of_another_shard_lasts_at_most_a_minute(tmp_path):
    """The clocks of other machines may be wrong."""
    lease = shared(tmp_path, shards=2)

    async def tell():
        lease.shared("service", lambda _: None)(3600.0)
        await lease.settle()

    asyncio.run(tell())
    heard = []
    shared(tmp_path, shards=2, index=2).shared("service", heard.append)
    assert heard == [pytest.approx(60, abs=15)]


class Short(Impatient):
    attempts = 1
    longest_retry_after = 60.0


def test_a_service_that_asks_one_shard_for_time_is_called_by_none(tmp_path):
    with service([(429, {"Retry-After": "0.2"})]) as (url, times):
        variant = Variant("main", "http", {"endpoint": url, "provider": "simple"})
        settings = {"variants": [variant], "evaluators": SAYS_FINE, "cost_limit_usd": None}
        shard(tmp_path, 1, [{}] * 2, **settings)
        with ledger_at(tmp_path / "ledger")._transaction() as execute:
            until = time.time() + 0.3
            execute("UPDATE lease_pauses SET until = ?", round(until * 1e9))
        shard(tmp_path, 2, [{}] * 2, **settings)
        assert len(times) == 3
        assert time.time() - (monotonic() - times[-1]) >= until - 0.01


@pytest.mark.parametrize("limit", ["budget", "pace"])
def test_calls_that_wait_for_a_ledger_are_not_made_once_the_run_ends(tmp_path, limit):
    state = RunState()
    lease = shared(tmp_path, state, budget_usd=1.0, requests_per_minute=60)
    here = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    models = LiveModels(PRICES, ModelChoices(shared=lease, ends=lambda: state.stopping), here)

    async def ask():
        if limit == "pace":
            await lease.budget.more(0.5, 0.5)
        (tmp_path / "ledger" / LEDGER).unlink()
        state.stopping = True
        with pytest.raises(UnsentCall):
            await models.chat(request(max_tokens=10))
        assert lease.budget.spent == 0

    asyncio.run(ask())


@pytest.mark.parametrize("address", ["", "postgres:", "postgres:runs/2026"])
def test_an_address_that_names_no_ledger_is_refused(tmp_path, address):
    options = RunOptions(shard=Shard(1, 2), out=tmp_path / "out", lease=address)
    with pytest.raises(InputError, match="expected a folder or postgres:SCHEMA, found"):
        run_suite(suite(tmp_path, COSTS), options)
