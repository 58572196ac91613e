"""Prompts that look like messages, but cannot be read as such: what OpenAI's chats are never sent."""

import pytest

from formats.promptfoo.runs import asserted, run

BROKEN = [
    '[{"role": "user", "content": "say "hi""}]',
    '- role: user\n  content: "say "hi""',
    '{"role": "user", "content": say hi}',
    '["say" hi]',
]


@pytest.mark.parametrize("prompt", [*BROKEN, "[say] hi", "[say hi]", "- roles: [", "{say} hi"])
def test_a_prompt_that_looks_like_messages_is_an_error_of_chats_of_openai(tmp_path, server, prompt):
    providers = ["openai:chat:gpt-4o", "anthropic:messages:claude-haiku-4-5"]
    prompts = [{"id": "p", "label": "p", "raw": "{{q}}"}]
    result = run(tmp_path, {"prompts": prompts, "providers": providers, "tests": [{"vars": {"q": prompt}}]})
    assert result.statuses == ["error" if prompt in BROKEN else "pass", "pass"]


def test_an_output_that_breaks_the_messages_for_a_judge_is_an_error(tmp_path, server):
    own = {"provider": "openai:chat:gpt-4o", "rubricPrompt": '- role: user\n  content: "{{output}}"'}
    result = asserted(tmp_path, 'say "hi"', {"type": "llm-rubric", "value": "polite", **own})
    assert "looks like messages and is not valid YAML" in str(result.verdicts)
    assert server.requests == []
