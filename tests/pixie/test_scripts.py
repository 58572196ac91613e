"""Programs that `python -m evalwright.pixie` runs."""

import subprocess
import sys

import pytest


def run(folder, *arguments):
    command = [sys.executable, "-m", "evalwright.pixie", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def test_every_way_to_a_name_leads_to_one_surface(tmp_path):
    (tmp_path / "script.py").write_text(
        "import pixie.eval.evaluable, pixie.dataset.store\n"
        "from pixie.storage.evaluable import UNSET, Evaluable, as_evaluable\n"
        "print(pixie.eval.evaluable.Evaluable is Evaluable, pixie.DatasetStore is pixie.dataset.store.DatasetStore)\n"
    )
    assert run(tmp_path, "script.py").stdout == "True True\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "usage: python -m evalwright.pixie FILE ... | -m MODULE ...\n"),
        (["gone.py"], "there is no file 'gone.py'\n"),
        (["-m", "gone.module"], "there is no module 'gone.module'\n"),
    ],
)
def test_a_program_that_is_not_there_is_a_usage_error(tmp_path, arguments, said):
    done = run(tmp_path, *arguments)
    assert (done.returncode, done.stderr) == (2, said)
