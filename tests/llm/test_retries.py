"""How often and when a call is made again, and how many are made at a time."""

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace

import pytest

from evalwright.llm.failures import CallFailed, failure_of, retry_after
from evalwright.llm.retries import Gate, Pace, Rules, retried
from evalwright.model.chat import ChatRequest, Waits
from llm.clocks import Timeless


class Service:
    """Fails with one failure, each time after so many seconds; notes when it was called."""

    def __init__(self, failure, seconds=0.0):
        self.failure, self.seconds, self.called = failure, seconds, []
        self.inside = self.most = 0

    async def __call__(self):
        self.called.append(asyncio.get_running_loop().time())
        self.inside += 1
        self.most = max(self.most, self.inside)
        await asyncio.sleep(self.seconds)
        self.inside -= 1
        raise self.failure


def busy(**told):
    return CallFailed("rate_limited", "HTTP 429: busy", retryable=True, **told)


def calls(service, width=1, rules=None):
    """The moments of all calls of a service that is asked `width` times at once."""

    async def ask():
        gate = Gate(width)
        asking = [retried(service, gate, Pace(None), rules or Rules()) for _ in range(width)]
        return await asyncio.gather(*asking, return_exceptions=True)

    with asyncio.Runner(loop_factory=Timeless) as runner:
        assert {type(one) for one in runner.run(ask())} == {CallFailed}
    return service.called


def test_a_call_is_made_five_times_by_default():
    assert len(calls(Service(CallFailed("http_5xx", "HTTP 500", retryable=True)))) == 5


def test_a_call_that_no_retry_can_help_is_made_once():
    assert len(calls(Service(CallFailed("authentication", "HTTP 401")))) == 1


def test_a_call_takes_ten_minutes_at_most_however_many_attempts_are_left():
    rules = Rules()
    rules.attempts = 100
    assert calls(Service(busy(retry_after=60.0), seconds=100), rules=rules) == [0, 160, 320, 480]
    rules.call_seconds = 320  # an attempt may still begin at the last moment
    assert calls(Service(busy(retry_after=60.0), seconds=100), rules=rules) == [0, 160, 320]


def test_waits_are_drawn_from_a_range_that_grows_up_to_a_bound():
    rules, failure = Rules(), CallFailed("http_5xx", "HTTP 500", retryable=True)
    for attempt, most in ((1, 0.8), (2, 1.6), (3, 3.2), (9, 20.0), (5_000, 20.0)):
        waits = [rules.wait(failure, attempt) for _ in range(300)]
        assert 0 <= min(waits) < most / 2 < max(waits) <= most


def test_a_request_brings_limits_of_its_own():
    waits = Waits(first_seconds=1.0, longest_seconds=2.0, factor=3.0, statuses=[500])
    own = ChatRequest("m", [], attempts=2, attempt_seconds=3.0, waits=waits)
    rules = Rules().of(own)
    assert (rules.attempts, rules.attempt_seconds, rules.call_seconds) == (2, 3.0, 10.0)
    assert (rules.first_wait, rules.longest_wait, rules.wait_factor, rules.statuses) == (1.0, 2.0, 3.0, [500])


@pytest.mark.parametrize(
    ("own", "limits"),
    [
        ({}, (5, 120.0, 0.8, 600.0)),
        ({"attempts": 2}, (2, 120.0, 0.8, 280.0)),
        ({"attempt_seconds": 30.0}, (5, 30.0, 0.8, 250.0)),
        ({"waits": Waits(first_seconds=1.0)}, (5, 120.0, 1.0, 700.0)),
    ],
)
def test_limits_that_a_request_does_not_bring_stay(own, limits):
    rules = Rules().of(ChatRequest("m", [], **own))
    assert (rules.attempts, rules.attempt_seconds, rules.first_wait, rules.call_seconds) == limits


@pytest.mark.parametrize(
    ("status", "retryable", "tries"), [(404, False, 5), (503, True, 1), (None, True, 5), (None, False, 1)]
)
def test_listed_statuses_alone_are_retried_and_what_has_none_as_usual(status, retryable, tries):
    rules = Rules()
    rules.statuses = [404]
    failure = CallFailed("bad_reply", "no", retryable=retryable)
    failure.status = status
    assert len(calls(Service(failure), rules=rules)) == tries


@pytest.mark.parametrize("asked", [31_536_000.0, 99_999_999_999.0, float("inf")])
def test_a_server_is_obeyed_for_a_minute_at_most(asked):
    assert calls(Service(busy(retry_after=asked))) == [0, 60, 120, 180, 240]


