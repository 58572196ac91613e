"""Judges that are asked in batches: what is handed in, what is noted, what is paid."""

import asyncio
import sqlite3
from itertools import pairwise

import pytest

from evalwright.errors import EvaluatorError
from evalwright.llm import batches
from evalwright.llm.choices import ModelChoices
from evalwright.llm.models import LiveModels
from evalwright.llm.retries import Rules
from evalwright.model.chat import ChatMessage, ChatRequest
from llm.clocks import Timeless
from llm.models import Impatient
from llm.providers import last_text, providing

OPENAI, CLAUDE = "gpt-4o-mini", "claude-haiku-4-5"


class Quick(Impatient):
    batch_idle = 0.15
    first_poll = longest_poll = 0.01


def question(text, model=OPENAI, **fields):
    return ChatRequest(model, [ChatMessage("user", text)], max_tokens=20, **fields)


async def outcomes(server, notes, *requests, key=None, **choices):
    environment = {name: key if key and "KEY" in name else value for name, value in server.environment().items()}
    models = LiveModels(None, ModelChoices(batch=notes, **choices), environment, Quick())
    try:
        return await asyncio.gather(*map(models.chat, requests), return_exceptions=True)
    finally:
        await models.close()


def batched(notes, *requests, answer=last_text, **choices):
    async def main():
        async with providing(answer) as server:
            return await outcomes(server, notes, *requests, **choices), server

    return asyncio.run(main())


def submissions(server):
    return [path for method, path, *_ in server.requests if method == "POST" and path.endswith("/batches")]


@pytest.mark.parametrize("model", [OPENAI, CLAUDE])
def test_questions_that_come_together_are_one_batch_for_half_the_money(tmp_path, model):
    replies, server = batched(tmp_path / "n", *(question(f"q{n}", model) for n in range(20)), question("q0", model))
    assert [reply.text for reply in replies] == [f"q{n}" for n in range(20)] + ["q0"]
    assert len(submissions(server)) == 1
    assert len(next(iter(server.batches.values()))[1]) == 20
    alone = {OPENAI: 100 * 0.15 + 10 * 0.6, CLAUDE: 100 * 1 + 10 * 5}[model] / 1e6
    assert replies[0].cost_usd == pytest.approx(alone / 2)


def test_each_model_and_provider_has_a_batch_of_its_own(tmp_path):
    models = (OPENAI, "gpt-4.1-mini", CLAUDE)
    replies, server = batched(tmp_path / "n", *(question("q", model) for model in models))
    assert [reply.model for reply in replies] == [*models]
    assert len(submissions(server)) == 3


@pytest.mark.parametrize("model", [OPENAI, CLAUDE])
def test_an_error_is_that_of_its_own_question(tmp_path, model):
    odd = question("bad", model, extra={"extra_body": {"colour": "red"}})
    (good, bad), _ = batched(tmp_path / "n", question("good", model), odd)
    assert good.text == "good"
    assert isinstance(bad, EvaluatorError)
    assert (bad.type, "unknown field 'colour'" in str(bad)) == ("bad_request", True)


@pytest.mark.parametrize("model", [OPENAI, CLAUDE])
def test_who_was_killed_finds_the_answers_by_asking_again(tmp_path, model):
    async def main():
        async with providing() as server:
            server.polls_until_done = 10**9
            first = asyncio.ensure_future(
                outcomes(server, tmp_path / "n", question("q1", model), question("q2", model))
            )
            while not submissions(server) or not any("batches/" in path for _, path, *_ in server.requests):
                await asyncio.sleep(0.01)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            server.polls_until_done = 1
            again = await outcomes(server, tmp_path / "n", *(question(f"q{n}", model) for n in (1, 2, 3)))
            kept = await outcomes(server, tmp_path / "n", question("q1", model))
            return again, kept, server

    again, kept, server = asyncio.run(main())
    assert [reply.text for reply in [*again, *kept]] == ["q1", "q2", "q3", "q1"]
    assert [len(lines) for _, lines in server.batches.values()] == [2, 1]


def test_failed_questions_are_sent_again_by_the_next_command(tmp_path):
    async def main():
        async with providing() as server:
            odd = question("q", extra={"extra_body": {"colour": "red"}})
            first = await outcomes(server, tmp_path / "n", odd)
            second = await outcomes(server, tmp_path / "n", odd)
            return first, second, len(submissions(server))

    (first,), (second,), handed_in = asyncio.run(main())
    assert (type(first), type(second), handed_in) == (EvaluatorError, EvaluatorError, 2)


@pytest.mark.parametrize("model", [OPENAI, CLAUDE])
def test_a_batch_that_cannot_be_handed_in_fails_all_its_questions(tmp_path, model):
    replies, server = batched(tmp_path / "n", question("q1", model), question("q2", model), key="sk-wrong")
    assert [(type(one), one.type) for one in replies] == [(EvaluatorError, "authentication")] * 2
    assert server.batches == {}


@pytest.mark.parametrize("ends", ["expired", "canceled"])
@pytest.mark.parametrize("model", [OPENAI, CLAUDE])
def test_questions_that_a_batch_left_out_are_errors_and_sent_again_by_the_next_command(tmp_path, model, ends):
    async def main():
        async with providing() as server:
            server.batches_end = ends
            first = await outcomes(server, tmp_path / "n", question("q1", model), question("q2", model))
            server.batches_end = "completed"
            again = await outcomes(server, tmp_path / "n", question("q1", model), question("q2", model))
            return first, again, server

    (answered, left), again, server = asyncio.run(main())
    assert (answered.text, left.type, "HTTP 504 in a batch" in str(left)) == ("q1", "timeout", True)
    told = {(OPENAI, "expired"): "out of time", (OPENAI, "canceled"): "batch_0 ended without an answer to it"}
    assert told.get((model, ends), f"the question {ends}") in str(left)
    assert [reply.text for reply in again] == ["q1", "q2"]
    assert [len(lines) for _, lines in server.batches.values()] == [2, 1]


