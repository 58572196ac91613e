"""Which files are evals of skills, what their shapes mean, and what is refused with its place."""

import json

import pytest

from evalwright.errors import InputError
from evalwright.formats.discovery import suite_files
from evalwright.formats.loading import format_at, load_suite
from evalwright.formats.skills.use import concerns_skill, is_use
from evalwright.model.trace import ToolCall
from formats.skills.skill import EVALS, skill_in


def loaded(folder, evals=EVALS, **top):
    return load_suite(skill_in(folder, evals, **top), to_run=False)


def criteria(case):
    return [(spec.name, spec.config["text"]) for spec in case.evaluators if spec.type == "skill_criterion"]


def refused(folder, evals, **top):
    with pytest.raises(InputError) as raised:
        loaded(folder, evals, **top)
    return {problem.key: problem.message for problem in raised.value.problems}


def test_every_shape_of_a_criterion_is_read_in_the_order_of_the_keys(tmp_path):
    one = {
        "prompt": "x",
        "checks": ["last"],
        "expectations": [{"expectation": " ", "criterion": "e"}],
        "assertions": [
            "a",
            {"text": "t", "check": "rm -rf /"},
            {"id": 3, "text": "i", "type": "semantic"},
            {"name": "N", "description": "d"},
            {"name": "M", "check": "c"},
            "  ",
        ],
        "expected_output": "not a criterion",
    }
    suite = loaded(
        tmp_path, [one, {"id": 7, "prompt": "y", "expected_output": "own", "assertions": []}, {"prompt": "z"}]
    )
    first, second, third = suite.cases
    texts = [text for _, text in criteria(first)]
    assert texts == ["a", "t", "i", "N: d", "M: c", "e", "last"]
    assert [name for name, _ in criteria(first)] == [f"criterion-{i}" for i in range(1, 8)]
    assert (first.id, second.id, third.id) == ("1", "7", "3")
    assert criteria(second) == [("expected_output", "own")]
    assert criteria(third) == []
    said = "\n".join(map(str, suite.warnings))
    assert "assertions[5]" in said
    assert "evals[2]" in said
    assert "no verdict" in said
    everything = load_suite(suite.source, to_run=False, options={"criteria": "all"})
    assert criteria(next(iter(everything.cases)))[-1] == ("expected_output", "not a criterion")


def test_mistakes_are_told_together_with_their_places(tmp_path):
    evals = [
        {"id": 1, "prompt": " ", "assertions": "x"},
        {"id": "1", "prompt": "x", "assertions": ["ok", 5, {"weight": 1}], "should_trigger": "no"},
        {"id": True, "prompt": 3, "files": ["none.csv", "../../secret", "/abs", "evals", 4], "must_have": ["("]},
        "text",
    ]
    message = refused(tmp_path, evals)
    assert message.keys() == {
        "evals[0].prompt", "evals[0].assertions", "evals[1].id", "evals[1].assertions[1]", "evals[1].assertions[2]",
        "evals[1].should_trigger", "evals[2].id", "evals[2].prompt", "evals[2].files[0]", "evals[2].files[1]",
        "evals[2].files[2]", "evals[2].files[3]", "evals[2].files[4]", "evals[2].must_have[0]", "evals[3]",
    }  # fmt: skip
    assert "'1'" in message["evals[1].id"]
    assert "evals[0].id" in message["evals[1].id"]


@pytest.mark.parametrize(
    "document",
    [
        {"skill_name": "x", "evals": []},
        {"skill": "x", "cases": [{"id": 1, "prompt": "x"}]},
        {"skill_name": "x", "tests": [{"query": "x"}]},
        {"skill_name": "x", "test_cases": []},
        [{"id": "a", "prompt": "x", "expect": ["x"]}],
        {"evals": [{"focus": ["x"]}]},
    ],
    ids=["empty", "cases", "tests", "test_cases", "array", "focus"],
)
def test_other_shapes_are_one_message_about_what_is_expected(tmp_path, document):
    path = skill_in(tmp_path)
    path.write_text(json.dumps(document))
    with pytest.raises(InputError) as raised:
        load_suite(path)
    assert [("evals[].prompt" in problem.message) for problem in raised.value.problems] == [True]


