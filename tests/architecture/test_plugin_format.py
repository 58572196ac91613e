"""A format of another package is an equal of ours: found by its entry point, it does all that ours do."""

import json
import os
from pathlib import Path

import pytest

import warm

pytestmark = [
    pytest.mark.cold,  # which packages there are is asked when a process starts
    pytest.mark.slow("starts interpreters"),
]

TOY = Path(__file__).parent / "toy"
SUITE = """\
# toy manners
answer agent.py:answer
hello -> hello, please
bye -> BYE, please
"""
AGENT = """\
from toylib import polite
def answer(text):
    return polite(text) if text == "hello" else polite(text).upper()
"""
EVAL = """\
eval: {name: plain}
dataset: {type: yaml, path: cases.yaml}
systems: [{name: s, adapter: replay}]
evaluators: [{name: e, type: answered}]
output: [{type: local_files, path: runs}]
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "manners.toy").write_text(SUITE)
    (tmp_path / "agent.py").write_text(AGENT)
    return tmp_path


def evalwright(folder, *words, site=TOY):
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    return warm.run(["-m", "evalwright", *words], cwd=folder, env={**os.environ, "PYTHONPATH": path, "COLUMNS": "120"})


def summary(done):
    return json.loads(done.stdout)["summary"]


def test_it_is_listed_with_its_package_and_so_is_what_it_adds(folder):
    stdout = evalwright(folder, "list", "formats").stdout
    [line] = [line for line in stdout.splitlines() if line.startswith("toy")]
    assert line.split() == ["toy", *["Questions", "and", "answers,", "line", "by", "line."], "evalwright-toy"]
    assert "toy_agent" in evalwright(folder, "list", "targets").stdout
    assert "\nToy\n  toy_same  " in evalwright(folder, "list", "evaluators").stdout


def test_a_suite_is_validated_with_the_places_of_its_mistakes(folder):
    assert evalwright(folder, "validate", "manners.toy").stdout == "ok: 2 cases, 1 variant, 1 evaluator\n"
    (folder / "bad.toy").write_text(SUITE + "no arrow\n")
    done = evalwright(folder, "validate", "bad.toy")
    assert (done.returncode, done.stderr.split()[:2]) == (2, ["bad.toy:5", "expected"])


def test_a_folder_is_searched_for_its_suites(folder):
    done = evalwright(folder, "validate", ".")
    assert (done.returncode, done.stdout) == (0, "ok: 2 cases, 1 variant, 1 evaluator\n")


def test_a_run_has_its_totals_and_its_gate_and_user_code_imports_what_it_stands_in_for(folder):
    done = evalwright(folder, "run", "manners.toy", "--json")
    assert (summary(done)["native"], summary(done)["gate"]["passed"]) == ({"right": 1, "asked": 2}, True)


def test_an_installed_package_goes_before_what_stands_in_for_it(folder):
    (folder / "toylib.py").write_text("def polite(text):\n    return f'{text}, please'.title()\n")
    done = evalwright(folder, "run", "manners.toy", "--json")
    assert summary(done)["native"] == {"right": 0, "asked": 2}


def test_its_options_are_under_its_heading_and_reach_it(folder):
    stdout = evalwright(folder, "run", "--help").stdout
    options = stdout.partition("\nToy options:\n")[2]
    assert [line.split()[0] for line in options.splitlines() if line.startswith("  --")] == ["--loud", "--first"]
    assert summary(evalwright(folder, "run", "manners.toy", "--loud", "--json"))["native"]["right"] == 1
    assert summary(evalwright(folder, "run", "manners.toy", "--first", "1", "--json"))["native"]["asked"] == 1
    assert "expected a whole number" in evalwright(folder, "run", "manners.toy", "--first", "0").stderr


def test_a_suite_of_another_format_rejects_its_options_by_name(folder):
    (folder / "eval.yaml").write_text(EVAL)
    done = evalwright(folder, "validate", "eval.yaml", "--loud")
    assert (done.returncode, "--loud: not an option of the format native" in done.stderr) == (2, True)


@pytest.mark.slow("two conversions, each compared with its original")
def test_it_is_converted_to_native_and_back_without_loss(folder):
    done = evalwright(folder, "convert", "manners.toy", "--out", "native")
    assert (done.returncode, "lost" in done.stderr) == (0, False)
    assert summary(evalwright(folder, "run", "native/eval.yaml", "--json"))["native"] == {"right": 1, "asked": 2}
    done = evalwright(folder, "convert", "native/eval.yaml", "--to", "toy", "--out", "back")
    assert (done.returncode, "lost" in done.stderr) == (0, False)
    assert (folder / "back" / "suite.toy").read_text() == SUITE.replace("agent.py", str(folder / "agent.py"))


def test_it_has_a_command(folder):
    done = evalwright(folder, "toy", "hi")
    assert (done.returncode, done.stdout) == (3, "toy says hi\n")


def distribution(folder, module, points):
    (folder / "extra.py").write_text(module)
    info = folder / "extra-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extra\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)
    return folder


OTHER = """\
from evalwright.model.format import Format, Option
FORMAT = Format(
    name="other", title="Other", summary="", suffixes=(".other",), detects="x:y", load="x:y",
    options=(Option(("--strict",), "int"),),
)
"""


def test_options_that_differ_from_those_of_another_format_are_left_out_with_a_warning(tmp_path):
    distribution(tmp_path, OTHER, "[evalwright.formats]\nother = extra:FORMAT\n")
    done = evalwright(tmp_path, "run", "--help", site=tmp_path)
    assert (done.returncode, "Other options" in done.stdout, "--strict" in done.stdout) == (0, False, True)
    assert "the options of the format 'other' of extra are left out: --strict differs from --strict of" in done.stderr


BROKEN = [
    (OTHER.replace('"other"', '"another"'), "its name is 'another', but its entry point is called 'other'"),
    ("raise RuntimeError('broken')\n", "RuntimeError: broken"),
    ("FORMAT = dict\n", "TypeError: expected a Format, found <class 'dict'>"),
]


@pytest.mark.slow("installs a distribution for each way to be broken")
@pytest.mark.parametrize(("module", "said"), BROKEN)
def test_a_format_that_cannot_be_loaded_is_named_with_its_package(tmp_path, module, said):
    distribution(tmp_path, module, "[evalwright.formats]\nother = extra:FORMAT\n")
    for asked in (["run", "x.other"], ["validate", "x.yaml", "--format", "other"]):
        (tmp_path / asked[1]).write_text("")
        done = evalwright(tmp_path, *asked, site=tmp_path)
        assert done.returncode == 2
        assert done.stderr.count("format 'other' of extra cannot be loaded") >= 1
        assert said in done.stderr


@pytest.mark.slow("installs a distribution for each way to be broken")
@pytest.mark.parametrize(("module", "said"), BROKEN)
def test_a_broken_format_keeps_nobody_from_using_the_others(tmp_path, module, said):
    distribution(tmp_path, module, "[evalwright.formats]\nother = extra:FORMAT\n")
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "eval.yaml").write_text(EVAL)
    (tmp_path / "suite" / "cases.yaml").write_text("cases: [{id: a, input: {}}]")
    help_ = evalwright(tmp_path, "run", "--help", site=tmp_path)
    validated = evalwright(tmp_path, "validate", "suite", site=tmp_path)
    assert (help_.returncode, validated.returncode) == (0, 0), help_.stderr + validated.stderr
    for done in (help_, validated):
        assert (done.stderr.count("cannot be loaded"), said in done.stderr) == (1, True)
    assert "cannot be loaded" not in evalwright(tmp_path, "--help", site=tmp_path).stderr
    assert "contains_text" in evalwright(tmp_path, "list", "evaluators", site=tmp_path).stdout
