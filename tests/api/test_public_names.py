"""The public face: which names there are, where they claim to be from, and that importing them is quick."""

import pickle
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import evalwright
from evalwright import letta, northstar, pixie, plugins, statistics, testing

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
RECORDS = ("Answer", "Case", "Evaluation", "Expected", "Result", "ToolCall", "Trace")


def test_all_is_what_can_be_seen():
    assert dir(evalwright) == sorted(evalwright.__all__)


def test_the_documentation_has_every_name_and_no_other():
    table = PAGE.read_text().partition("## Names")[2].partition("\n###")[0]
    listed = re.findall(r"^\| ((?:`\w+`(?:, )?)+)", table, re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", "".join(listed))) == sorted(evalwright.__all__)


@pytest.mark.parametrize("name", [name for name in evalwright.__all__ if name != "__version__"])
def test_every_name_is_at_home_in_the_package(name):
    found = getattr(evalwright, name)
    assert (found.__module__, found.__qualname__) == ("evalwright", name)
    assert pickle.loads(pickle.dumps(found)) is found  # noqa: S301 - our own bytes
    assert found.__doc__


@pytest.mark.parametrize("name", RECORDS)
def test_records_can_be_read_by_type_after_they_have_moved_in(name):
    kind = getattr(evalwright, name)
    assert msgspec.structs.fields(kind)
    msgspec.json.Decoder(kind)


@pytest.mark.parametrize("module", [evalwright, letta, northstar, pixie, plugins, statistics, testing])
def test_help_of_a_public_module_shows_all_its_names(module):
    shown = pydoc.plain(pydoc.render_doc(module))
    assert [name for name in module.__all__ if name != "__version__" and name not in shown] == []


@pytest.mark.parametrize("module", [letta, northstar, pixie, plugins, statistics])
def test_all_names_of_a_module_that_loads_them_late_can_be_seen(module):
    assert dir(module) == sorted(module.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="evaluat"):
        _ = evalwright.evaluat


def test_importing_the_package_imports_nothing_of_it():
    script = (
        "import sys, evalwright; print([m for m in sys.modules if m.startswith(('evalwright.', 'msgspec', 'click'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_whole_api_needs_no_command_line():
    script = "import sys, evalwright; [getattr(evalwright, n) for n in dir(evalwright)]; print('click' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_plug_ins_find_what_they_need():
    assert dir(plugins) == sorted(plugins.__all__)
    assert [name for name in plugins.__all__ if getattr(plugins, name) is None] == []
    assert {"Answer", "Evaluator", "Format", "InputError", "Store", "Target", "workspace_path"} <= set(plugins.__all__)
    assert plugins.Case is evalwright.Case


def test_an_evaluator_of_a_plug_in_needs_no_pydantic():
    script = "import sys; from evalwright.plugins import Case, Evaluation, Trace; print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
