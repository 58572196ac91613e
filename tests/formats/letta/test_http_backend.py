"""A service that answers in place of an agent: its replies are limited, and its errors name it."""

import asyncio

import pytest

from evalwright.errors import TargetError
from evalwright.formats.letta.backends import backend_of
from evalwright.formats.letta.conversation import Context
from evalwright.formats.letta.surface.models import Sample
from evalwright.formats.letta.target import LettaAgent
from evalwright.llm.models import LiveModels
from evalwright.model.plan import Variant
from evalwright.session import Session
from evalwright.targets.threads import Threads
from evalwright.testing import a_case
from targets.loopback import chunked, reply, serving


def asked(script, tmp_path):
    async def answer():
        async with serving(script) as server:
            backend = backend_of(f"http://joe:hush@127.0.0.1:{server.port}/ask?key=hush", tmp_path, Threads())
            return await backend.reply("hello", context())

    return asyncio.run(answer())


async def hangs_up(writer):
    writer.close()


def context():
    return Context(Sample(id=0, input="hello"), "m", 0, "agent", {}, {})


def test_the_output_is_the_answer(tmp_path):
    assert asked(reply({"output": "Paris"}), tmp_path) == "Paris"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (reply(b"busy", status=503), "HTTP 503: busy"),
        (reply(b"<html>"), "not valid JSON"),
        (reply({"answer": "Paris"}), "expected a JSON object with 'output' or 'messages'"),
        (chunked(b"x" * 11 * 2**20), "the response has more than 10485760 bytes"),
        (hangs_up, "no answer: "),
    ],
    ids=["status", "no JSON", "another key", "too long", "nothing"],
)
def test_an_error_names_the_address_and_none_of_its_secrets(tmp_path, script, said):
    with pytest.raises(TargetError, match=r"^POST http://127\.0\.0\.1:\d+/ask: ") as raised:
        asked(script, tmp_path)
    assert said in str(raised.value)
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(("counts", "total"), [((5, 7), 12), ((5, None), None), ((None, 7), None)])
def test_tokens_that_one_reply_does_not_count_are_unknown(tmp_path, counts, total):
    def counted(tokens):
        usage = None if tokens is None else {"prompt_tokens": tokens, "completion_tokens": 1}
        message = {"role": "assistant", "content": "Paris"}
        return reply({"model": "m", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})

    async def usage():
        async with serving(*map(counted, counts)) as server:
            backend = backend_of(f"openai:m@http://127.0.0.1:{server.port}/v1", tmp_path, Threads())
            with Session(models=LiveModels) as session:
                asking = context()
                for _ in counts:
                    await backend.reply("hello", asking)
                await session.aclose()
            return asking.usage["token_input"]

    assert asyncio.run(usage()) == total


def used(tmp_path, *usages):
    """The metrics of a conversation in which each reply reports what it used, and the notes about them."""

    async def answer():
        async with serving(*(reply({"output": "Paris", "usage": usage}) for usage in usages)) as server:
            backend = f"http://127.0.0.1:{server.port}"
            agent = LettaAgent(Variant("agent", "letta_agent", {"backend": backend, "folder": str(tmp_path)}))
            with Session() as session:
                given = await agent.run(a_case(input=["hello"] * len(usages)), 0)
                await session.aclose()
            return given

    given = asyncio.run(answer())
    return (given.metrics.token_input, given.metrics.token_output), given.extra.get("replaced")


def test_the_tokens_of_all_replies_are_counted(tmp_path):
    counts, notes = used(tmp_path, {"prompt_tokens": 5, "completion_tokens": 1.0}, {"prompt_tokens": 7})
    assert (counts, notes) == ((12, 1), None)


@pytest.mark.parametrize(("wrong", "shown"), [(2.5, "2.5"), (-1, "-1"), (True, "true"), ("many", "'many'")])
def test_what_is_no_number_of_tokens_is_noted_and_leaves_no_sum(tmp_path, wrong, shown):
    counts, notes = used(tmp_path, {"prompt_tokens": 5, "completion_tokens": 1}, {"completion_tokens": wrong})
    assert counts == (5, None)
    assert notes == [f"usage.completion_tokens: expected a whole number from 0 on, found {shown}; left out"]
