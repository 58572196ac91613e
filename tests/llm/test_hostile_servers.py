"""Servers that send what no model would: every call ends, as a failure that has a name."""

import asyncio
import gzip
import json
import ssl

import msgspec
import pytest
import trustme

from evalwright.errors import EvaluatorError
from evalwright.llm.choices import ModelChoices
from evalwright.llm.connections import MOST_BYTES
from evalwright.llm.models import LiveModels
from evalwright.model.chat import EmbeddingRequest
from evalwright.model.plan import Price
from llm.models import JSON, Hasty, Impatient, anthropic, openai, outcomes_of, refused, reply, request
from targets.loopback import Server, listening, serving

PRICED = {"gpt-test": Price(10.0, 100.0)}
SAID = {"role": "assistant", "content": "x"}


class Patient(Impatient):
    attempts = 1


def failed(outcome):
    assert isinstance(outcome, EvaluatorError), outcome
    return outcome.type


def embedded(body, texts=("a", "b"), model="gpt-test", **choices):
    """The vectors of two texts, or the failure, and how often the server was asked."""

    async def ask():
        async with serving(reply(body, headers=JSON)) as server:
            here = f"http://127.0.0.1:{server.port}"
            known = {"OPENAI_BASE_URL": f"{here}/v1", "ANTHROPIC_BASE_URL": here}
            models = LiveModels(PRICED, ModelChoices(**choices), known, Impatient())
            try:
                return (await models.embed(EmbeddingRequest(model, list(texts)))).vectors, len(server.requests)
            except EvaluatorError as error:
                return error.type, len(server.requests)
            finally:
                await models.close()

    return asyncio.run(ask())


@pytest.mark.parametrize("model", ["gpt-test", "claude-test"])
def test_a_server_whose_certificate_is_wrong_is_called_once(model):
    context, connections = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), []
    context.sni_callback = lambda *_: connections.append(1)
    trustme.CA().issue_cert("localhost").configure_cert(context)

    async def ask():
        async with listening(Server(), context) as server:
            here = f"https://localhost:{server.port}"
            known = {"OPENAI_BASE_URL": f"{here}/v1", "ANTHROPIC_BASE_URL": here, "ANTHROPIC_API_KEY": "key"}
            models = LiveModels(None, ModelChoices(no_cache=True), known, Impatient())
            with pytest.raises(
                EvaluatorError, match=r"CERTIFICATE_VERIFY_FAILED\S* certificate verify failed"
            ) as caught:
                await models.chat(request(model=model))
            await models.close()
            return caught.value

    assert "tried" not in str(failure := asyncio.run(ask()))
    assert failure.type == "connection"
    assert len(connections) == 1


def vectors(*found, tokens=2):
    data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in found]
    return {"object": "list", "model": "m", "data": data, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}


@pytest.mark.parametrize(
    "body",
    [
        [1],
        "text",
        {"choices": [{}]},
        {"choices": [None]},
        {"choices": {"a": 1}},
        {"choices": [{"message": None}]},
        {"choices": [{"message": {**SAID, "tool_calls": 5}}]},
        {"choices": [{"message": {**SAID, "tool_calls": [{"id": 1}]}}]},
        {"choices": [{"message": SAID}], "model": 5},
        {"choices": [{"message": {"content": {"a": 1}}}]},
        {"choices": [{"message": {"role": "assistant", "content": None}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"role": "assistant", "content": []}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"content": [{"type": "image_url", "image_url": {"url": "x"}}]}}]},
    ],
    ids=json.dumps,
)
def test_chat_completions_of_another_shape_are_no_reply(body):
    (outcome,), server = outcomes_of([reply(body, headers=JSON)])
    assert (failed(outcome), len(server.requests)) == ("bad_reply", 3)


