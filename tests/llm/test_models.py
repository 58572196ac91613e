"""Model calls through the real clients: replies, retries, money, cache, recordings."""

import asyncio
import json

import pytest

from evalwright.errors import EvaluatorError, InputError, TargetError
from evalwright.llm.budget import Spending
from evalwright.llm.cache import Cache
from evalwright.llm.choices import ModelChoices
from evalwright.llm.models import LiveModels
from evalwright.llm.routes import route_of
from evalwright.model.chat import ChatMessage, ChatRequest, EmbeddingRequest, Usage, Waits
from evalwright.model.plan import Price
from evalwright.model.trace import ToolCall
from llm.models import JSON, Hasty, anthropic, bodies, openai, outcomes_of, refused, reply, request
from targets.loopback import serving

PRICED = {"gpt-test": Price(10.0, 100.0)}


async def hang_up(_writer):
    """Ends the connection without a word; the server does so after every script that is a function."""


async def cut_off(writer):
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{")
    await writer.drain()


def kind(outcome):
    assert isinstance(outcome, EvaluatorError)
    return outcome.type


def test_a_reply_comes_with_tokens_and_cost():
    (said,), _ = outcomes_of([openai("yes")], prices=PRICED)
    assert (said.text, said.usage.token_input, said.usage.token_output) == ("yes", 100, 10)
    assert said.cost_usd == pytest.approx(0.002)


@pytest.mark.parametrize(
    ("usage", "cost"), [(Usage(100, 10), 0.002), (Usage(100), None), (Usage(None, 10), None), (Usage(), None)]
)
def test_without_a_count_of_tokens_that_cost_something_the_cost_is_unknown(usage, cost):
    told = []
    money = Spending(PRICED, None, warn=told.append)
    assert [money.cost("gpt-test", usage) for _ in range(2)] == [cost and pytest.approx(cost)] * 2
    unknown = ["the cost of calls of 'gpt-test' is unknown: its replies do not count tokens"]
    assert told == ([] if cost else unknown)


def test_tokens_that_are_free_need_not_be_counted():
    assert Spending({"gpt-test": Price(10.0, 0.0)}, None).cost("gpt-test", Usage(100)) == pytest.approx(0.001)


def test_thinking_is_kept_apart():
    (said,), _ = outcomes_of([anthropic("yes")], request(model="claude-test"))
    assert (said.text, said.thinking, said.usage.token_output) == ("yes", "hm", 10)


def test_tool_calls_are_read():
    call = {"id": "1", "type": "function", "function": {"name": "find", "arguments": '{"q": 1}'}}
    (said,), _ = outcomes_of([openai(None, tool_calls=[call])])
    assert said.tool_calls == [ToolCall("find", "1", {"q": 1})]


@pytest.mark.parametrize(
    ("model", "interface", "name"),
    [
        ("gpt-4o-mini", "openai", "gpt-4o-mini"),
        ("openai/gpt-4o", "openai", "gpt-4o"),
        ("claude-x", "anthropic", "claude-x"),
        ("anthropic/claude-x", "anthropic", "claude-x"),
        ("openrouter/deepseek/deepseek-v4", "openai", "deepseek/deepseek-v4"),
        ("somebody/model", "openai", "somebody/model"),
    ],
)
def test_names_of_models_lead_to_their_providers(model, interface, name):
    route = route_of(request(model=model), {})
    assert (route.interface, route.model) == (interface, name)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (refused(500), "http_5xx"),
        (refused(503), "http_5xx"),
        (refused(429), "rate_limited"),
        *((refused(status), "bad_request") for status in (408, 409, 425)),
        (hang_up, "connection"),
        (cut_off, "connection"),
        (reply(b"no json", headers=("Content-Type: application/json",)), "bad_reply"),
        (reply({"choices": []}, headers=("Content-Type: application/json",)), "bad_reply"),
        (reply(b"\xff\xfe\xfa", headers=("Content-Type: application/json",)), "bad_reply"),
    ],
)
def test_what_may_pass_is_tried_as_often_as_allowed(script, expected):
    (outcome,), server = outcomes_of([script])
    assert (kind(outcome), len(server.requests)) == (expected, 3)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (refused(400), "bad_request"),
        (refused(401), "authentication"),
        (refused(403), "authentication"),
        (refused(402), "quota"),
        *((refused(status), "bad_request") for status in (404, 407, 410, 424, 426)),
        (refused(429, code="insufficient_quota"), "quota"),
    ],
)
def test_a_permanent_failure_is_not_retried(script, expected):
    (outcome,), server = outcomes_of([script])
    assert (kind(outcome), len(server.requests)) == (expected, 1)