def test_files_are_found_from_the_root_then_from_the_evals(tmp_path):
    suite = loaded(tmp_path, [{"prompt": "x", "files": ["evals/files/in.csv", "files/other.csv", "evals/files"]}])
    files = next(iter(suite.cases)).extra["workspace_files"]
    assert list(files) == ["evals/files/in.csv", "evals/files/other.csv", "evals/files"]


def test_a_skill_among_the_files_of_an_eval_is_warned_of(tmp_path):
    """The variant without the skill would be given it."""
    suite = loaded(tmp_path, [{"prompt": "x", "files": ["evals/files/in.csv", "SKILL.md"]}])
    told = {problem.key: problem.message for problem in suite.warnings}
    assert told["evals[0].files[1]"] == "'SKILL.md' is the skill: the agent without the skill gets it, too"
    assert "evals[0].files[0]" not in told


def test_evaluations_with_behaviour_files_and_logs_are_read(tmp_path):
    path = skill_in(tmp_path)
    one = {
        "id": "e", "prompt": "x", "expected_behavior": ["does"], "unexpected_behavior": ["lies"],
        "skill_should_trigger": False, "files_exist": ["out.md"], "logs_contain": ["pytest"],
    }  # fmt: skip
    path.write_text(json.dumps({"evaluations": [one]}))
    case = next(iter(load_suite(path, to_run=False).cases))
    assert [text for _, text in criteria(case)] == ["does", "This does not happen: lies"]
    assert [spec.type for spec in case.evaluators[2:]] == ["skill_file", "skill_transcript", "skill_used"]
    assert case.extra["skill_eval"]["should_trigger"] is False


def test_names_of_the_skill_and_what_is_missing_are_warned_of(tmp_path):
    suite = loaded(tmp_path, skill_name="other", notes="n", owner="me")
    text = "\n".join(map(str, suite.warnings))
    assert suite.name == "other"
    assert "'gsm8k-cot'" in text
    assert "owner" in text
    assert "notes" not in text
    (tmp_path / "gsm8k-cot/SKILL.md").unlink()
    suite = load_suite(suite.source, to_run=False)
    assert any("SKILL.md" in str(warning) for warning in suite.warnings)
    with pytest.raises(InputError, match=r"SKILL\.md"):
        load_suite(suite.source, options={"agent": ("/bin/true",)})


@pytest.mark.parametrize(
    ("given", "top", "key", "said"),
    [
        ({}, {"skill": "third"}, "skill", "'third' is not used: skill_name is 'gsm8k-cot'"),
        ({}, {"evaluations": []}, "evaluations", "there is evals, too"),
        ({"metadata": [1]}, {}, "evals[0].metadata", "expected an object, found a list"),
    ],
)
def test_what_is_not_used_is_warned_of(tmp_path, given, top, key, said):
    suite = loaded(tmp_path, [{"prompt": "x", "assertions": ["a"], **given}], **top)
    assert [(problem.key, said in problem.message) for problem in suite.warnings] == [(key, True)]


def test_flags_that_contradict_each_other_are_a_mistake(tmp_path):
    one = {"prompt": "x", "should_trigger": True, "skill_should_trigger": False}
    assert refused(tmp_path, [one]) == {"evals[0].skill_should_trigger": "it contradicts should_trigger"}
    assert next(iter(loaded(tmp_path, [{**one, "skill_should_trigger": True}]).cases)).extra["skill_eval"][
        "should_trigger"
    ]