@pytest.mark.parametrize(
    "body",
    [
        [1],
        {},
        {"content": "x"},
        {"content": [5]},
        {"content": [{"type": "text"}]},
        {"content": [{"type": "text", "text": 5}]},
        {"content": [{"type": "tool_use", "input": {}}]},
        {"content": [], "stop_reason": "end_turn"},
        {"content": [{"type": "thinking", "thinking": "hm", "signature": "s"}], "stop_reason": "end_turn"},
    ],
    ids=json.dumps,
)
def test_messages_of_another_shape_are_no_reply(body):
    (outcome,), server = outcomes_of([reply(body, headers=JSON)], request(model="claude-test"))
    assert (failed(outcome), len(server.requests)) == ("bad_reply", 3)


@pytest.mark.parametrize("model", ["gpt-test", "claude-test"])
@pytest.mark.parametrize("error", [{"message": "no provider is free", "code": 502}, "no provider is free"], ids=type)
def test_an_error_with_status_200_is_quoted(model, error):
    (outcome,), _ = outcomes_of([reply({"error": error}, headers=JSON)], request(model=model), rules=Patient())
    assert failed(outcome) == "bad_reply"
    assert str(outcome).endswith(": no provider is free")


def test_a_model_that_thought_up_to_its_limit_is_not_retried():
    body = {"choices": [{"message": {"role": "assistant", "content": None}, "finish_reason": "length"}]}
    (outcome,), server = outcomes_of([reply(body, headers=JSON)])
    assert (failed(outcome), len(server.requests)) == ("bad_reply", 1)


def test_a_refusal_may_be_a_part_of_the_content():
    body = {"choices": [{"message": {"content": [{"type": "refusal", "refusal": "never"}]}, "finish_reason": "stop"}]}
    (said,), _ = outcomes_of([reply(body, headers=JSON)])
    assert (said.text, said.refusal) == ("", "never")


def test_json_that_is_too_deep_is_no_reply():
    (outcome,), _ = outcomes_of([reply(b"[" * 200_000, headers=JSON)])
    assert failed(outcome) == "bad_reply"