def test_a_storm_that_passes_is_answered():
    storm = [refused(429, headers=("Retry-After: 0",)), refused(500), openai("at last")]
    (said,), server = outcomes_of(storm)
    assert (said.text, len(server.requests)) == ("at last", 3)


def test_a_reply_that_does_not_come_is_a_timeout():
    async def silent(_writer):
        import asyncio

        await asyncio.sleep(5)

    (outcome,), _ = outcomes_of([silent], rules=Hasty())
    assert kind(outcome) == "timeout"


def test_a_refusal_to_moderate_is_reported_as_a_refusal():
    async def ask():
        async with serving(refused(401)) as server:
            models = LiveModels(None, ModelChoices(), {"OPENAI_BASE_URL": f"http://127.0.0.1:{server.port}/v1"})
            try:
                await models.moderate("gpt-test", "text")
            finally:
                await models.close()

    with pytest.raises(EvaluatorError, match="HTTP 401") as caught:
        asyncio.run(ask())
    assert kind(caught.value) == "authentication"


@pytest.mark.parametrize("what", ["embeddings", "moderations"])
def test_a_model_without_embeddings_or_moderations_is_an_error(what):
    async def ask():
        models = LiveModels(None, ModelChoices(), {"ANTHROPIC_API_KEY": "k"})
        try:
            await (
                models.embed(EmbeddingRequest("claude-test", ["a"]))
                if what == "embeddings"
                else models.moderate("claude-test", "a")
            )
        finally:
            await models.close()

    with pytest.raises(EvaluatorError, match=f"'claude-test' has no {what}: its interface is anthropic"):
        asyncio.run(ask())


def test_a_failure_quotes_the_message_of_the_server():
    (outcome,), _ = outcomes_of([refused(400, "the prompt is too long")])
    assert str(outcome) == "HTTP 400: the prompt is too long"


@pytest.mark.parametrize(
    ("body", "headers", "told"),
    [
        ({"error": "no such model"}, JSON, "no such model"),
        ({"message": "no such model", "code": 7}, JSON, "no such model"),
        (["no", "model"], JSON, "['no', 'model']"),
        ("no such model", (), "no such model"),
        ("kein Modell für dich".encode(), ["Content-Type: text/plain; charset=iso-8859-1"], "kein Modell für dich"),
        ({"error": {"message": "x" * 1000}}, JSON, "x" * 500),
    ],
)
def test_a_failure_quotes_the_message_of_servers_with_another_form_of_errors(body, headers, told):
    (outcome,), _ = outcomes_of([reply(body, 400, headers=headers)])
    assert str(outcome) == f"HTTP 400: {told}"


def test_for_a_system_the_failure_is_one_of_the_target():
    (outcome,), _ = outcomes_of([refused(400)], purpose="system")
    assert isinstance(outcome, TargetError)
    assert outcome.type == "bad_request"


def test_many_questions_at_once_are_each_answered_once():
    said, server = outcomes_of([openai("yes")], *(request(str(i)) for i in range(100)))
    assert [one.text for one in said] == ["yes"] * 100
    assert len(server.requests) == 100


def test_an_image_is_held_to_the_budget_as_an_image_not_by_the_length_of_its_data():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 1_000_000}}
    shown = ChatRequest("gpt-test", [ChatMessage("user", [image])])
    (said,), _ = outcomes_of([openai("a cat")], shown, prices=PRICED, budget_usd=0.5)
    assert said.text == "a cat"
    (outcome,), server = outcomes_of([openai()], shown, prices=PRICED, budget_usd=0.001)
    assert (kind(outcome), server.requests) == ("cost_limit", [])
    (outcome,), server = outcomes_of([openai()], shown, prices=PRICED, budget_usd=0.5, spent_usd=0.499)
    assert (kind(outcome), server.requests) == ("cost_limit", [])


