"""Which provider judges an assertion, and that no other one does in its place."""

import pytest

from evalwright.formats.loading import load_suite
from formats.promptfoo.runs import ECHO, run, write

CHAT, EMBEDDER = "openai:gpt-4o", "openai:embedding:e"


@pytest.mark.parametrize(
    ("kind", "provider", "reason"),
    [
        ("similar", CHAT, "the provider openai:gpt-4o makes no embeddings"),
        ("similar", {"text": CHAT}, "provider: expected the key 'embedding' for this assertion, found text"),
        ("llm-rubric", EMBEDDER, "the provider openai:embedding:e only makes embeddings"),
        ("llm-rubric", {"embedding": EMBEDDER}, "provider: expected the key 'text' for this assertion"),
        ("moderation", CHAT, "the provider openai:gpt-4o makes no moderations"),
        ("llm-rubric", "openai:moderation", "the provider openai:moderation only makes moderations"),
    ],
)
@pytest.mark.parametrize("in_options", [True, False])
def test_a_provider_that_cannot_do_it_leaves_its_cells_without_a_verdict(tmp_path, kind, provider, reason, in_options):
    """As in promptfoo, all other cells are judged, and a warning says so before the run."""
    value = [] if kind == "moderation" else "a"
    assertion = {"type": kind, "value": value, **({} if in_options else {"provider": provider})}
    inner = [{"type": "assert-set", "assert": [assertion]}] if in_options else [assertion]
    test = {"vars": {"q": "a"}, "assert": inner, "options": {"provider": provider} if in_options else {}}
    tests = [test, {**test, "options": {}, "assert": [{"type": "equals", "value": "a"}]}]
    [warning] = load_suite(write(tmp_path, {**ECHO, "tests": tests})).warnings
    assert reason in warning.message
    assert warning.key == ("tests[0].options.provider" if in_options else "tests[0].assert[0].provider")
    assert run(tmp_path, {**ECHO, "tests": tests}).statuses == ["error", "pass"]


def test_a_grader_of_all_tests_is_reported_once(tmp_path):
    """It must do what the assertions want that have no grader of their own."""
    tests = [
        {"vars": {"q": q}, "assert": [{"type": "similar", "value": q}, {"type": "llm-rubric", "value": q}]}
        for q in "ab"
    ]
    default = {"options": {"provider": CHAT}, "assert": [{"type": "answer-relevance", "provider": CHAT}]}
    suite = load_suite(write(tmp_path, {**ECHO, "defaultTest": default, "tests": tests}))
    assert [warning.key for warning in suite.warnings] == [
        "defaultTest.assert[0].provider",
        "defaultTest.options.provider",
    ]
    own = [{"type": "similar", "value": "a", "provider": EMBEDDER}, {"type": "llm-rubric", "value": "a"}]
    tests = [{"vars": {"q": "a"}, "assert": own}]
    default = {"options": {"provider": CHAT}}
    assert not load_suite(write(tmp_path, {**ECHO, "defaultTest": default, "tests": tests})).warnings