def test_a_server_that_asks_for_less_is_obeyed_to_the_second():
    assert calls(Service(busy(retry_after=7.0))) == [0, 7, 14, 21, 28]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("3", 3), ("-1", 0), ("31536000", 31_536_000), ("soon", None), ("", None), ("Wed, 99 Foo 2020", None)],
)
def test_what_servers_write_into_retry_after(header, seconds):
    assert retry_after({"retry-after": header}) == seconds


def test_a_date_in_retry_after_is_the_time_until_then():
    then = datetime.now(UTC) + timedelta(seconds=90)
    assert 80 < retry_after({"retry-after": format_datetime(then, usegmt=True)}) <= 90
    assert retry_after({"retry-after": format_datetime(then - timedelta(days=1), usegmt=True)}) == 0


def test_after_a_429_half_as_many_calls_are_made_at_a_time():
    rules = Rules()
    rules.attempts = 2
    service = Service(busy(retry_after=10.0), seconds=1)
    made = calls(service, width=8, rules=rules)
    assert (made[:8], service.most) == ([0] * 8, 8)
    assert made.count(11) == 4


def test_after_other_failures_as_many_calls_are_made_as_before():
    rules = Rules()
    rules.attempts = 2
    failure = CallFailed("http_5xx", "HTTP 503", retryable=True, retry_after=10.0)
    assert calls(Service(failure, seconds=1), width=8, rules=rules).count(11) == 8


async def width(gate):
    """How many get in."""
    inside = 0
    while inside < 100:
        try:
            async with asyncio.timeout(0.01):
                await gate.__aenter__()
        except TimeoutError:
            break
        inside += 1
    for _ in range(inside):
        await gate.__aexit__(None, None, None)
    return inside


def test_refusals_of_one_wave_narrow_once():
    async def narrowed():
        gate = Gate(16)
        waves = [await gate.__aenter__() for _ in range(16)]
        for wave in waves:
            await gate.__aexit__(None, None, None)
            gate.narrow(wave)
        return await width(gate)

    assert asyncio.run(narrowed()) == 8


def test_each_reply_widens_a_little_again_up_to_the_configured_limit():
    async def answer():
        return "yes"

    async def widened(replies):
        gate = Gate(16)
        async with gate as wave:
            pass
        gate.narrow(wave)
        for _ in range(replies):
            await retried(answer, gate, Pace(None), Rules())
        return await width(gate)

    assert [asyncio.run(widened(replies)) for replies in (0, 7, 9, 300)] == [8, 8, 9, 16]


def test_each_later_wave_narrows_again_but_never_to_nothing():
    async def narrowed():
        gate = Gate(16)
        for _ in range(10):
            async with gate as wave:
                pass
            gate.narrow(wave)
        return await width(gate)

    assert asyncio.run(narrowed()) == 1


def test_successes_widen_up_to_the_first_width():
    async def widened():
        gate = Gate(8)
        async with gate as wave:
            pass
        gate.narrow(wave)
        for _ in range(200):
            gate.widen()
        return await width(gate)

    assert asyncio.run(widened()) == 8


@pytest.mark.parametrize(("waits", "unaware", "left"), [("b", "", "acd"), ("", "a", "bcd"), ("b", "a", "cd")])
def test_places_go_to_who_has_waited_longest_and_none_is_lost_or_won_when_waiting_ends(waits, unaware, left):
    async def main():
        gate, came = Gate(1), []

        async def wait(name):
            async with gate:
                came.append(name)
                await asyncio.sleep(0)

        await gate.__aenter__()
        waiting = {name: asyncio.create_task(wait(name)) for name in "abcd"}
        await asyncio.sleep(0)
        for name in waits:
            waiting[name].cancel()
        await gate.__aexit__()
        for name in unaware:
            waiting[name].cancel()  # it has been given the place
        await asyncio.wait(waiting.values(), timeout=5)  # who finds no place would wait for ever
        return "".join(came), await width(gate)

    assert asyncio.run(main()) == (left, 1)


