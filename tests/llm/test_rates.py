"""What providers say about their limits, and how long calls then wait."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from evalwright.llm.choices import ModelChoices
from evalwright.llm.failures import CallFailed
from evalwright.llm.models import LiveModels
from evalwright.llm.rates import Demand, Rates, exhausted_for
from evalwright.llm.retries import Gate, Pace, Rules, retried
from llm.clocks import Timeless
from llm.models import request
from targets.loopback import reply, serving


def stated(name, limit, left, reset):
    return {
        f"x-ratelimit-{what}-{name}": str(value)
        for what, value in zip(("limit", "remaining", "reset"), (limit, left, reset), strict=True)
    }


def begun(*headers, demands, used=None):
    """When each of these calls had its turn, after responses with such headers."""

    async def main():
        rates, moments = Rates(), []
        for header in headers:
            first = await rates.turn(Demand())
            first.adopt(header)
            first.done(Demand())
        if used is not None:
            for _ in range(3):
                (await rates.turn(demands[0])).done(used)

        async def call(demand):
            await rates.turn(demand)
            moments.append(round(asyncio.get_running_loop().time(), 3))

        await asyncio.gather(*map(call, demands))
        return moments

    with asyncio.Runner(loop_factory=Timeless) as runner:
        return runner.run(main())


def test_without_headers_no_call_waits():
    assert begun({}, demands=[Demand(10**6, 10**6)] * 50) == [0] * 50


def test_calls_wait_for_what_is_missing_in_the_order_in_which_they_came():
    # 60 a minute, two left: two go at once, the others each a second later
    assert begun(stated("requests", 60, 2, "58s"), demands=[Demand()] * 5) == [0, 0, 1, 2, 3]


def test_a_limit_fills_as_fast_as_its_reset_says():
    # of 14,400 a day: 30 used, full again in three minutes
    assert begun(stated("requests", 14_400, 14_370, "3m0s"), demands=[Demand()] * 3) == [0, 0, 0]
    assert begun(stated("requests", 600, 0, "1m0s"), demands=[Demand()] * 2) == [0.1, 0.2]
    assert begun(stated("requests", 600, 0, "2m0s"), demands=[Demand()]) == [0.2]
    # with nothing used its reset says nothing: 60 a minute, so that only the last two wait
    assert begun(stated("requests", 60, 60, "1s"), demands=[Demand()] * 62)[-3:] == [0, 1, 2]
    # nobody waits for a part of a day: what is left of it is used up
    assert begun(stated("requests", 14_400, 0, "24h0m0s"), demands=[Demand()]) == [0.25]


def test_tokens_are_taken_before_a_call_and_given_back_after_it():
    limit = stated("tokens", 6000, 1000, "50s")
    assert begun(limit, demands=[Demand(600, 400), Demand(100, 0)]) == [0, 1]
    assert begun(limit, demands=[Demand(600, 400)], used=Demand(100, 0)) == [3]
    assert begun(limit, demands=[Demand(600, 400)], used=Demand(0, 0)) == [0]


def test_anthropic_limits_input_and_output_apart():
    then = (datetime.now(UTC) + timedelta(seconds=60)).isoformat()
    told = {"limit": "6000", "remaining": "0", "reset": then}
    of = {f"anthropic-ratelimit-output-tokens-{what}": value for what, value in told.items()}
    assert begun(of, demands=[Demand(10**6, 0)]) == [0]
    (moment,) = begun(of, demands=[Demand(0, 100)])
    assert moment == pytest.approx(1, abs=0.2)


def test_what_the_calls_under_way_will_use_counts_as_used():
    async def main():
        rates = Rates()
        first, *_ = [await rates.turn(Demand()) for _ in range(4)]
        first.adopt(stated("requests", 60, 3, "57s"))  # the other three are on their way
        await rates.turn(Demand())
        return asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=Timeless) as runner:
        assert runner.run(main()) == pytest.approx(1)


@pytest.mark.parametrize(
    "headers",
    [
        stated("requests", 0, 0, "1s"),
        stated("requests", "many", 0, "1s"),
        stated("requests", -1, 0, "1s"),
        stated("requests", 10, "nan", "1s"),
        stated("requests", 10, 9, "soon"),
        stated("requests", 10, 900, "99999999999999999999s"),
        {"x-ratelimit-remaining-requests": "0"},
    ],
)
def test_headers_that_make_no_sense_hold_nothing_up(headers):
    assert begun(headers, demands=[Demand()] * 2) == [0, 0]


def test_no_header_holds_a_call_up_for_longer_than_ten_minutes():
    assert begun(stated("requests", 1, 0, "30d"), demands=[Demand()]) == [600]


def test_after_a_refusal_all_calls_of_the_model_wait_as_the_server_wants():
    called = []

    async def main():
        rates, gate = Rates(), Gate(8)

        async def call():
            called.append(asyncio.get_running_loop().time())
            if len(called) == 1:
                raise CallFailed("rate_limited", "HTTP 429", retryable=True, retry_after=30.0)

        async def later(seconds):
            await asyncio.sleep(seconds)
            await retried(call, gate, Pace(None), Rules(), rates)

        await asyncio.gather(later(0), later(1), later(31))

    with asyncio.Runner(loop_factory=Timeless) as runner:
        runner.run(main())
    assert called == [0, 30, 30, 31]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        (stated("requests", 60, 0, "6m0s"), 360),
        (stated("requests", 60, 0, "20ms") | stated("tokens", 60, 0, "1.5s"), 1.5),
        (stated("requests", 60, 1, "6m0s"), None),
        (stated("requests", 60, 0, "in 5s"), None),
        (stated("requests", 60, 0, "2020-01-01T00:00:00+00:00"), 0),
        ({}, None),
    ],
)
def test_a_limit_that_is_used_up_says_when_to_call_again(headers, seconds):
    assert exhausted_for(headers) == seconds


def test_the_headers_of_real_responses_are_heard_by_model_and_key():
    body = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "y"}}]}
    told = [f"{name}: {value}" for name, value in stated("requests", 6, 0, "60s").items()]

    async def main():
        async with serving(reply(body, headers=("Content-Type: application/json", *told))) as server:
            models = LiveModels(None, ModelChoices(), {"OPENAI_BASE_URL": f"http://127.0.0.1:{server.port}/v1"})
            try:
                await models.chat(request())
                other = await models.chat(request(model="gpt-other"), "system")
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.05):  # it would wait for ten seconds
                        await models.chat(request(), "system")
                return other, len(server.requests)
            finally:
                await models.close()

    other, requests = asyncio.run(main())
    assert (other.text, requests) == ("y", 2)


def test_a_call_takes_of_the_limits_what_it_used_in_the_end():
    async def main():
        rates = Rates()
        first = await rates.turn(Demand())
        first.adopt(stated("tokens", 6000, 1000, "50s"))
        first.done(Demand())

        async def call():
            return Demand(100, 0)

        for _ in range(3):
            await retried(call, Gate(1), Pace(None), Rules(), rates, Demand(600, 400), lambda reply: reply)
        await rates.turn(Demand(600, 400))
        return asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=Timeless) as runner:
        assert runner.run(main()) == pytest.approx(3)


def moments_of(work):
    """What `work` returns, on a clock that jumps."""
    with asyncio.Runner(loop_factory=Timeless) as runner:
        return runner.run(work)


def test_a_limit_never_holds_more_than_its_size_however_long_nothing_is_called():
    async def main():
        rates = Rates()
        (await rates.turn(Demand())).adopt(stated("requests", 60, 60, "1s"))
        await asyncio.sleep(600)
        for _ in range(61):
            await rates.turn(Demand())
        return asyncio.get_running_loop().time()

    assert moments_of(main()) == pytest.approx(601)


def test_output_does_not_count_for_a_limit_of_input():
    of = {f"anthropic-ratelimit-input-tokens-{what}": value for what, value in (("limit", "6000"), ("remaining", "0"))}
    assert begun(of, demands=[Demand(0, 10**6)]) == [0]


def test_calls_that_are_over_do_not_count_as_under_way():
    async def main():
        rates = Rates()
        first, second = [await rates.turn(Demand()) for _ in range(2)]
        second.done(Demand())
        first.adopt(stated("requests", 60, 1, "59s"))
        await rates.turn(Demand())
        return asyncio.get_running_loop().time()

    assert moments_of(main()) == 0


@pytest.mark.parametrize(("pauses", "moment"), [((30, 60), 70), ((60, 1), 60)], ids=["longer", "shorter"])
def test_calls_wait_until_the_last_pause_is_over(pauses, moment):
    async def main():
        rates, announced = Rates(), []
        rates.on_pause = announced.append

        async def call():
            await rates.turn(Demand())
            return asyncio.get_running_loop().time()

        rates.pause(pauses[0])
        early = asyncio.create_task(call())
        await asyncio.sleep(10)
        rates.pause(pauses[1])
        return await asyncio.gather(early, call()), announced

    assert moments_of(main()) == ([moment, moment], [*pauses])
