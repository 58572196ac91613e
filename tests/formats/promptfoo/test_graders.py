"""Which provider judges an assertion, and that no other one does in its place."""

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from formats.promptfoo.runs import ECHO, write

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
def test_a_provider_that_cannot_do_it_is_a_mistake(tmp_path, kind, provider, reason, in_options):
    """promptfoo asks another model instead."""
    assertion = {"type": kind, "value": "a", **({} if in_options else {"provider": provider})}
    inner = [{"type": "assert-set", "assert": [assertion]}] if in_options else [assertion]
    test = {"vars": {"q": "a"}, "assert": inner, "options": {"provider": provider} if in_options else {}}
    with pytest.raises(InputError) as refused:
        load_suite(write(tmp_path, {**ECHO, "tests": [test, {**test, "options": {}, "assert": []}]}))
    (problem,) = refused.value.listed
    assert reason in problem.message
    assert problem.key == ("tests[0].options.provider" if in_options else "tests[0].assert[0].provider")


def test_a_grader_of_all_tests_is_reported_once(tmp_path):
    """It must do what the assertions want that have no grader of their own."""
    tests = [
        {"vars": {"q": q}, "assert": [{"type": "similar", "value": q}, {"type": "llm-rubric", "value": q}]}
        for q in "ab"
    ]
    default = {"options": {"provider": CHAT}, "assert": [{"type": "answer-relevance", "provider": CHAT}]}
    with pytest.raises(InputError) as refused:
        load_suite(write(tmp_path, {**ECHO, "defaultTest": default, "tests": tests}))
    assert [problem.key for problem in refused.value.listed] == [
        "defaultTest.options.provider",
        "defaultTest.assert[0].provider",
    ]
    own = [{"type": "similar", "value": "a", "provider": EMBEDDER}, {"type": "llm-rubric", "value": "a"}]
    tests = [{"vars": {"q": "a"}, "assert": own}]
    load_suite(write(tmp_path, {**ECHO, "defaultTest": {"options": {"provider": CHAT}}, "tests": tests}))
