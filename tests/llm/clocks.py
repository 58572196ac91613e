"""A clock for the tests of waiting."""

import asyncio


class Timeless(asyncio.SelectorEventLoop):
    """A loop whose clock jumps to whatever is waited for."""

    def __init__(self):
        super().__init__()
        self.now = 0.0
        select = self._selector.select

        def jump(seconds):
            self.now += seconds or 0.0
            return select(0)

        self._selector.select = jump

    def time(self):
        return self.now
