"""What a command is given, what becomes of its output, and which configurations are refused."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from evalwright.errors import InputError, TargetError
from evalwright.model.plan import Variant
from evalwright.model.snapshot import Case
from evalwright.registry import load

CASE = Case(id="c1", input={"user_message": 'say "hi"', "n": 3}, metadata={"k": [1, 2]})


def target(program, *, evalh_rules=False, **config):
    command = {"command": [sys.executable, "-c", program], **config}
    return load("targets", "cli")(Variant("v", "cli", command, evalh_rules=evalh_rules))


def answer(program, **config):
    return asyncio.run(target(program, **config).run(CASE, 0))


def failure(program, **config):
    with pytest.raises(TargetError) as raised:
        answer(program, **config)
    assert raised.value.type == "adapter_error"
    return str(raised.value)


def refused(**config):
    with pytest.raises(InputError) as raised:
        load("targets", "cli")(Variant("v", "cli", config))
    return {problem.key: problem.message for problem in raised.value.problems}


def test_both_names_give_the_same_target():
    assert load("targets", "cli") is load("targets", "subprocess")


def test_a_missing_command_is_told_without_a_name_of_python():
    assert refused() == {"command": "'command' must be a list of strings, the program first, found nothing"}


def test_a_text_loses_its_trailing_newlines_only():
    assert answer("print(' a\\n\\n b \\n\\n')").output.final_answer == " a\n\n b "


def test_the_template_is_filled_in_and_given_as_stdin():
    template = "{{input.user_message}}|{{ case_id }}|{{ input | json }}|{{ case.metadata.k }}|{{ x y"
    got = answer("import sys; print(sys.stdin.read())", stdin_template=template).output.final_answer
    assert got == f'say "hi"|c1|{json.dumps(CASE.input)}|[1, 2]|{{{{ x y'


def test_a_command_without_template_has_an_empty_stdin():
    assert answer("import sys; print(repr(sys.stdin.read()))").output.final_answer == "''"


def test_arguments_are_not_read_by_a_shell():
    made = load("targets", "cli")(Variant("v", "cli", {"command": ["/bin/echo", "$HOME; `id` *"]}))
    assert asyncio.run(made.run(CASE, 0)).output.final_answer == "$HOME; `id` *"


def test_the_environment_is_what_the_configuration_says_and_nothing_else(monkeypatch):
    monkeypatch.setenv("EVALWRIGHT_TEST_CANARY", "leaked")
    got = answer("import os; print(sorted(os.environ))", env={"FOO": "bar", "LC_ALL": "C.UTF-8"}).output.final_answer
    assert got == "['FOO', 'LC_ALL']"


def test_the_command_runs_in_its_folder(tmp_path):
    assert answer("import os; print(os.getcwd())", cwd=str(tmp_path)).output.final_answer == str(tmp_path)


def test_an_object_is_the_structured_answer_and_gives_its_texts():
    settings = {"final_answer": "kiwi", "thinking": "hm", "n": 1}
    output = answer(f"import json; print(json.dumps({settings!r}))", parse_stdout_as="json").output
    assert (output.final_answer, output.thinking, output.structured) == ("kiwi", "hm", settings)


@pytest.mark.parametrize(
    ("printed", "text"), [('{"final_answer": 5}', "5"), ('{"final_answer": ""}', ""), ('"x"', "x"), ('{"n": 1}', None)]
)
def test_the_answer_in_json_is_a_text_or_a_number(printed, text):
    output = answer(f"print({printed!r})", parse_stdout_as="json", allow_missing=["final_answer"]).output
    assert output.final_answer == text


@pytest.mark.parametrize("printed", ["{}", '{"answer": "x"}', '{"final_answer": null}', '{"final_answer": []}', "[1]"])
def test_json_without_an_answer_is_an_error_that_shows_it(printed):
    assert f"'final_answer' (allow_missing: [final_answer] if it may be absent): {printed}" in failure(
        f"print({printed!r})", parse_stdout_as="json"
    )


@pytest.mark.parametrize(("printed", "value"), [("[1, 2]", [1, 2]), ("3", 3), ("null", None), ('"x"', "x")])
def test_by_evalh_s_rules_other_json_is_a_value(printed, value):
    output = answer(f"print({printed!r})", parse_stdout_as="json", evalh_rules=True).output
    assert (output.final_answer, output.structured) == (None, {"value": value})
    number = answer("print('{\"final_answer\": 5}')", parse_stdout_as="json", evalh_rules=True).output
    assert (number.final_answer, number.structured) == (None, {"final_answer": 5})


@pytest.mark.parametrize("printed", ["{nope", "", "[" * 100_000, "9" * 5000])
def test_what_is_not_json_is_an_error(printed):
    assert "JSON" in failure(f"print({printed!r})", parse_stdout_as="json")


def test_what_json_text_cannot_hold_is_replaced_and_noted():
    got = answer("print('[NaN]')", parse_stdout_as="json", allow_missing=["final_answer"])
    assert (got.output.structured, len(got.extra["replaced"])) == ({"value": ["nan"]}, 1)


def test_stderr_of_a_success_is_kept_apart():
    got = answer("import sys; sys.stderr.write('note'); print('kiwi')")
    assert (got.output.final_answer, got.extra) == ("kiwi", {"stderr": "note"})


def test_a_failure_shows_the_exit_code_and_the_end_of_stderr():
    message = failure("import sys; sys.stderr.write('x' * 99999 + 'the reason'); sys.exit(3)")
    assert "exit code 3" in message
    assert message.endswith("the reason")
    assert len(message) < 3000


def test_a_command_ended_by_a_signal_shows_the_name_of_the_signal():
    assert "SIGABRT" in failure("import os; os.abort()")


def test_bytes_that_are_not_utf8_are_replaced_visibly():
    got = answer("import os; os.write(1, b'a\\xff\\xfeb')")
    assert got.output.final_answer == "a\ufffd\ufffdb"
    assert got.extra["replaced"] == ["stdout: bytes that are not UTF-8 replaced by U+FFFD"]


def test_strange_text_arrives_unchanged():
    text = "nul:\x00 ls:\u2028 nel:\x85 bidi:\u202e esc:\x1b]0;owned\x07 cr:\rlf:\nend"
    assert answer(f"import os; os.write(1, {text.encode()!r})").output.final_answer == text


def test_a_lone_surrogate_in_a_case_does_not_stop_the_command():
    case = Case(id="c", input={"q": "a\ud800b"})
    made = target("import sys; print(sys.stdin.read())", stdin_template="{{ input.q }}")
    assert asyncio.run(made.run(case, 0)).output.final_answer == "a?b"


def start(command, **config):
    made = load("targets", "cli")(Variant("v", "cli", {"command": command, **config}))
    with pytest.raises(TargetError) as raised:
        asyncio.run(made.run(CASE, 0))
    return str(raised.value)


def test_an_unknown_command_is_not_found():
    assert "not found: 'definitely-not-here-xyz'" in start(["definitely-not-here-xyz"])


def test_a_command_is_looked_for_in_the_path_it_is_given_only(tmp_path):
    program = tmp_path / "only-here"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    made = load("targets", "cli")(Variant("v", "cli", {"command": ["only-here"], "env": {"PATH": str(tmp_path)}}))
    assert asyncio.run(made.run(CASE, 0)).output.final_answer == "found"
    assert "not found" in start(["only-here"])


def test_a_file_that_is_not_executable_is_reported(tmp_path):
    (tmp_path / "plain.txt").write_text("x")
    assert "not executable" in start([str(tmp_path / "plain.txt")])


def test_a_file_that_is_no_program_is_reported(tmp_path):
    program = tmp_path / "no-program"
    program.write_bytes(b"\x00\x01")
    program.chmod(0o755)
    assert "cannot start command" in start([str(program)])


def test_a_missing_interpreter_is_reported(tmp_path):
    program = tmp_path / "script"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)
    assert "interpreter" in start([str(program)])


def test_a_missing_folder_is_reported():
    assert "'cwd'" in start(["/bin/echo"], cwd="/no/such/folder")


@pytest.mark.parametrize("command", ["echo hi", [], None, ["a", 1], [""], ["a\0b"], {"a": "b"}])
def test_a_command_that_is_no_list_of_texts_is_refused(command):
    message = refused(command=command)["command"]
    assert "'command'" in message
    assert "list" in message


@pytest.mark.parametrize(
    ("key", "value", "place"),
    [
        ("cwd", 3, "cwd"),
        ("env", ["A=b"], "env"),
        ("env", {"A": 1}, "env.A"),
        ("env", {"A=B": "x"}, "env"),
        ("env", {"": "x"}, "env"),
        ("env", {"A": "x\0y"}, "env.A"),
        ("stdin_template", {"a": 1}, "stdin_template"),
        ("parse_stdout_as", "xml", "parse_stdout_as"),
        ("parse_stdout_as", ["text"], "parse_stdout_as"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_by_its_key(key, value, place):
    assert f"'{key}'" in refused(**{"command": ["x"], key: value})[place]


def test_the_value_of_a_variable_is_not_shown():
    assert refused(command=["x"], env={"TOKEN": 12345})["env.TOKEN"].endswith("(quote it), found a number")
    assert refused(command=["x"], env="TOKEN=12345")["env"].endswith("found a text")


def test_all_mistakes_are_reported_together():
    assert refused(command="x", parse_stdout_as="xml", cwd=1).keys() == {"command", "parse_stdout_as", "cwd"}


def test_descriptors_are_not_inherited():
    names = answer("import os; print(len(os.listdir('/proc/self/fd')) if os.path.isdir('/proc') else 4)")
    assert int(names.output.final_answer) <= 4


def test_the_file_of_a_program_may_be_relative_to_its_folder(tmp_path):
    Path(tmp_path / "prog.py").write_text("print('here')")
    made = load("targets", "cli")(
        Variant("v", "cli", {"command": [sys.executable, "prog.py"], "cwd": os.fspath(tmp_path)})
    )
    assert asyncio.run(made.run(CASE, 0)).output.final_answer == "here"
