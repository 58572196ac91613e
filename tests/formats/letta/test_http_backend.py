"""A service that answers in place of an agent: its replies are limited, and its errors name it."""

import asyncio

import pytest

from evalwright.errors import TargetError
from evalwright.formats.letta.backends import backend_of
from evalwright.formats.letta.conversation import Context
from evalwright.formats.letta.surface.models import Sample
from evalwright.llm.models import LiveModels
from evalwright.session import Session
from evalwright.targets.threads import Threads
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
