"""Time limits that stand still while a call waits for money."""

import asyncio
import math

import pytest

from evalwright.llm.budget import Spending
from evalwright.llm.funds import Funds
from evalwright.llm.patience import bounded_by
from evalwright.llm.token_estimates import MostTokens
from evalwright.model.plan import Price
from evalwright.run.call import Call


def test_a_limit_stands_still_while_any_call_of_its_block_waits_for_money():
    async def main():
        money = Spending({"m": Price(1e6, 1e6)}, Funds(10.0))
        first = await money.reserve("m", MostTokens(10))
        async with bounded_by(600) as bound:
            until = bound.when()
            waiting = [asyncio.ensure_future(money.reserve("m", MostTokens(5))) for _ in range(3)]
            await asyncio.sleep(0)
            assert bound.when() is None
            money.settle(first, 0.0)
            fares = await asyncio.gather(*waiting[:2])
            assert bound.when() is None
            money.settle(fares[0], 0.0)
            await waiting[2]
            assert bound.when() >= until
            late = asyncio.ensure_future(money.reserve("m", MostTokens(10)))
            await asyncio.sleep(0)
        late.cancel()  # a call that outlives its block
        await asyncio.gather(late, return_exceptions=True)

    asyncio.run(main())


def test_a_call_of_a_system_is_not_late_while_it_waits():
    call = Call(iter(()))
    call.stop()()
    assert call.deadline is None
    call.deadline = 5.0
    start = call.stop()
    assert call.deadline == math.inf
    start()
    assert 5.0 <= call.deadline < math.inf
    assert call.started == pytest.approx(call.deadline - 5.0, abs=1e-6)  # nor is the wait a part of its latency
    start = call.stop()
    call.deadline = None  # it has ended meanwhile
    start()
    assert call.deadline is None
