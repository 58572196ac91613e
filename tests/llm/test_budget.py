"""Money that is set aside before a call, and what a call has cost in the end."""

import asyncio
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.errors import EvaluatorError, TargetError, UnsentCall
from evalwright.llm.budget import Spending
from evalwright.llm.choices import ModelChoices
from evalwright.llm.failures import CallFailed
from evalwright.llm.funds import Funds
from evalwright.llm.models import LiveModels
from evalwright.llm.prices import most_dollars
from evalwright.llm.token_estimates import MostTokens, most_of
from evalwright.model.chat import ChatMessage, ChatRequest, Usage
from evalwright.model.plan import Price
from llm.models import JSON, Impatient
from targets.loopback import PATIENCE, Server, listening, reply

TEN = MostTokens(1, 9, 9)
"""One token in and nine out: 10 dollars at a dollar each."""


def spending(cap):
    return Spending({"m": Price(1e6, 1e6)}, Funds(cap))


def spent(main):
    return asyncio.run(asyncio.wait_for(main, PATIENCE))


def test_calls_wait_for_those_under_way_and_are_refused_only_where_it_would_not_suffice_alone():
    async def main():
        money = spending(21.0)
        first, second = [await money.reserve("m", TEN) for _ in range(2)]
        third = asyncio.ensure_future(money.reserve("m", TEN))
        with pytest.raises(CallFailed, match="would exceed") as raised:
            await money.reserve("m", MostTokens(22))
        assert (raised.value.kind, third.done()) == ("cost_limit", False)
        money.settle(first, 1.0)
        money.settle(await third, None)  # nobody knows what it cost: all of it counts
        with pytest.raises(CallFailed, match=r"\$11\.00 spent of \$21\.00; a call of up to \$11\.00"):
            await money.reserve("m", MostTokens(2, 9, 9))
        money.settle(second, 0.0)
        assert (await money.reserve("m", TEN), money.spent)[1] == 11.0

    spent(main())


def test_a_default_limit_is_lowered_to_what_is_left_once_nothing_is_under_way():
    async def main():
        money = spending(30.0)
        first = await money.reserve("m", MostTokens(1, 19, 4))
        second = asyncio.ensure_future(money.reserve("m", MostTokens(1, 19, 4)))
        third = asyncio.ensure_future(money.reserve("m", MostTokens(1, 19, 4)))
        await asyncio.sleep(0)
        assert not second.done()
        money.settle(first, 15.0)
        fare = await second
        assert (first.token_output, fare.token_output) == (19, 14)
        money.settle(fare, 11.0)
        with pytest.raises(CallFailed, match="1 tokens in, 4 out"):
            await third

    spent(main())


def test_calls_that_wait_when_the_run_ends_are_not_made_and_those_under_way_are():
    async def main():
        ends = []
        counts = []
        money = Spending({"m": Price(1e6, 1e6)}, Funds(30.0), ends=lambda: bool(ends), waiting=counts.append)
        first, second = [await money.reserve("m", TEN) for _ in range(2)]
        waiting = [asyncio.ensure_future(money.reserve("m", MostTokens(1, 19, 19))) for _ in range(3)]
        await asyncio.sleep(0)
        assert (counts[-1], any(call.done() for call in waiting)) == (3, False)
        ends.append(True)
        fits = await money.reserve("m", TEN)  # of a cell that runs: it need not wait
        with pytest.raises(UnsentCall):
            await money.reserve("m", TEN)
        for fare in (first, second, fits):
            money.settle(fare, 1.0)
        assert [type(one) for one in await asyncio.gather(*waiting, return_exceptions=True)] == [UnsentCall] * 3
        assert (money.spent, counts[-1]) == (3.0, 0)

    spent(main())


def test_calls_that_wait_for_lack_of_a_reply_limit_are_reported_once():
    async def main(most):
        told = []
        money = Spending({"m": Price(1e6, 1e6)}, Funds(30.0), warn=told.append)
        first = await money.reserve("m", most)
        others = [asyncio.ensure_future(money.reserve("m", most)) for _ in range(4)]
        await asyncio.sleep(0)
        for fare in [first, *others]:
            money.settle(await fare if fare in others else fare, 1.0)
        return told

    (told,) = spent(main(MostTokens(1, 19, 4)))
    assert told.startswith("budget: 3 calls waited for 1 under way, as one of 'm' may cost $20.00: a smaller `max_t")
    assert spent(main(MostTokens(1, 19, 19))) == []


def test_a_cancelled_wait_takes_nothing_and_holds_nobody_up():
    async def main():
        money = spending(10.0)
        first = await money.reserve("m", MostTokens(6))
        large, small = [asyncio.ensure_future(money.reserve("m", MostTokens(n))) for n in (9, 4)]
        await asyncio.sleep(0)
        large.cancel()
        assert (await small).pico == 4 * 10**12
        late = asyncio.ensure_future(money.reserve("m", MostTokens(6)))
        await asyncio.sleep(0)
        money.settle(first, 0.0)
        late.cancel()  # in the turn of the loop in which it was given what it needs
        await asyncio.gather(late, large, return_exceptions=True)
        assert (await money.reserve("m", MostTokens(6))).pico == 6 * 10**12

    spent(main())


