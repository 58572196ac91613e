"""What later tests get to know of earlier ones: turns of a conversation, outputs under a name."""

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.model.plan import Shard
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from formats.promptfoo.runs import ECHO, run, write

TURNS = "{% for turn in _conversation %}[{{turn.input}}|{{turn.output}}|{{turn.metadata.n}}]{% endfor %}{{q}}"
PROVIDER = """
def call_api(prompt, options, context):
    if context['vars']['q'] == 'boom':
        return {'error': 'overloaded'}
    return {'output': context['vars']['q'].upper(), 'metadata': {'n': 1}}
"""


def test_a_turn_has_the_output_of_the_provider_and_is_kept_if_that_fails(tmp_path):
    tests = [{"vars": {"q": q}, "options": {"transform": "context.vars.q"}} for q in ("a", "boom", "c")]
    result = run(tmp_path, {"prompts": [TURNS], "providers": ["file://p.py"], "tests": tests}, **{"p.py": PROVIDER})
    assert result.statuses == ["pass", "error", "pass"]
    asked = [trace.extra["promptfoo"]["prompt"] for trace in result.traces.values()]
    assert asked == ["a", "[a|A|1]boom", "[a|A|1][[a|A|1]boom||]c"]


def test_an_attempt_that_failed_is_no_turn_of_the_next_one(tmp_path):
    flaky = """
calls = []
def call_api(prompt, options, context):
    calls.append(prompt)
    if len(calls) == 1:
        raise ConnectionError('try again')
    return {'output': 'x'}
"""
    tests = [{"vars": {"q": "a"}}, {"vars": {"q": "b"}}]
    config = {"prompts": [TURNS], "providers": ["file://p.py"], "tests": tests}
    result = run(tmp_path, config, **{"p.py": flaky})
    asked = [trace.extra["promptfoo"]["prompt"] for trace in result.traces.values()]
    assert asked[0] == "a"
    assert asked[1].count("[a|") == 1


def test_an_empty_output_is_not_stored(tmp_path):
    tests = [{"vars": {"q": q}, "options": {"storeOutputAs": "last"}} for q in ("a", "")]
    tests.append({"vars": {"q": "{{last}}b"}})
    assert run(tmp_path, {**ECHO, "tests": tests}).outputs == ["a", "", "ab"]


def test_prompts_in_files_of_json_are_written_without_blanks(tmp_path):
    config = {
        "prompts": ["file://p.json", "file://p.yaml"],
        "providers": ["echo"],
        "tests": [{"vars": {"q": "x"}, "options": {"prefix": "P "}}],
    }
    files = {"p.json": '[{"role": "user", "content": "{{q}}"}]', "p.yaml": "- role: user\n  content: '{{q}}'\n"}
    assert run(tmp_path, config, **files).outputs == ['P [{"role":"user","content":"x"}]'] * 2


def test_functions_of_prompts_get_variables_as_they_are_written(tmp_path):
    config = {"prompts": ["file://p.py:get"], "providers": ["echo"], "tests": [{"vars": {"q": "a\n", "r": "{{q}}b"}}]}
    function = "def get(context):\n    return repr(context['vars']['q']) + context['vars']['r']\n"
    assert run(tmp_path, config, **{"p.py": function}).outputs == ["'a\\n'ab"]


def test_a_function_of_a_prompt_sees_the_earlier_turns(tmp_path):
    function = (
        "def get(context):\n    given = context['vars']\n    return str(len(given['_conversation'])) + given['q']\n"
    )
    config = {"prompts": ["file://p.py:get"], "providers": ["echo"], "tests": [{"vars": {"q": q}} for q in "abc"]}
    assert run(tmp_path, config, **{"p.py": function}).outputs == ["0a", "1b", "2c"]


def test_variables_that_code_makes_are_added_to_those_of_the_test(tmp_path):
    options = {"transformVars": "{session: context.uuid}"}
    tests = [{"vars": {"q": q}, "options": options} for q in "ab"]
    result = run(tmp_path, {**ECHO, "prompts": ["{{q}} {{session}}"], "tests": tests})
    names, sessions = zip(*(output.split(" ") for output in result.outputs), strict=True)
    assert (names, len({*sessions}), {len(session) for session in sessions}) == (("a", "b"), 2, {36})


def test_the_environment_turns_off_turns_and_lists(tmp_path, monkeypatch):
    prompts = ["{% for turn in _conversation %}>{% endfor %}{{q}}"]
    config = {"prompts": prompts, "providers": ["echo"], "tests": [{"vars": {"q": ["a", "b"]}}, {"vars": {"q": "c"}}]}
    assert run(tmp_path, config).outputs == ["a", ">b", ">>c"]
    for name in ("CONVERSATION_VAR", "VAR_EXPANSION"):
        monkeypatch.setenv(f"PROMPTFOO_DISABLE_{name}", "true")
    assert run(tmp_path, config).outputs == ["a,b", "c"]


@pytest.mark.parametrize("chosen", [{"shard": Shard(1, 2)}, {"until_decided": True, "against": "runs"}])
def test_a_conversation_is_neither_divided_nor_reordered(tmp_path, chosen):
    suite = load_suite(
        write(tmp_path, {"prompts": [TURNS], "providers": ["echo"], "tests": [{"vars": {"q": q}} for q in "ab"]})
    )
    with pytest.raises(InputError, match=r"test-1 continues from test-0, so all cases .* without --"):
        run_suite(suite, RunOptions(out=tmp_path / "out", **chosen))
    assert not list((tmp_path / "out").glob("*/plan.json"))


def test_tests_of_conversations_of_their_own_can_be_divided(tmp_path):
    tests = [{"vars": {"q": q}, "metadata": {"conversationId": q}} for q in "ab"]
    suite = load_suite(write(tmp_path, {"prompts": [TURNS], "providers": ["echo"], "tests": tests}))
    assert run_suite(suite, RunOptions(out=tmp_path / "out", shard=Shard(2, 2))).exit_code == 0
