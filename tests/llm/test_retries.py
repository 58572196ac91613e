"""The number of calls at a time, after refusals and after successes."""

import asyncio

from evalwright.llm.retries import Gate


async def width(gate):
    """How many get in."""
    inside = 0
    while True:
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
