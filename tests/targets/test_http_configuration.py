"""Which configurations of an http system are refused, and in which words."""

import pytest

from evalwright.errors import InputError
from targets.loopback import build

MAPPED = {"endpoint": "https://example.org/x", "response_mapping": {"final_answer": "$.a"}}


def refused(**config):
    with pytest.raises(InputError) as raised:
        build(**config)
    return {problem.key: problem.message for problem in raised.value.problems}


def test_an_empty_configuration_names_everything_that_is_missing():
    problems = refused()
    assert problems.keys() == {"endpoint", "response_mapping"}
    assert "'endpoint'" in problems["endpoint"]


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"endpoint": "http://example.com/x"}, "endpoint"),
        ({"endpoint": "http://127.evil.example/x"}, "endpoint"),
        ({"endpoint": "http://localhost.evil.example/x"}, "endpoint"),
        ({"endpoint": "http://localhost@evil.example/x"}, "endpoint"),
        ({"endpoint": "http://127.1/x"}, "endpoint"),
        ({"endpoint": "http://10.0.0.1/x"}, "endpoint"),
        ({"endpoint": "ftp://localhost/x"}, "endpoint"),
        ({"endpoint": "https://my host/x"}, "endpoint"),
        ({"endpoint": "https://[bad/x"}, "endpoint"),
        ({"endpoint": "http://localhost:65536/x"}, "endpoint"),
        ({"endpoint": "file:///etc/passwd"}, "endpoint"),
        ({"endpoint": "example.com/x"}, "endpoint"),
        ({"endpoint": "https://"}, "endpoint"),
        ({"endpoint": "https://[::1"}, "endpoint"),
        ({"endpoint": "https://a:b\u0000c/"}, "endpoint"),
        ({"endpoint": 5}, "endpoint"),
        ({"method": "GET / HTTP/1.1"}, "method"),
        ({"headers": ["x"]}, "headers"),
        ({"headers": {"a b": "x"}}, "headers.a b"),
        ({"headers": {"X-Key": 5}}, "headers.X-Key"),
        ({"headers": {"X-Key": "a\r\nX-Other: b"}}, "headers.X-Key"),
        ({"headers": {"X-Key": "Bearer "}}, "headers.X-Key"),
        ({"query_params": {"q": [1]}}, "query_params.q"),
        ({"body": "x"}, "body"),
        ({"body": []}, "body"),
        ({"headers": []}, "headers"),
        ({"response_mapping": ""}, "response_mapping"),
        ({"request_template": 0}, "request_template"),
        ({"request_template": {"a": 1}}, "request_template"),
        ({"response_mapping": "$.a"}, "response_mapping"),
        ({"response_mapping": {"final_answer": 5}}, "response_mapping.final_answer"),
        ({"provider": "nope"}, "provider"),
        ({"provider": ["openai_chat"]}, "provider"),
        ({"strip_think": "yes"}, "strip_think"),
        ({"max_response_bytes": 0}, "max_response_bytes"),
        ({"stream": "yes"}, "stream"),
        ({"stream": True}, "stream_format"),
        ({"stream": True, "stream_format": "xml", "stream_event_field": "$.t"}, "stream_format"),
        ({"stream": True, "stream_format": "sse"}, "stream_event_field"),
    ],
)
def test_each_mistake_is_named_by_its_key(change, key):
    assert key in refused(**{**MAPPED, **change})


@pytest.mark.parametrize(
    ("endpoint", "shown"),
    [
        ("http://AcmeCorp.example/v1?key=1", "http://AcmeCorp.example/v1"),  # a value of this spelling may be masked
        ("http://me:pass@AcmeCorp.example#x", "http://AcmeCorp.example"),
        ("http://me:half/of@a.example/", "http://me:half/of@a.example/"),  # as a whole, it is masked in turn
    ],
)
def test_a_refused_address_is_shown_as_it_was_written(endpoint, shown):
    message = refused(**{**MAPPED, "endpoint": endpoint})["endpoint"]
    assert message.endswith(f", found {shown}")


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://example.com/x",
        "http://localhost:1/x",
        "http://127.8.9.10/x",
        "http://[::1]",
        "https://[fe80::1%25eth0]:8/x",
    ],
)
def test_endpoints_that_are_allowed(endpoint):
    assert build(**{**MAPPED, "endpoint": endpoint}).config_keys


def test_an_unknown_provider_is_an_error_that_lists_the_known_ones():
    assert "openai_chat" in refused(**{**MAPPED, "provider": "openai"})["provider"]


def test_secrets_are_not_in_the_messages_about_mistakes():
    problems = refused(endpoint="http://user:hush-hush@example.com/x?key=hush-hush", headers={"X-Key": "hush-hush\n"})
    assert problems.keys() == {"endpoint", "headers.X-Key", "response_mapping"}
    assert "hush-hush" not in str(problems)