def test_openai_states_the_time_to_the_millisecond_and_a_used_up_limit_states_one_too():
    assert retry_after({"retry-after-ms": "1250", "retry-after": "2"}) == 1.25
    assert retry_after({"retry-after-ms": "soon", "retry-after": "2"}) == 2
    used_up = {"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "0"}
    refusal = Refusal({**used_up, "x-ratelimit-reset-requests": "6s"})
    assert failure_of(refusal).retry_after == 6
    assert failure_of(Refusal({**refusal.response.headers, "retry-after": "3"})).retry_after == 3


class APITimeoutError(Exception):
    """As that of the clients: a client that is passed may have a limit of its own."""


def test_a_call_that_took_too_long_for_its_client_is_made_again():
    failure = failure_of(APITimeoutError("Request timed out."))
    assert (failure.kind, failure.retryable) == ("timeout", True)


class Refusal(Exception):
    """As the official clients raise it."""

    status_code = 429

    def __init__(self, headers):
        super().__init__("busy")
        self.response = SimpleNamespace(headers=headers)


@pytest.mark.parametrize(("per_minute", "moments"), [(30, [0, 2, 4, 6]), (None, [0, 0, 0, 0])])
def test_calls_are_spread_evenly_over_a_minute(per_minute, moments):
    async def main():
        pace, found = Pace(per_minute), []

        async def call():
            await pace.turn()
            found.append(asyncio.get_running_loop().time())

        await asyncio.gather(*(call() for _ in range(4)))
        return found

    with asyncio.Runner(loop_factory=Timeless) as runner:
        assert runner.run(main()) == pytest.approx(moments)


def test_each_attempt_takes_its_turn():
    async def main():
        service, gate, pace = Service(CallFailed("bad_request", "no")), Gate(4), Pace(30)
        await asyncio.gather(*(retried(service, gate, pace, Rules()) for _ in range(4)), return_exceptions=True)
        return service.called

    with asyncio.Runner(loop_factory=Timeless) as runner:
        assert runner.run(main()) == pytest.approx([0, 2, 4, 6])


def test_a_pause_between_calls_is_not_caught_up_afterwards():
    async def main():
        pace, moments = Pace(30), []
        for idle in (0, 60, 0, 0):
            await asyncio.sleep(idle)
            await pace.turn()
            moments.append(asyncio.get_running_loop().time())
        return moments

    with asyncio.Runner(loop_factory=Timeless) as runner:
        assert runner.run(main()) == [0, 60, 62, 64]


def test_a_server_that_asks_for_no_wait_is_called_again_at_once():
    assert calls(Service(busy(retry_after=0.0))) == [0] * 5


def test_a_limit_of_nothing_is_a_limit():
    assert Rules().of(ChatRequest("m", [], waits=Waits(first_seconds=0.0))).first_wait == 0


def test_an_attempt_without_an_answer_in_time_is_repeated_and_the_last_failure_tells_how_often():
    rules = Rules()
    rules.attempts, rules.attempt_seconds = 2, 10.0
    service = Service(busy(), seconds=11)

    async def main():
        with pytest.raises(CallFailed, match=r"no answer within 10 seconds \(tried 2 times\)") as raised:
            await retried(service, Gate(1), Pace(None), rules)
        return raised.value

    with asyncio.Runner(loop_factory=Timeless) as runner:
        failure = runner.run(main())
    assert (failure.kind, failure.attempts, len(service.called)) == ("timeout", 2, 2)


def test_the_last_failure_has_the_status_of_the_server():
    failure = CallFailed("bad_request", "no")
    failure.status = 422
    with pytest.raises(CallFailed) as raised:
        asyncio.run(retried(Service(failure), Gate(1), Pace(None), Rules()))
    assert raised.value.status == 422


def test_a_further_attempt_is_announced_and_can_be_rejected():
    announced = []

    async def again(failure):
        announced.append(failure)
        if len(announced) == 2:
            raise CallFailed("cost_limit", "no money")

    async def main():
        with pytest.raises(CallFailed, match="no money"):
            await retried(service, Gate(1), Pace(None), Rules(), again=again)

    service = Service(busy(retry_after=1.0))
    with asyncio.Runner(loop_factory=Timeless) as runner:
        runner.run(main())
    assert (announced, len(service.called)) == ([service.failure] * 2, 2)


def test_a_place_that_a_reply_adds_goes_to_a_waiting_call_at_once():
    async def main():
        gate = Gate(2)
        async with gate as wave:
            pass
        gate.narrow(wave)
        await gate.__aenter__()
        waiting = asyncio.create_task(gate.__aenter__())
        await asyncio.sleep(0)
        gate.widen()
        await asyncio.sleep(0)
        return waiting.done()

    assert asyncio.run(main())
