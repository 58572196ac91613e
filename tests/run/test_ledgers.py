"""What shards hold of their limits: never more than there is, whoever asks and whoever is gone."""

import sqlite3
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from evalwright.errors import InputError
from evalwright.run.leases.ledger import LedgerUnreachable
from evalwright.run.leases.sqlite import LEDGER, SqliteLedger
from run.leases import KINDS, address, ledger_at

RUN, MONEY = "run", "run.cost_limit_usd"


@pytest.fixture(params=KINDS)
def where(request, tmp_path, monkeypatch):
    return address(request.param, tmp_path, monkeypatch)


@pytest.fixture
def opened():
    """Opens ledgers, each as one more process would."""
    with ExitStack() as stack:
        yield lambda where: stack.enter_context(closing(ledger_at(where)))


@pytest.fixture
def agreed(opened):
    def of(where, most):
        ledger = opened(where)
        ledger.agree(RUN, {MONEY: most})
        return ledger

    return of


def test_shards_that_ask_at_once_hold_no_more_than_there_is(where, opened, agreed):
    agreed(where, 1000)
    held = {}

    def shard(name):
        ledger = opened(where)
        ledger.hold(RUN, MONEY, name, 0)
        for used in range(0, 600, 20):
            held[name] = ledger.take(RUN, MONEY, name, 20, 30, used, 4)[0]
            if held[name] < used + 20:
                break

    threads = [threading.Thread(target=shard, args=(f"shard {k}",)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(held.values()) == 1000


def test_a_shard_gets_what_it_wants_but_leaves_the_others_their_part(where, agreed):
    ledger = agreed(where, 1000)
    for name in ("a", "b"):
        assert ledger.hold(RUN, MONEY, name, 0) == 1000
    assert ledger.take(RUN, MONEY, "a", 1, 100, 0, 4) == (100, False)
    assert ledger.take(RUN, MONEY, "a", 0, 900, 0, 4) == (250, False)  # a quarter of what is not used
    assert ledger.take(RUN, MONEY, "a", 0, 900, 0, 4) == (250, False)
    assert ledger.take(RUN, MONEY, "a", 0, 900, 200, 4) == (400, False)
    assert ledger.take(RUN, MONEY, "b", 500, 500, 0, 4) == (500, False)  # a single call needs that much
    assert ledger.take(RUN, MONEY, "b", 500, 500, 500, 4) == (600, True)
    assert ledger.take(RUN, MONEY, "a", 1, 1, 400, 4) == (400, True)


def test_what_a_shard_returns_is_there_for_the_others_and_what_it_overspent_is_not(where, agreed):
    ledger = agreed(where, 1000)
    ledger.hold(RUN, MONEY, "a", 0)
    ledger.take(RUN, MONEY, "a", 600, 600, 0, 2)
    assert ledger.hold(RUN, MONEY, "b", 0) == 400
    assert ledger.hold(RUN, MONEY, "a", 100) == 900
    assert ledger.take(RUN, MONEY, "b", 0, 10, 300, 2) == (310, False)  # held nothing, and used 300
    assert ledger.hold(RUN, MONEY, "c", 0) == 590


def test_what_was_spent_beyond_the_limit_counts_and_leaves_nothing(where, agreed):
    ledger = agreed(where, 1000)
    for name in ("a", "b"):
        ledger.hold(RUN, MONEY, name, 0)
    ledger.take(RUN, MONEY, "a", 600, 600, 0, 2)
    assert ledger.take(RUN, MONEY, "b", 0, 10, 400, 2) == (400, True)
    assert ledger.take(RUN, MONEY, "b", 0, 10, 450, 2) == (450, True)
    assert ledger.hold(RUN, MONEY, "c", 0) == 0
    assert ledger.hold(RUN, MONEY, "c", 50) == 0


def test_all_shards_of_a_run_have_the_same_limits(where, opened, agreed):
    agreed(where, 1_500_000_000)
    with pytest.raises(InputError, match=r"shards of this run have run\.cost_limit_usd 1\.5, this one 2; .* another"):
        opened(where).agree(RUN, {MONEY: 2_000_000_000})
    with pytest.raises(InputError, match="have --budget none, this one 2"):
        opened(where).agree(RUN, {MONEY: 1_500_000_000, "--budget": 2_000_000_000})
    opened(where).agree("another run", {MONEY: 2_000_000_000})


def test_moments_are_apart_whichever_shard_takes_them(where, opened):
    ledgers = [opened(where) for _ in range(2)]
    first = ledgers[0].moments(RUN, 3, 20_000_000_000)
    second = ledgers[1].moments(RUN, 2, 20_000_000_000)
    assert first == [0.0, 20.0, 40.0]
    assert second[0] == pytest.approx(60, abs=15)
    assert second[1] - second[0] == pytest.approx(20)


def test_a_shard_waits_while_another_one_takes_its_part(where, opened):
    first, second = opened(where), opened(where)
    found = []
    with first._transaction() as execute:
        waiting = threading.Thread(target=lambda: found.extend(second.moments(RUN, 1, 1)))
        waiting.start()
        waiting.join(0.1)
        execute("INSERT INTO lease_moments VALUES (?, ?)", RUN, time.time_ns() + 3600 * 10**9)
    waiting.join()
    assert found == [pytest.approx(3600, abs=60)]


def test_a_pause_is_heard_by_all_and_the_longest_one_counts(where, opened):
    ledgers = [opened(where) for _ in range(2)]
    for place, seconds in (("x", 50), ("y", 100), ("y", 10), ("z", -1)):
        ledgers[0].pause(place, seconds)
    assert ledgers[1].pauses() == {"x": pytest.approx(50, abs=9), "y": pytest.approx(100, abs=9)}


def test_a_ledger_that_was_replaced_lends_nothing_to_those_it_does_not_know(tmp_path, opened, agreed):
    ledger = agreed(tmp_path, 1000)
    ledger.hold(RUN, MONEY, "a", 0)
    (tmp_path / LEDGER).unlink()
    with pytest.raises(LedgerUnreachable, match="unable to open"):
        ledger.take(RUN, MONEY, "a", 1, 1, 0, 1)
    opened(tmp_path)
    with pytest.raises(LedgerUnreachable, match="no longer knows"):
        ledger.take(RUN, MONEY, "a", 1, 1, 0, 1)


@pytest.mark.parametrize(
    ("content", "said"), [(b"eval: {name: x}\n" * 99, "is not a ledger"), (None, "is a database of another program")]
)
def test_a_file_that_is_no_ledger_is_left_alone(tmp_path: Path, content, said):
    file = tmp_path / LEDGER
    if content is None:
        with closing(sqlite3.connect(file)) as other:
            other.execute("CREATE TABLE mine (x)")
    else:
        file.write_bytes(content)
    before = file.read_bytes()
    with pytest.raises(InputError, match=said):
        SqliteLedger(tmp_path).prepare()
    assert file.read_bytes() == before


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is not a folder: --lease expects one"):
        SqliteLedger(tmp_path / "file").prepare()