@pytest.mark.parametrize(
    ("failure", "billed"),
    [
        *((CallFailed(kind, "no"), False) for kind in ("rate_limited", "authentication", "bad_request", "http_5xx")),
        *((CallFailed(kind, "late"), True) for kind in ("timeout", "connection", "bad_reply")),
        (KeyboardInterrupt(), True),
    ],
)
def test_a_failed_call_costs_nothing_only_where_that_is_certain(failure, billed):
    async def main():
        money = spending(10.0)
        money.release(await money.reserve("m", TEN), failure)
        assert money.spent == (10.0 if billed else 0.0)

    spent(main())


def test_all_that_is_sent_and_may_come_back_is_counted():
    request = ChatRequest("m", [ChatMessage("user", "é" * 50)], system="s" * 7)
    plain = most_of(request, 20)
    assert plain.token_input >= 107
    for more in ({"tools": [{"name": "t" * 500}]}, {"schema": {"title": "t" * 500}}, {"extra": {"user": "t" * 500}}):
        assert most_of(msgspec.structs.replace(request, **more), 20).token_input >= plain.token_input + 500
    choices = msgspec.structs.replace(request, extra={"n": 3, "max_completion_tokens": 40})
    assert most_of(choices, None)[1:] == (40, 40, 3)
    assert most_of(request, None)[1:] == (16384, 128, 1)
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 2000}}
    assert most_of(msgspec.structs.replace(request, extra=thinking), None)[1:] == (18384, 2128, 1)
    assert most_dollars(Price(1.0, 10.0, 0.0, 0.1, 1.25), 800_000, 100_000) == 2.0


def test_the_tokens_around_messages_images_and_what_tools_add_are_counted():
    def tokens(*contents, **fields):
        return most_of(
            ChatRequest("m", [ChatMessage("user", content) for content in contents], **fields), 20
        ).token_input

    assert [tokens(""), tokens("", ""), tokens("ab", "c")] == [32, 48, 51]
    assert tokens([{"type": "image_url", "image_url": {"url": "x" * 9000}}] * 2) == 32 + 2 * 1600
    assert tokens("", schema={"a": 1}) == 32 + 600 + len('[{"a":1}]')
    assert tokens("", extra={"a": 1}) == 32 + len('[{"a":1}]')


