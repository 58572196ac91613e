"""`matrix:`, which makes one system for each combination of its values, and texts of systems in files of their own."""

import os

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from formats.suites import SOUND as SUITE
from formats.suites import write

OUTSIDE = {"path": "/etc/passwd"}
MATRIX = {
    "model": ["gpt-4o-mini", "claude-haiku-4-5"],
    "system_prompt": {"short": "Be short.", "long": {"path": "prompts/long.md"}},
}


def read(folder, system, **changes):
    (folder / "prompts").mkdir(exist_ok=True)
    (folder / "prompts" / "long.md").write_text("Be {{ input.tone }}.\nTake your time.\n")
    return load_suite(write(folder, {**SUITE, "systems": [{"name": "clerk", "adapter": "chat", **system}], **changes}))


def mistakes(folder, system, **changes):
    with pytest.raises(InputError) as raised:
        read(folder, system, **changes)
    return [(problem.key, problem.message) for problem in raised.value.problems]


def test_each_combination_is_a_system_with_a_name_to_read(tmp_path):
    suite = read(tmp_path, {"matrix": MATRIX, "temperature": 0}, run={"baseline_variant": "clerk/gpt-4o-mini/short"})
    assert [variant.name for variant in suite.variants] == [
        "clerk/gpt-4o-mini/short",
        "clerk/gpt-4o-mini/long",
        "clerk/claude-haiku-4-5/short",
        "clerk/claude-haiku-4-5/long",
    ]
    last = suite.variants[-1].config
    assert (last["model"], last["temperature"]) == ("claude-haiku-4-5", 0)
    assert last["system_prompt"] == "Be {{ input.tone }}.\nTake your time."
    assert "matrix" not in last
    assert any(path.name == "long.md" for path in suite.files)


def test_values_without_a_name_are_called_what_they_are_or_numbered(tmp_path):
    prompts = ["file://prompts/long.md", "One.\nTwo.", "x" * 41]
    suite = read(tmp_path, {"model": "gpt-5", "matrix": {"system_prompt": prompts, "temperature": [0, 0.5]}})
    assert [variant.name for variant in suite.variants] == [
        f"clerk/{prompt}/{temperature}"
        for prompt in ("long", "system_prompt 2", "system_prompt 3")
        for temperature in (0, 0.5)
    ]


@pytest.mark.parametrize(
    ("system", "key", "message"),
    [
        ({"matrix": {"sytem_prompt": ["a"]}, "model": "m"}, "systems[0].matrix.sytem_prompt[0]", '"system_prompt"'),
        ({"matrix": {"model": ["m"]}, "model": "m"}, "systems[0].matrix.model", "a key of the system as well"),
        ({"matrix": {"model": []}}, "systems[0].matrix.model", "a list of values"),
        ({"matrix": {"model": "m"}}, "systems[0].matrix.model", "a list of values"),
        ({"matrix": {"model": ["m", "m"]}}, "systems[0].matrix.model", "two values are called 'm'"),
        (
            {"model": "m", "matrix": {"system_prompt": ["file://a/p.md", "file://b/p.md"]}},
            "systems[0].matrix.system_prompt",
            "two values are called 'p'",
        ),
        ({"matrix": ["m"]}, "systems[0].matrix", "expected keys of the system"),
        ({"matrix": {"name": ["a"]}}, "systems[0].matrix.name", "cannot be varied"),
        ({"matrix": {"model": ["m", 5]}}, "systems[0].matrix.model[1]", "str"),
        ({"matrix": {"model": ["m"], "seed": [*range(1001)]}}, "systems[0].matrix", "at most 1,000 systems"),
        ({"model": "m", "system_prompt": "file://gone.md"}, "systems[0].system_prompt", "gone.md"),
        ({"model": "m", "matrix": {"system_prompt": [OUTSIDE]}}, "systems[0].matrix.system_prompt[0]", "outside"),
        ({"model": "m", "system_prompt": {"paht": "x"}}, "systems[0].system_prompt", "str"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_where_it_is_written(tmp_path, system, key, message):
    listed = mistakes(tmp_path, system)
    assert [place for place, text in listed if message in text] == [key], listed


def test_a_matrix_with_a_mistake_is_told_once(tmp_path):
    assert len(mistakes(tmp_path, {"matrix": {"model": "m"}})) == 1


def test_a_prompt_file_without_text_is_a_mistake(tmp_path):
    (tmp_path / "blank.md").write_text("\ufeff \n")  # a byte order mark is no text
    [(key, message)] = mistakes(tmp_path, {"model": "m", "matrix": {"system_prompt": ["file://blank.md"]}})
    assert (key, message.endswith("blank.md has no text")) == ("systems[0].matrix.system_prompt[0]", True)


def test_a_pipe_in_the_place_of_a_prompt_file_keeps_nobody_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe.md")
    [(key, message)] = mistakes(tmp_path, {"model": "m", "system_prompt": "file://pipe.md"})
    assert (key, message.endswith("is not a regular file")) == ("systems[0].system_prompt", True)


def test_a_system_behind_a_matrix_keeps_its_place(tmp_path):
    systems = [
        {"name": "a", "adapter": "chat", "matrix": {"model": ["x", "y", "z"]}},
        {"name": "b", "adapter": "chat", "model": "m", "temprature": 1},
    ]
    with pytest.raises(InputError) as raised:
        load_suite(write(tmp_path, {**SUITE, "systems": systems}))
    assert [problem.key for problem in raised.value.problems] == ["systems[1].temprature"]


def test_evalh_knows_no_matrix(tmp_path):
    (tmp_path / "agent.py").write_text("def answer(case, variant): return {'final_answer': ''}\n")
    system = {"name": "s", "adapter": "python_function", "target": "agent:answer", "matrix": {"model": ["a", "b"]}}
    suite = load_suite(write(tmp_path, {**SUITE, "systems": [system]}), dialect="evalh", to_run=False)
    assert [(v.name, v.config["matrix"]) for v in suite.variants] == [("s", {"model": ["a", "b"]})]