@pytest.mark.parametrize("model", ["gpt-test", "claude-test"])
def test_a_flood_is_cut_off_while_it_arrives(model):
    sent = []

    async def flood(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        for _ in range(8 * MOST_BYTES // 2**20):
            writer.write(b" " * 2**20)
            await writer.drain()
            sent.append(1)

    (outcome,), _ = outcomes_of([flood], request(model=model), rules=Patient())
    assert failed(outcome) == "bad_reply"
    assert len(sent) < 4 * MOST_BYTES // 2**20


@pytest.mark.parametrize("model", ["gpt-test", "claude-test"])
def test_what_is_not_utf_8_is_no_reply_but_may_stand_in_a_refusal(model):
    broken = [
        reply(b'{"\xe9": 1}', headers=JSON),
        reply(b"{} \xc3", headers=("Content-Type: text/plain; charset=latin-1",)),
    ]
    for one in broken:
        (outcome,), server = outcomes_of([one], request(model=model))
        assert (failed(outcome), "not valid UTF-8" in str(outcome), len(server.requests)) == ("bad_reply", True, 3)
    (outcome,), _ = outcomes_of([reply(b"no \xe9", 401, headers=("Content-Type: text/html",))], request(model=model))
    assert failed(outcome) == "authentication"


@pytest.mark.parametrize("model", ["gpt-test", "claude-test"])
def test_compression_that_was_not_requested_is_not_unpacked(model):
    bomb = reply(gzip.compress(b" " * 2**22), headers=(*JSON, "Content-Encoding: gzip"))
    (outcome,), _ = outcomes_of([bomb], request(model=model), rules=Patient())
    assert (failed(outcome), "compressed" in str(outcome)) == ("bad_reply", True)


@pytest.mark.parametrize("model", ["gpt-test", "claude-test"])
def test_a_redirect_is_not_followed(model):
    (outcome,), server = outcomes_of(
        [reply(b"", 307, headers=("Location: /elsewhere",)), openai()], request(model=model)
    )
    assert (failed(outcome), len(server.requests)) == ("bad_request", 1)


def test_a_key_that_a_server_repeats_is_masked():
    environment = {"ODDLY_NAMED": "k3y-of-the-gateway"}
    asked_for = request(api_key_env="ODDLY_NAMED")
    (outcome,), server = outcomes_of([refused(401, "bad: k3y-of-the-gateway")], asked_for, environment=environment)
    assert server.requests[0]["headers"]["authorization"] == "Bearer k3y-of-the-gateway"
    assert "k3y-of-the-gateway" not in str(outcome)


@pytest.mark.parametrize("choice", ["cache", "record"])
def test_halves_of_surrogate_pairs_can_be_kept(tmp_path, choice):
    half = openai("6bytes").replace(b"6bytes", b"\\ud800")
    (said,), _ = outcomes_of([half], **{choice: tmp_path / "file"})
    assert said.text == "\\ud800"


def test_halves_of_surrogate_pairs_can_be_sent():
    (said,), server = outcomes_of([openai("yes")], request("a\ud800b"))
    assert (said.text, json.loads(server.requests[0]["body"])["messages"][0]["content"]) == ("yes", "a\\ud800b")


@pytest.mark.parametrize("tokens", [-5, 10**400, 1.5, "many", True])
def test_numbers_of_tokens_that_cannot_be_are_not_paid_for(tokens):
    body = {"choices": [{"message": SAID, "finish_reason": "stop"}], "usage": {"prompt_tokens": tokens}}
    (said,), _ = outcomes_of([reply(body, headers=JSON)], prices=PRICED)
    assert (said.text, said.usage.token_input, said.cost_usd) == ("x", None, None)


@pytest.mark.parametrize(
    "token",
    [{"logprob": None}, {"logprob": "-0.5"}, {"logprob": float("-inf")}, {"logprob": -(10**400)}, {}, 5],
    ids=lambda token: json.dumps(token)[:30],
)
def test_a_reply_is_read_and_kept_whose_probabilities_cannot_be(tmp_path, token):
    logprobs = {"content": [{"token": "x", "logprob": -0.5}, token]}
    body = {"choices": [{"message": SAID, "finish_reason": "stop", "logprobs": logprobs}]}
    for replayed in ({"record": tmp_path / "calls"}, {"replay": tmp_path / "calls"}):
        (said,), _ = outcomes_of([reply(body, headers=JSON)], **replayed)
        assert (said.text, said.log_probabilities) == ("x", msgspec.UNSET)


@pytest.mark.parametrize("logprobs", [5, [], {}, {"content": "x"}, {"content": {"a": 1}}], ids=json.dumps)
def test_probabilities_of_another_shape_are_none(logprobs):
    body = {"choices": [{"message": SAID, "finish_reason": "stop", "logprobs": logprobs}]}
    (said,), _ = outcomes_of([reply(body, headers=JSON)])
    assert (said.text, said.log_probabilities) == ("x", msgspec.UNSET)


@pytest.mark.parametrize(
    "body",
    [[1], {"data": 5}, vectors(), vectors((0, [1.0])), vectors((0, None), (1, [1.0])), vectors((0, ["x"]), (1, [1.0]))],
    ids=json.dumps,
)
def test_embeddings_of_another_shape_are_no_reply(body):
    assert embedded(body) == ("bad_reply", 3)


def test_embeddings_are_in_the_order_of_the_texts():
    assert embedded(vectors((1, [2.0]), (0, [1.0]))) == ([[1.0], [2.0]], 1)


def test_embeddings_are_held_to_the_budget():
    assert embedded(vectors((0, [1.0]), (1, [1.0])), budget_usd=0.0) == ("cost_limit", 0)


def test_embeddings_need_a_price_under_a_budget():
    assert embedded(vectors((0, [1.0]), (1, [1.0])), model="text-embedding-test", budget_usd=1.0) == ("no_price", 0)


def test_an_interface_without_embeddings_says_so():
    assert embedded({}, model="claude-test") == ("bad_request", 0)


def test_a_reply_that_never_ends_well_counts_against_the_budget():
    """The provider may have done the work of a call that timed out: nobody can know."""
    questions = [request("x" * 400, max_tokens=10, repeat=i) for i in range(5)]

    async def silent(_writer):
        await asyncio.sleep(5)

    said, server = outcomes_of([silent], *questions, prices=PRICED, budget_usd=0.011, rules=Hasty())
    assert sorted(map(failed, said)) == ["cost_limit"] * 3 + ["timeout"] * 2
    assert len(server.requests) == 2


def test_a_call_that_was_refused_costs_nothing():
    async def ask():
        async with serving(refused(400), openai("yes")) as server:
            environment = {"OPENAI_BASE_URL": f"http://127.0.0.1:{server.port}/v1"}
            models = LiveModels(PRICED, ModelChoices(budget_usd=0.006), environment, Impatient())
            with pytest.raises(EvaluatorError):
                await models.chat(request("x" * 400, max_tokens=10))
            chat = await models.chat(request("x" * 400, max_tokens=10))
            await models.close()
            return chat.text

    assert asyncio.run(ask()) == "yes"


def test_there_are_never_more_connections_than_calls_at_a_time():
    async def ask():
        async with serving(openai("yes")) as server:
            environment = {"OPENAI_BASE_URL": f"http://127.0.0.1:{server.port}/v1"}
            models = LiveModels(environment=environment, rules=Patient(), width=5)
            replies = await asyncio.gather(*(models.chat(request(str(i))) for i in range(60)))
            await models.close()
            return len(replies), server.most_open, len(server.requests)

    answered, most_open, requests = asyncio.run(ask())
    assert (answered, requests) == (60, 60)
    assert most_open <= 5


def test_a_storm_of_all_kinds_loses_and_doubles_nothing():
    async def reset(writer):
        writer.transport.abort()

    storm = [refused(429, headers=("Retry-After: 0",)), refused(503), reset, reply(b"{", headers=JSON)] * 10

    class Steady(Impatient):
        attempts = 40
        longest_wait = 0.01

    said, server = outcomes_of([*storm, openai("yes")], *(request(str(i)) for i in range(40)), rules=Steady())
    assert [one.text for one in said] == ["yes"] * 40
    assert len(server.requests) == 40 + len(storm)


@pytest.mark.parametrize(
    ("reason", "first"),
    [
        ("length", "the reply was cut off at the limit of 7 tokens"),
        ("content_filter", "the reply is incomplete: it ended with content_filter"),
        ("insufficient_system_resource", "the reply is incomplete: it ended with insufficient_system_resource"),
        ("SAFETY", "the reply is incomplete: it ended with SAFETY"),
    ],
)
def test_a_reply_that_was_cut_short_is_no_verdict_and_is_not_kept(tmp_path, reason, first):
    short = openai("ye").replace(b'"stop"', json.dumps(reason).encode())
    short = reply(short.partition(b"\r\n\r\n")[2], headers=JSON)

    async def twice():
        async with serving(short, openai("yes")) as server:
            environment = {"OPENAI_BASE_URL": f"http://127.0.0.1:{server.port}/v1"}
            models = LiveModels(choices=ModelChoices(cache=tmp_path / "c"), environment=environment)
            given = [await asyncio.gather(models.chat(request(max_tokens=7)), return_exceptions=True) for _ in range(3)]
            await models.close()
            return [one for (one,) in given]

    short_one, *others = asyncio.run(twice())
    assert str(short_one).partition(";")[0] == first
    assert [(other.text, other.cached) for other in others] == [("yes", False), ("yes", True)]


def test_secrets_are_masked_in_the_cache(tmp_path):
    file = tmp_path / "cache"
    outcomes_of([openai("it is s3cret")], cache=file, mask=lambda text: text.replace("s3cret", "***"))
    assert b"s3cret" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_secrets_of_the_environment_are_masked_by_default(tmp_path):
    file = tmp_path / "cache"
    outcomes_of([openai("it is swordfish")], cache=file, environment={"SOME_API_KEY": "swordfish"})
    assert b"swordfish" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_thinking_and_text_survive_the_bounded_connection():
    (said,), _ = outcomes_of([anthropic("x" * 1_000_000)], request(model="claude-test"), rules=Patient())
    assert (len(said.text), said.thinking) == (1_000_000, "hm")