def test_a_call_that_reached_nobody_costs_nothing():
    async def main():
        listener = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        here = {"OPENAI_BASE_URL": f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"}
        listener.close()
        await listener.wait_closed()
        models = LiveModels(PRICES, ModelChoices(budget_usd=0.05), here, Impatient())
        request = ChatRequest("cheap", [ChatMessage("user", "x" * 100)], max_tokens=50)
        replies = await asyncio.gather(*(models.chat(request) for _ in range(4)), return_exceptions=True)
        await models.close()
        return {one.type for one in replies}

    assert spent(main()) == {"connection"}


class Counting(Server):
    """Bills each byte of a question, or a part of it, and writes as much as the question says and its limit allows."""

    def __init__(self):
        super().__init__()
        self.billed = 0.0

    async def _one(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        asked = json.loads(await reader.readexactly(int(head.partition("content-length: ")[2].split("\r\n")[0])))
        wish = json.loads(asked["messages"][-1]["content"].partition("|")[0])
        if wish["fails"]:
            writer.write(reply({"error": {"message": "no"}}, wish["fails"], headers=JSON))
            return True
        for _ in range(wish["turns"]):
            await asyncio.sleep(0)
        limit = asked.get("max_tokens") or asked.get("max_completion_tokens")
        words = min(wish["words"], limit) * asked.get("n", 1)
        sent = sum(len(message["content"].encode()) for message in asked["messages"]) // wish["bytes_a_token"]
        price = PRICES[asked["model"]]
        self.billed += (sent * price.input_per_million_tokens + words * price.output_per_million_tokens) / 1e6
        said = {"role": "assistant", "content": "yes"}
        ended = "stop" if wish["words"] < limit else "length"
        body = {"id": "1", "object": "chat.completion", "created": 0, "model": asked["model"]}
        body |= {"choices": [{"index": 0, "finish_reason": ended, "message": said}]}
        body |= {"usage": {"prompt_tokens": sent, "completion_tokens": words, "total_tokens": sent + words}}
        writer.write(reply(body, headers=JSON))
        await writer.drain()
        return True


PRICES = {"cheap": Price(100.0, 400.0), "dear": Price(1000.0, 8000.0), "gpt-5-x": Price(10.0, 80.0)}
CALLS = st.fixed_dictionaries(
    {
        "model": st.sampled_from(sorted(PRICES)),
        "purpose": st.sampled_from(["judge", "system", "user"]),
        "limit": st.sampled_from([None, "default", 20, 400]),
        "choices": st.sampled_from([1, 1, 3]),
        "size": st.integers(0, 2000),
        "words": st.integers(1, 20_000),
        "bytes_a_token": st.integers(1, 5),
        "turns": st.integers(0, 5),
        "fails": st.sampled_from([0, 0, 0, 0, 503, 400]),
        "cancelled": st.sampled_from([False, False, False, True]),
    }
)


def request_of(call, number):
    told = {key: call[key] for key in ("words", "bytes_a_token", "turns", "fails")}
    content = f"{json.dumps(told)}|{number}|{'x' * call['size']}"
    limited = {"max_tokens": 1024, "default_limit": True} if call["limit"] == "default" else {}
    limited = {"max_tokens": call["limit"]} if isinstance(call["limit"], int) else limited
    extra = {"n": call["choices"]} if call["choices"] > 1 else {}
    return ChatRequest(call["model"], [ChatMessage("user", content)], extra=extra, **limited)


@given(st.lists(CALLS, min_size=1, max_size=12), st.floats(0.01, 3.0))
def test_a_budget_is_never_passed_and_refuses_only_what_would_not_fit_alone(calls, cap):
    async def main():
        async with listening(Counting()) as server:
            here = {"OPENAI_BASE_URL": f"http://127.0.0.1:{server.port}/v1"}
            told = []
            models = LiveModels(PRICES, ModelChoices(budget_usd=cap, warn=told.append), here, Impatient())
            requests = [request_of(call, n) for n, call in enumerate(calls)]
            tasks = [
                asyncio.ensure_future(models.chat(one, call["purpose"]))
                for one, call in zip(requests, calls, strict=True)
            ]
            await asyncio.sleep(0)
            for task, call in zip(tasks, calls, strict=True):
                if call["cancelled"]:
                    task.cancel()
            replies = await asyncio.gather(*tasks, return_exceptions=True)
            await models.close()
            return server.billed, requests, replies, told

    billed, requests, said, told = spent(main())
    assert billed <= cap + 1e-9
    assert not [line for line in told if "may be exceeded" in line]
    cancelled = any(call["cancelled"] for call in calls)  # which may be billed in full, and not be sent at all
    for request, outcome in zip(requests, said, strict=True):
        if isinstance(outcome, EvaluatorError | TargetError) and "would exceed" in str(outcome) and not cancelled:
            price = PRICES[request.model]
            least = min(128, request.max_tokens or 128) if request.default_limit is True else request.max_tokens or 128
            most = (len(request.messages[0].content) + 32 + 7) * price.input_per_million_tokens
            assert (
                billed + (most + request.extra.get("n", 1) * least * price.output_per_million_tokens) / 1e6 > cap - 1e-9
            )


def test_what_was_spent_before_is_missing():
    async def main():
        money = Spending({"m": Price(1e6, 1e6)}, Funds(21.0, 12.0))
        with pytest.raises(CallFailed, match=r"\$12\.00 spent of \$21\.00"):
            await money.reserve("m", TEN)
        assert money.spent == 12.0

    spent(main())


def test_a_share_of_the_price_sets_aside_a_share_of_the_money():
    async def main():
        money = spending(10.0)
        fares = [await money.reserve("m", TEN, 0.5) for _ in range(2)]
        assert sum(fare.pico for fare in fares) == 10 * 10**12

    spent(main())


def test_calls_of_a_model_that_counts_more_input_than_expected_set_aside_more_from_then_on():
    async def main():
        money = spending(48.0)
        money.settle(await money.reserve("m", TEN), 10.0, Usage(token_input=10, token_output=0))
        for _ in range(2):  # 19 dollars each: ten times the input
            await money.reserve("m", TEN)
        third = asyncio.ensure_future(money.reserve("m", TEN))
        await asyncio.sleep(0)
        assert not third.done()
        third.cancel()

    spent(main())


def test_an_attempt_that_may_be_billed_is_spent_before_the_next_one_which_keeps_its_limit():
    async def main():
        funds = Funds(30.0)
        money, lost = Spending({"m": Price(1e6, 1e6)}, funds), CallFailed("timeout", "no answer")
        fare = await money.again(await money.reserve("m", TEN), lost)
        assert (money.spent, funds.spent, fare.pico) == (10.0, 10.0, 10 * 10**12)
        money.release(fare, CallFailed("rate_limited", "no"))
        long = await money.reserve("m", MostTokens(1, 14, 4))
        with pytest.raises(CallFailed, match=r"would exceed it, after no answer") as raised:
            await money.again(long, lost)
        assert (raised.value.kind, money.spent) == ("cost_limit", 25.0)

    spent(main())