def test_a_limit_that_is_set_for_the_budget_alone_gives_way():
    large = refused(400, "max_tokens is too large: 16384. This model supports at most 4096 completion tokens")
    (said,), server = outcomes_of([large, openai("yes")], prices=PRICED, budget_usd=5.0, purpose="system")
    assert (said.text, [body["max_tokens"] for body in bodies(server)]) == ("yes", [16384, 4096])
    _, server = outcomes_of([openai("yes")], prices=PRICED, purpose="system")
    assert "max_tokens" not in bodies(server)[0]


def test_thinking_that_does_not_end_is_a_reply_cut_off():
    (outcome,), _ = outcomes_of([openai("<think>Let me see")], request(max_tokens=7))
    assert kind(outcome) == "truncated"
    assert "cut off while it was thinking; look at the limit of 7 tokens; a higher `max_tokens`" in str(outcome)
    assert outcome.detail == {"judge_thinking": "Let me see"}
    (said,), _ = outcomes_of([openai("<think>Let me see")], request(max_tokens=7), purpose="system")
    assert said.text == "<think>Let me see"


@pytest.mark.parametrize(
    ("key", "seen"),
    [("abcd", "a *** abcde abcdefg"), ("abcdef", "a abcd abcde ***g"), ("abc", "a abcd abcde abcdefg")],
)
def test_a_short_key_is_masked_only_where_it_stands_alone(tmp_path, key, seen):
    file = tmp_path / "calls.jsonl"
    chosen = request("a abcd abcde abcdefg", api_key_env="MINE")
    outcomes_of([openai()], chosen, record=file, mask=str, environment={"MINE": key})
    assert seen in file.read_text().replace("***MASKED***", "***")


@pytest.mark.parametrize("purpose", ["judge", "system"])
def test_a_reply_that_the_budget_cuts_off_is_no_reply(purpose):
    short = openai("y").replace(b'"stop"', b'"length"').replace(b": 10,", b": 300,")
    short = reply(short.partition(b"\r\n\r\n")[2], headers=JSON)
    (outcome,), server = outcomes_of([short], prices=PRICED, budget_usd=0.05, purpose=purpose)
    assert (outcome.type, "the limit under the budget (it cost $0.03" in str(outcome)) == ("cost_limit", True)
    assert 128 <= bodies(server)[0]["max_tokens"] < 500


def test_a_reply_that_is_longer_than_its_limit_is_reported_once():
    told = []
    long = reply(openai("y").replace(b": 10,", b": 90,").partition(b"\r\n\r\n")[2], headers=JSON)
    questions = [request("x" * 200 + str(n), max_tokens=20) for n in range(3)]
    outcomes_of([long], *questions, prices=PRICED, budget_usd=1.0, warn=told.append)
    assert told == ["the budget may be exceeded by calls of 'gpt-test': its reply has 90 tokens, its limit was 20"]


def test_an_attempt_that_may_be_billed_is_paid_for():
    questions = [request("x" * 368, max_tokens=10, repeat=n) for n in range(2)]
    said, server = outcomes_of([cut_off], *questions, prices=PRICED, budget_usd=0.0151)
    assert (list(map(kind, said)), len(server.requests)) == (["cost_limit"] * 2, 3)


def test_under_a_budget_a_model_needs_a_price():
    (outcome,), server = outcomes_of([openai()], budget_usd=1.0)
    assert (kind(outcome), len(server.requests)) == ("no_price", 0)


def test_the_same_question_is_sent_once(tmp_path):
    cache = tmp_path / "cache.sqlite"
    (first,), server = outcomes_of([openai("one")], prices=PRICED, cache=cache)
    assert (first.cached, len(server.requests)) == (False, 1)
    store = Cache(cache)
    assert store.counts()[0].replies == 1
    store.close()


def test_a_kept_reply_carries_its_first_cost(tmp_path):
    def twice():
        return outcomes_of(
            [openai("one"), openai("two")], request(), request("other"), prices=PRICED, cache=tmp_path / "c"
        )

    replies, server = twice()
    assert (len(server.requests), [one.cached for one in replies]) == (2, [False, False])


