"""Lets synchronous code wait for graders that call models."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from evalwright.model.chat import Models
from evalwright.session import Session, environment

__all__ = ["settled"]

T = TypeVar("T")


def settled(waiting: Awaitable[T]) -> T:
    """The result of an awaitable that may call models; also works inside a running event loop, which it blocks."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_with_models(waiting))
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, _with_models(waiting)).result()


async def _with_models(waiting: Awaitable[T]) -> T:
    with Session(models=_models) as asking:
        try:
            return await waiting
        finally:
            await asking.aclose()


def _models() -> Models:
    from evalwright.llm.models import LiveModels

    return LiveModels(environment=environment())