def test_a_batch_that_fails_says_why_and_is_looked_at_again_by_the_next_command(tmp_path):
    async def main():
        async with providing() as server:
            server.batches_end = "failed"
            first = await outcomes(server, tmp_path / "n", question("q1"), question("q2"))
            server.batches_end = "completed"
            return first, await outcomes(server, tmp_path / "n", question("q1"), question("q2")), server

    first, again, server = asyncio.run(main())
    assert [(one.type, "batch_0 failed: line 0 is wrong; line 1" in str(one)) for one in first] == [
        ("bad_request", True)
    ] * 2
    assert "line 3" not in str(first[0])
    assert ([reply.text for reply in again], len(server.batches)) == (["q1", "q2"], 1)


def test_a_batch_that_failed_is_looked_at_again_for_whoever_asks_later(tmp_path):
    async def main():
        async with providing() as server:
            server.batches_end = "failed"
            models = LiveModels(None, ModelChoices(batch=tmp_path / "n"), server.environment(), Quick())
            with pytest.raises(EvaluatorError, match="batch_0 failed"):
                await models.chat(question("q"))
            server.batches_end = "completed"
            async with asyncio.timeout(10):
                reply = await models.chat(question("q"))
            await models.close()
            return reply.text, len(server.batches)

    assert asyncio.run(main()) == ("q", 1)


def test_a_batch_that_cannot_be_noted_leaves_no_question_without_an_answer(tmp_path):
    async def main():
        async with providing() as server:
            models = LiveModels(None, ModelChoices(batch=tmp_path / "n"), server.environment(), Quick())
            asking = asyncio.ensure_future(models.chat(question("q")))
            while not (tmp_path / "n").exists():
                await asyncio.sleep(0)
            with sqlite3.connect(tmp_path / "n") as notes:
                notes.execute("DROP TABLE IF EXISTS questions")
            notes.close()
            async with asyncio.timeout(10):
                return (await asyncio.gather(asking, return_exceptions=True))[0]

    assert "no such table" in str(asyncio.run(main()))


def test_a_batch_is_polled_less_and_less_often_up_to_once_a_minute(tmp_path):
    class Service:
        """A provider that takes its time."""

        def __init__(self):
            self.polls = []

        async def submit(self, questions):
            self.keys = [*questions]
            return "batch"

        async def is_done(self, batch):
            self.polls.append(asyncio.get_running_loop().time())
            return len(self.polls) == 9

        async def answers(self, batch):
            for key in self.keys:
                yield batches.BatchAnswer(key, 200, {"said": key})

    service = Service()

    async def main():
        notes = batches.Batches(tmp_path / "n", Rules())
        try:
            return await notes.ask("k", service, {"model": "m"})
        finally:
            await notes.close()

    with asyncio.Runner(loop_factory=Timeless) as runner:
        assert runner.run(main()) == {"said": "k"}
    assert [later - earlier for earlier, later in pairwise(service.polls)] == [2, 4, 8, 16, 32, 60, 60, 60]


@pytest.mark.parametrize("silences", [2, 3])
def test_a_server_too_busy_for_the_state_of_a_batch_is_called_again_some_times(tmp_path, monkeypatch, silences):
    monkeypatch.setattr(batches, "_MOST_SILENCES", 3)

    async def main():
        async with providing() as server:
            server.silent_polls = silences
            return await outcomes(server, tmp_path / "n", question("q")), server

    (found,), server = asyncio.run(main())
    if silences == 2:
        assert (found.text, server.batches["batch_0"][0]) == ("q", 4)  # the last for where its answers are
    else:
        assert (found.type, server.batches["batch_0"][0]) == ("http_5xx", 3)


def test_a_budget_holds_before_a_batch_is_handed_in(tmp_path):
    questions = [question("x" * 400 + str(n)) for n in range(100)]
    replies, server = batched(tmp_path / "n", *questions, budget_usd=0.0005)
    refused = [one for one in replies if isinstance(one, EvaluatorError)]
    assert {one.type for one in refused} == {"cost_limit"}
    sizes = [len(questions) for _, questions in server.batches.values()]
    # what the first questions leave is for others in a batch behind it
    assert 0 < sizes[0] < sum(sizes) == 100 - len(refused) < 100
    assert sum(one.cost_usd for one in replies if one not in refused) <= 0.0005


def test_a_model_without_batches_is_an_error(tmp_path):
    (reply,), _ = batched(tmp_path / "n", question("q", "python:llm.test_functions:gateway"))
    assert "does not support batches" in str(reply)


def test_nobody_else_may_read_the_notes_and_secrets_are_masked(tmp_path):
    replies, _ = batched(tmp_path / "new" / "n", question("s3cret"), mask=lambda text: text.replace("s3cret", "***"))
    assert replies[0].text == "s3cret"
    assert [oct(path.stat().st_mode)[-3:] for path in (tmp_path / "new", tmp_path / "new" / "n")] == ["700", "600"]
    assert b"s3cret" not in (tmp_path / "new" / "n").read_bytes()


def test_more_questions_than_a_batch_may_have_are_several_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "_MOST_QUESTIONS", 2)
    replies, server = batched(tmp_path / "n", *(question(f"q{n}") for n in range(5)))
    assert [reply.text for reply in replies] == [f"q{n}" for n in range(5)]
    assert sorted(len(lines) for _, lines in server.batches.values()) == [1, 2, 2]
