"""What models are asked, by a server on loopback that is as strict as the real ones."""

from __future__ import annotations

import json

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from formats.promptfoo.runs import ECHO, asserted, run, write
from llm.providers import KEY


@pytest.mark.parametrize("model", ["openai:chat:gpt-4o", "anthropic:messages:claude-haiku-4-5"])
def test_calls_of_tools_in_a_prompt_are_sent(tmp_path, server, model):
    """A result of a tool refers to its call: providers refuse one without the other."""
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bonn"}'}}
    prompt = [
        {"role": "user", "content": "And in {{q}}?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ]
    tools = {"openai": {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}}
    provider = {"id": model, "config": {"tools": [tools["openai"]]} if model.startswith("openai") else {}}
    config = {"prompts": [json.dumps(prompt)], "providers": [provider], "tests": [{"vars": {"q": "Bonn"}}]}
    assert run(tmp_path, config).outputs == ["sunny"]
    sent = json.dumps(server.requests[-1][3]["messages"])
    assert "weather" in sent
    assert "Bonn" in sent


CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bonn"}'}}
BLOCK = {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Bonn"}}


DENSE = {**CALL, "function": {"name": "weather", "arguments": '{"city":"Bonn"}'}}
BROKEN = {**CALL, "function": {"name": "weather", "arguments": '{"city":'}}
REFUSAL = {"role": "assistant", "content": None, "refusal": "I will not say that."}
MESSAGE = {"role": "assistant", "content": "Wait.", "tool_calls": [CALL]}


@pytest.mark.parametrize(
    ("model", "reply", "output"),
    [
        ("openai:chat:gpt-4o", {**MESSAGE, "content": None, "refusal": None}, [CALL]),
        ("openai:chat:gpt-4o", {**MESSAGE, "refusal": None}, MESSAGE),
        ("openai:chat:gpt-4o", {**MESSAGE, "content": None, "refusal": None, "tool_calls": [DENSE]}, [DENSE]),
        ("openai:chat:gpt-4o", {**MESSAGE, "content": None, "refusal": None, "tool_calls": [BROKEN]}, [BROKEN]),
        (
            "anthropic:messages:claude-haiku-4-5",
            [{"type": "text", "text": "Wait."}, BLOCK],
            'Wait.\n\n{"type":"tool_use","id":"c1","name":"weather","input":{"city":"Bonn"}}',
        ),
    ],
)
def test_calls_of_tools_are_part_of_the_output(tmp_path, server, model, reply, output):
    server.answer = lambda body: reply
    wanted = {"type": "tool-call-f1", "value": ["weather"]}
    config = {"prompts": ["{{q}}"], "providers": [model], "tests": [{"vars": {"q": "Bonn"}, "assert": [wanted]}]}
    result = run(tmp_path, config)
    assert (result.outputs, result.statuses) == ([output], ["pass"])


@pytest.mark.parametrize(("reply", "statuses"), [("sunny", "pass fail"), (REFUSAL, "fail pass")])
def test_what_a_model_refuses_to_answer_is_flagged(tmp_path, server, reply, statuses):
    server.answer = lambda body: reply
    tests = [{"vars": {"q": "Bonn"}, "assert": [{"type": kind}]} for kind in ("guardrails", "not-guardrails")]
    result = run(tmp_path, {"prompts": ["{{q}}"], "providers": ["openai:chat:gpt-4o"], "tests": tests})
    assert result.statuses == statuses.split()


def test_a_reply_that_a_filter_left_without_text_says_so(tmp_path, server):
    respond = server.respond

    def filtered(method, path, headers, raw):
        status, reply = respond(method, path, headers, raw)
        reply["choices"][0] |= {"finish_reason": "content_filter"}
        return status, reply

    server.answer, server.respond = (lambda body: ""), filtered
    wanted = [{"type": "finish-reason", "value": "content_filter"}, {"type": "not-guardrails"}]
    config = {
        "prompts": ["{{q}}"],
        "providers": ["openai:chat:gpt-4o"],
        "tests": [{"vars": {"q": "a"}, "assert": wanted}],
    }
    result = run(tmp_path, config)
    assert (result.outputs, result.statuses) == (["Content filtered by provider"], ["pass"])


def test_a_reply_that_is_not_the_json_that_was_asked_for_is_judged(tmp_path, server):
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
    provider = {"id": "openai:chat:gpt-4o", "config": {"response_format": form}}
    tests = [{"vars": {"q": "Bonn"}, "assert": [{"type": "is-json"}]}]
    result = run(tmp_path, {"prompts": ["{{q}}"], "providers": [provider], "tests": tests})
    assert (result.outputs, result.statuses) == (["sunny"], ["fail"])


@pytest.mark.parametrize(
    ("config", "variables", "path"),
    [
        ({"apiHost": "{here}"}, {}, "/openai/v1/chat/completions"),
        (
            {"apiHost": "{here}/", "apiVersion": "2024-10-21"},
            {},
            "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21",
        ),
        (
            {"apiVersion": "2024-10-21"},
            {"AZURE_API_HOST": "{here}"},
            "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21",
        ),
    ],
)
def test_a_deployment_of_azure_is_asked_at_the_version_that_is_named(
    tmp_path, server, monkeypatch, config, variables, path
):
    here, asked, respond = f"http://127.0.0.1:{server.port}", [], server.respond

    def behind(method, path, headers, raw):
        asked.append(path)
        key = headers.get("api-key") or headers["authorization"].removeprefix("Bearer ")
        return respond(method, "/v1/chat/completions", {**headers, "authorization": f"Bearer {key}"}, raw)

    server.respond = behind
    monkeypatch.setenv("AZURE_API_KEY", KEY)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(here=here))
    settings = {name: value.format(here=here) for name, value in config.items()}
    provider = {"id": "azure:chat:my-gpt", "config": settings}
    ran = run(tmp_path, {"prompts": ["{{q}}"], "providers": [provider], "tests": [{"vars": {"q": "weather?"}}]})
    assert ran.outputs == ["sunny"]
    assert asked == [path]


def test_a_grader_is_one_of_the_providers_if_it_has_their_name(tmp_path, server):
    """A judge behind an address of its own is asked there, although the assertion only has its id."""
    here = f"http://127.0.0.1:{server.port}/v1"
    server.answer = lambda body: json.dumps({"pass": True, "score": 1, "reason": body["model"]})
    providers = [
        {"id": "echo"},
        {"id": "openai:chat:gpt-4o", "label": "strict", "config": {"apiBaseUrl": here, "temperature": 0.3}},
        {"id": "file://judge.py", "label": "own"},
    ]
    judge = 'def call_api(*_): return {\'output\': \'{"pass": true, "reason": "own"}\'}'
    graders = ["strict", "openai:chat:gpt-4o", "own", {"text": "own"}, {"text": {"id": "strict"}}]
    asserts = [{"type": "llm-rubric", "value": "fine", "provider": grader} for grader in graders]
    tests = [{"vars": {"q": "Bonn"}, "providers": ["echo"], "assert": asserts}]
    result = run(tmp_path, {"prompts": ["{{q}}"], "providers": providers, "tests": tests}, judge__py=judge)
    assert [row.reason for row in result.rows if row.status == "pass"] == ["gpt-4o", "gpt-4o", "own", "own", "gpt-4o"]
    assert {request[3]["temperature"] for request in server.requests} == {0.3}


def test_a_provider_in_a_mapping_keeps_its_id(tmp_path, server):
    providers = ["openai:chat:gpt-4o", {"id": "openai:chat:gpt-4o-mini"}]
    result = run(tmp_path, {"prompts": ["{{q}}"], "providers": providers, "tests": [{"vars": {"q": "Bonn"}}]})
    assert [variant for _, variant, _ in result.traces] == ["openai:gpt-4o", "openai:chat:gpt-4o-mini"]


@pytest.mark.parametrize(
    ("model", "settings", "sent"),
    [
        ("ollama:chat:qwen3:4b", {}, {}),
        ("ollama:qwen3:4b", {"num_predict": 2048, "temperature": 0.1}, {"max_tokens": 2048, "temperature": 0.1}),
        ("ollama:qwen3:4b", {"num_predict": -1}, {}),
        ("google:gemini-2.5-flash", {"maxOutputTokens": 800}, {"max_tokens": 800}),
        (
            "google:gemini-2.5-flash",
            {"generationConfig": {"maxOutputTokens": 9, "temperature": 0.4}},
            {"max_tokens": 9, "temperature": 0.4},
        ),
        ("openai:chat:gpt-4o", {"showThinking": False}, {"max_tokens": 1024, "temperature": 0}),
        ("openai:chat:gpt-4o", {"omitDefaults": True}, {}),
    ],
)
def test_settings_of_a_company_are_sent_and_only_some_have_defaults(
    tmp_path, server, monkeypatch, model, settings, sent
):
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    provider = {"id": model, "config": {"apiBaseUrl": f"http://127.0.0.1:{server.port}/v1", **settings}}
    config = {"prompts": ["{{q}}"], "providers": [provider], "tests": [{"vars": {"q": "Bonn"}}]}
    assert run(tmp_path, config).outputs == ["sunny"]
    found = server.requests[-1][3]
    assert {key: found[key] for key in ("max_tokens", "temperature") if key in found} == sent


def test_settings_that_nothing_reads_are_warned_of(tmp_path):
    config = {"num_ctx": 9, "showThinking": True, "num_predict": 9}
    google = {"maxOutputTokens": 9, "generationConfig": {"seed": 1}}
    providers = [{"id": "ollama:llama3", "config": config}, {"id": "google:gemini-2.5-flash", "config": google}]
    suite = load_suite(write(tmp_path, {"prompts": ["{{q}}"], "providers": providers, "tests": [{"vars": {"q": "a"}}]}))
    assert [warning.key for warning in suite.warnings if "config" in warning.key] == [
        "providers[0].config.num_ctx", "providers[0].config.showThinking", "providers[1].config.generationConfig.seed",
    ]  # fmt: skip


@pytest.mark.parametrize("config", [{}, {"apiKeyEnvar": "SHOP_TOKEN"}])
def test_a_models_key_and_address_may_be_variables_of_its_provider(tmp_path, server, monkeypatch, config):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-1")
    monkeypatch.delenv("OPENAI_BASE_URL")
    key = config.get("apiKeyEnvar", "OPENAI_API_KEY")
    variables = {key: KEY, "OPENAI_BASE_URL": f"http://127.0.0.1:{server.port}/v1"}
    provider = {"id": "openai:gpt-4o", "env": variables, "config": config}
    result = run(tmp_path, {"prompts": ["{{q}}"], "providers": [provider], "tests": [{"vars": {"q": "Bonn"}}]})
    assert (result.statuses, len(server.requests)) == (["pass"], 1)
    files = [path for path in result.outcome.run_dir.rglob("*") if path.is_file()]
    assert not any(KEY.encode() in path.read_bytes() for path in files)


@pytest.mark.parametrize("keys", [{"type": "similar", "value": "a"}, {"type": "answer-relevance"}])
def test_texts_are_embedded_at_the_address_and_with_the_key_of_the_embedding_provider(
    tmp_path, server, monkeypatch, keys
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-1")
    monkeypatch.setenv("SHOP_TOKEN", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    there = {"apiBaseUrl": f"http://127.0.0.1:{server.port}/v1", "apiKeyEnvar": "SHOP_TOKEN"}
    graders = {
        "text": {"id": "openai:chat:gpt-4o", "config": there},
        "embedding": {"id": "openai:embedding:e", "config": there},
    }
    result = asserted(tmp_path, "a", {**keys, "provider": graders})
    assert result.statuses == ["pass"]
    assert server.requests[-1][1] == "/v1/embeddings"


def test_settings_that_no_embedding_provider_reads_are_warned_of(tmp_path):
    grader = {"embedding": {"id": "openai:embedding:e", "config": {"apiHost": "a.example", "dimensions": 9}}}
    path = write(tmp_path, {**ECHO, "tests": [{"assert": [{"type": "similar", "value": "a", "provider": grader}]}]})
    assert [warning.key for warning in load_suite(path).warnings if "config" in warning.key] == [
        "tests[0].assert[0].provider.embedding.config.dimensions"
    ]


FORM = {"type": "json_schema", "json_schema": {"name": "about_{{q}}", "schema": {"type": "object"}}}


def test_options_of_a_test_are_settings_of_its_call(tmp_path, server):
    prompt = {"raw": "{{q}}", "label": "p", "config": {"temperature": 0.5, "seed": 3}}
    own = {"temperature": 0.9, "max_tokens": 7, "response_format": {"type": "text"}}
    tests = [{"vars": {"q": "Bonn"}, "options": own}, {"vars": {"q": "Rome"}}]
    provider = {"id": "openai:chat:gpt-4o", "config": {"temperature": 0.1, "top_p": 0.2}}
    path = write(tmp_path, {"prompts": [prompt], "providers": [provider], "tests": tests})
    assert not [warning for warning in load_suite(path).warnings if warning.unread]
    run(tmp_path, {"prompts": [prompt], "providers": [provider], "tests": tests})
    sent = {request[3]["messages"][0]["content"]: request[3] for request in server.requests}
    assert {"seed": 3, "top_p": 0.2, **own}.items() <= sent["Bonn"].items()
    assert (sent["Rome"]["temperature"], sent["Rome"]["max_tokens"]) == (0.5, 1024)


def test_code_is_shown_the_options_of_its_test_as_settings_of_the_prompt(tmp_path):
    code = "def call_api(prompt, options, context):\n    return {'output': context['prompt']['config']['style']}\n"
    test = {"vars": {"q": "x"}, "options": {"style": "terse"}}
    config = {"prompts": ["{{q}}"], "providers": ["file://p.py"], "tests": [test]}
    assert run(tmp_path, config, **{"p.py": code}).outputs == ["terse"]


def test_templates_and_files_of_a_format_are_filled_in(tmp_path, server):
    form = {"type": "json_schema", "json_schema": {"name": "about_{{q}}", "schema": "file://{{q}}.json"}}
    provider = {"id": "openai:chat:gpt-4o", "config": {"response_format": form}}
    config = {"prompts": ["{{q}}"], "providers": [provider], "tests": [{"vars": {"q": "Bonn"}}]}
    run(tmp_path, config, **{"Bonn.json": '{"type": "object"}'})
    sent = server.requests[-1][3]["response_format"]["json_schema"]
    assert sent == {"name": "about_Bonn", "schema": {"type": "object"}}


@pytest.mark.parametrize("where", ["tools", "schema"])
def test_variables_cannot_name_files_outside_of_the_suite(tmp_path, server, where):
    (tmp_path / "private.json").write_text('{"type": "private"}')
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": "file://{{q}}.json"}}
    settings = {"tools": {"tools": "file://{{q}}.json"}, "schema": {"response_format": form}}[where]
    provider = {"id": "openai:chat:gpt-4o", "config": settings}
    (tmp_path / "suite").mkdir()
    config = {"prompts": ["Hi"], "providers": [provider], "tests": [{"vars": {"q": "../private"}}]}
    [trace] = run(tmp_path / "suite", config).traces.values()
    assert trace.error.type == "template_error"
    assert "'../private.json', which is outside of" in trace.error.message
    assert not server.requests


def test_the_file_of_a_schema_must_be_there(tmp_path):
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": "file://gone.json"}}
    tests = [{"vars": {"q": "x"}, "options": {"response_format": form}}]
    provider = {"id": "openai:chat:gpt-4o", "config": {"response_format": form}}
    path = write(tmp_path, {"prompts": ["{{q}}"], "providers": [provider], "tests": tests})
    with pytest.raises(InputError) as refused:
        load_suite(path)
    places = [f"{place}.response_format.json_schema.schema" for place in ("providers[0].config", "tests[0].options")]
    assert sorted(problem.key for problem in refused.value.problems if problem.key in places) == places


def serve_responses(server, text):
    respond = server.respond
    part = {"type": "output_text", "text": text, "annotations": []}
    said = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}

    def responded(method, path, headers, raw):
        if path != "/v1/responses":
            return respond(method, path, headers, raw)
        server.requests.append((method, path, headers, json.loads(raw)))
        reply = {"id": "r", "object": "response", "status": "completed", "model": "gpt-4o", "created_at": 1}
        return 200, {**reply, "output": [said], "usage": usage}

    server.respond = responded


@pytest.mark.parametrize(
    ("model", "form", "output"),
    [
        ("openai:chat:gpt-4o", FORM, {"n": 1}),
        ("openai:chat:gpt-4o", "file://form.json", '{"n": 1}'),
        ("openai:responses:gpt-4o", "file://form.json", {"n": 1}),
    ],
)
def test_a_reply_by_a_schema_is_parsed_where_promptfoo_parses_it(tmp_path, server, model, form, output):
    """With chat completions, promptfoo does not look into the file of a format."""
    server.answer = lambda body: '{"n": 1}'
    serve_responses(server, '{"n": 1}')
    provider = {"id": model, "config": {"response_format": form}}
    config = {"prompts": ["{{q}}"], "providers": [provider], "tests": [{"vars": {"q": "x"}}]}
    assert run(tmp_path, config, **{"form.json": json.dumps(FORM)}).outputs == [output]


def test_settings_reach_the_responses_api_in_its_own_form(tmp_path, server):
    serve_responses(server, "sunny")
    function = {"name": "weather", "parameters": {"type": "object"}}
    settings = {
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
        "tools": [{"type": "function", "function": function}, {"type": "web_search"}],
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
    }
    provider = {"id": "openai:responses:gpt-4o", "config": settings}
    run(tmp_path, {"prompts": ["{{q}}"], "providers": [provider], "tests": [{"vars": {"q": "x"}}]})
    sent = server.requests[-1][3]
    form = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}
    assert (sent["text"], sent.get("response_format")) == ({"format": form}, None)
    assert sent["tools"] == [{"type": "function", **function}, {"type": "web_search"}]
    assert sent["tool_choice"] == {"type": "function", "name": "weather"}


def test_the_configurations_variables_are_keys_and_addresses_of_its_models_and_judges(tmp_path, server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-1")
    monkeypatch.delenv("OPENAI_BASE_URL")
    server.answer = lambda body: json.dumps({"pass": True, "score": 1, "reason": "r"})
    config = {
        "env": {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"http://127.0.0.1:{server.port}/v1"},
        "prompts": ["{{q}}"],
        "providers": ["openai:chat:gpt-4o"],
        "tests": [
            {"vars": {"q": "x"}, "assert": [{"type": "llm-rubric", "value": "y"}, {"type": "similar", "value": "x"}]}
        ],
    }
    ran = run(tmp_path, config)
    assert ran.statuses == ["pass"]
    # The judges of a test are asked at the same time.
    assert sorted(request[1] for request in server.requests) == ["/v1/chat/completions"] * 2 + ["/v1/embeddings"]
    files = [path for path in ran.outcome.run_dir.rglob("*") if path.is_file()]
    assert not any(KEY.encode() in path.read_bytes() for path in files)


def test_programs_get_the_configurations_variables_with_their_options(tmp_path):
    code = "def call_api(prompt, options, context):\n    return {'output': ' '.join(options['env'].values())}\n"
    config = {
        "env": {"A": "shared", "B": "replaced"},
        "prompts": ["{{q}}"],
        "providers": [{"id": "file://p.py", "env": {"B": "own"}}],
        "tests": [{"vars": {"q": "x"}}],
    }
    assert run(tmp_path, config, **{"p.py": code}).outputs == ["shared own"]


def test_the_perplexity_of_a_model_is_known_if_its_probabilities_are_requested(tmp_path, server):
    respond = server.respond

    def likely(*request):
        status, body = respond(*request)
        body["choices"][0]["logprobs"] = {"content": [{"token": "a", "logprob": -0.1}, {"token": "b", "logprob": -0.5}]}
        return status, body

    server.respond = likely
    provider = {"id": "openai:chat:gpt-4o", "config": {"passthrough": {"logprobs": True}}}
    asserts = [[{"type": "perplexity", "threshold": threshold}] for threshold in (1.36, 1.34)]
    tests = [{"vars": {"q": "x"}, "assert": members} for members in asserts]
    ran = run(tmp_path, {"prompts": ["{{q}}"], "providers": [provider], "tests": tests})
    assert ran.statuses == ["pass", "fail"]