@pytest.mark.parametrize("field", [{"temperature": 0.5}, {"system": "s"}, {"repeat": 1}, {"max_tokens": 5}])
def test_whatever_changes_the_answer_is_another_question(field):
    from evalwright.llm.routes import key_of

    assert key_of(request(), at="here") != key_of(request(**field), at="here")


@pytest.mark.parametrize(
    "field",
    [
        {"base_url": "https://models.example/v1"},
        {"api_key_env": "MY_KEY"},
        {"attempts": 3},
        {"attempt_seconds": 5.0},
        {"waits": Waits(factor=3.0)},
    ],
)
def test_the_way_of_sending_does_not_make_another_question(field):
    from evalwright.llm.routes import key_of

    assert key_of(request(), at="here") == key_of(request(**field), at="here")


def test_a_damaged_cache_that_was_configured_is_an_error(tmp_path):
    (tmp_path / "cache").write_text("no database, but long enough to be looked at as one")
    (outcome,), server = outcomes_of([openai()], cache=tmp_path / "cache")
    assert (type(outcome), server.requests) == (InputError, [])


def test_a_recording_is_served_without_a_server(tmp_path):
    file = tmp_path / "calls.jsonl"
    outcomes_of([openai("recorded")], record=file)
    (said,), server = outcomes_of([refused(500)], replay=file)
    assert (said.text, server.requests) == ("recorded", [])


def test_a_call_that_is_not_recorded_is_an_error(tmp_path):
    file = tmp_path / "calls.jsonl"
    outcomes_of([openai()], record=file)
    (outcome,), server = outcomes_of([openai()], request("other"), replay=file)
    assert (kind(outcome), server.requests) == ("not_recorded", [])


def test_secrets_are_masked_in_recordings(tmp_path):
    file = tmp_path / "calls.jsonl"
    outcomes_of([openai()], request("the key is s3cret"), record=file, mask=lambda text: text.replace("s3cret", "***"))
    assert "s3cret" not in file.read_text()
    assert json.loads(file.read_text())["kind"] == "chat"


def test_nothing_leaves_this_machine_without_a_network():
    outside = request(base_url="https://models.example/v1")
    (outcome,), _ = outcomes_of([openai()], outside, no_network=True)
    assert kind(outcome) == "network_refused"


def test_a_missing_key_is_named():
    (outcome,), _ = outcomes_of([openai()], request(model="groq/llama"))
    assert "GROQ_API_KEY" in str(outcome)


@pytest.mark.parametrize(
    ("asked_for", "environment", "variables"),
    [
        ({}, {}, "OPENAI_API_KEY"),
        ({"model": "claude-x"}, {}, "ANTHROPIC_API_KEY"),
        ({"provider": "google"}, {}, "GEMINI_API_KEY or GOOGLE_API_KEY or GOOGLE_GENERATIVE_AI_API_KEY"),
        ({"api_key_env": "MY_KEY", "base_url": "https://models.example/v1"}, {}, "MY_KEY"),
        ({"model": "azure/x"}, {"AZURE_OPENAI_ENDPOINT": "https://mine.example"}, "AZURE_OPENAI_API_KEY"),
        ({}, {"OPENAI_API_KEY": "k"}, None),
        ({"provider": "google"}, {"GOOGLE_API_KEY": "k"}, None),
        ({"base_url": "https://models.example/v1"}, {}, None),
        ({}, {"OPENAI_BASE_URL": "http://localhost:8000/v1"}, None),
        ({"model": "python:module:function"}, {}, None),
        ({"model": "litellm/x"}, {}, None),
    ],
)
def test_the_variables_of_a_missing_key(asked_for, environment, variables):
    assert route_of(request(**asked_for), environment).missing_key == variables


def test_a_model_without_a_price_can_be_allowed_under_a_budget():
    (unpriced,), server = outcomes_of([openai("yes")], budget_usd=1.0)
    assert (kind(unpriced), server.requests) == ("no_price", [])
    (said,), _ = outcomes_of([openai("yes")], budget_usd=1.0, allow_unpriced=True)
    assert said.text == "yes"
