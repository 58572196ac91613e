"""Which provider judges an assertion, and that no other one does in its place."""

import pytest

from formats.promptfoo.runs import ECHO, run

CHAT, EMBEDDER = "openai:gpt-4o", "openai:embedding:e"


@pytest.mark.parametrize(
    ("kind", "provider", "reason"),
    [
        ("similar", CHAT, "the provider openai:gpt-4o makes no embeddings"),
        ("similar", {"text": CHAT}, "provider: expected the key 'embedding' for this assertion, found text"),
        ("llm-rubric", EMBEDDER, "the provider openai:embedding:e only makes embeddings"),
        ("llm-rubric", {"embedding": EMBEDDER}, "provider: expected the key 'text' for this assertion"),
    ],
)
@pytest.mark.parametrize("in_options", [True, False])
def test_a_provider_that_cannot_do_it_is_replaced_by_no_other(
    tmp_path, monkeypatch, kind, provider, reason, in_options
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-1")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assertion = {"type": kind, "value": "a", **({} if in_options else {"provider": provider})}
    test = {"vars": {"q": "a"}, "assert": [assertion], "options": {"provider": provider} if in_options else {}}
    result = run(tmp_path, {**ECHO, "tests": [test]})
    assert result.statuses == ["error"]
    assert reason in result.rows[0].reason