def test_files_folders_and_strangers_are_told_apart(tmp_path):
    path = skill_in(tmp_path)
    root = path.parents[1]
    for folder in (root, root / "evals"):
        assert suite_files([folder]).files == [path]
    other = root / "anything.json"
    other.write_text(path.read_text())
    assert format_at(other).name == "skills"
    for text in ('[{"input": "x", "ideal": "y"}]', '{"evals": [{"prompt": "x", "input": "y"}]}', '{"evals": 3}'):
        other.write_text(text)
        with pytest.raises(InputError):
            format_at(other)
    path.write_text('{"eval": {"name": "x"}, "dataset": {}, "systems": []}')
    assert format_at(path).name == "native"
    for half in (path, other):
        half.write_text('{"evals": [{"prompt": "x",\n"assertions": ["y", "\\ud800 x"]}]}')
        assert format_at(half).name == "skills"
        with pytest.raises(InputError, match="without its other half") as raised:
            load_suite(half, to_run=False)
        assert [(problem.line, problem.key) for problem in raised.value.problems] == [(2, "evals[0].assertions[1]")]
    path.write_text('{"evals": [')
    with pytest.raises(InputError, match="broken JSON"):
        format_at(path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "--agent"),
        ({"agent": ("cloude",)}, "claude"),
        ({"agent": ("claude",), "allow_tools": True, "agent_command": "/no/such 'x"}, "command line"),
        ({"agent": ("claude",), "allow_tools": True, "agent_command": "/no/such"}, "/no/such"),
        ({"agent": ("claude",), "agent_command": "/bin/true"}, "with your rights"),
        ({"agent": ("/bin/true",), "variants": "with_skil"}, "with_skill"),
        ({"agent": ("/bin/true",), "baseline": "."}, r"SKILL\.md"),
        ({"agent": ("/bin/true", "/bin/echo"), "gate": "better"}, "one agent"),
        ({"agent": ("command",)}, "--agent-command"),
    ],
)
def test_mistakes_in_options_are_refused_before_anything_runs(tmp_path, options, said):
    with pytest.raises(InputError, match=said):
        load_suite(skill_in(tmp_path), options=options)


def test_a_file_that_only_yaml_reads_is_warned_of(tmp_path):
    path = skill_in(tmp_path, EVALS)
    file = path if path.is_file() else path / "evals" / "evals.json"
    file.write_text(file.read_text().rstrip().removesuffix("}") + ",\n}")
    (told,) = [str(warning) for warning in load_suite(path, to_run=False).warnings if "original" in str(warning)]
    assert "the original does not read this file: line" in told


@pytest.mark.parametrize(
    ("name", "arguments", "used"),
    [
        ("Skill", {"command": "tables"}, True),
        ("Read", {"file_path": "/w/.claude/skills/tables/SKILL.md"}, True),
        ("Bash", {"command": "cat .claude/skills/tables/SKILL.md", "description": "look"}, True),
        ("Write", {"file_path": "a.md", "content": "see .claude/skills/tables/SKILL.md"}, False),
        ("Edit", {"file_path": "a.md", "new_string": ".claude/skills/tables/SKILL.md"}, False),
        ("Read", {"file_path": "tables.md"}, False),
        ("Bash", {"command": "cd .claude/skills/tables && cat SKILL.md"}, True),
        ("Grep", {"path": ".claude/skills/tables", "glob": "SKILL.md"}, True),
        ("Bash", {"command": "ls .claude/skills/tables"}, False),
        ("Read", {"file_path": ".claude/skills/tables/scripts/x.py"}, False),
    ],
)
def test_a_skill_is_used_by_what_loads_it_not_by_what_quotes_its_path(name, arguments, used):
    assert is_use(ToolCall(name, "1", arguments), "tables") is used


def test_a_look_into_the_folder_of_the_skill_is_hidden_from_judges_too():
    assert concerns_skill(ToolCall("Bash", "1", {"command": "ls .claude/skills/tables"}), "tables")


def test_placeholders_in_prompts_are_sent_unchanged_with_a_warning(tmp_path):
    prompts = ["In {{FIXTURE_RUST}}, add x", "GET http://127.0.0.1:{PORT}/", 'fix `{ name: "" }` and {x}']
    suite = loaded(tmp_path, [{"prompt": prompt, "expected_output": "x"} for prompt in prompts], note="of its author")
    said = [str(warning) for warning in suite.warnings if "unchanged" in str(warning) or "note" in str(warning)]
    assert [one.split("prompt  ")[-1] for one in said] == [
        "{{FIXTURE_RUST}} is sent unchanged: nothing fills it in",
        "{PORT} is sent unchanged: nothing fills it in",
    ]
    assert [case.input["prompt"] for case in suite.cases] == prompts
