"""Standard streams that are closed, full or without a reader, and a working directory that is gone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from shlex import quote

import pytest

from acceptance.projects import project

pytestmark = pytest.mark.cold
FULL = Path("/dev/full")


def shell(folder: Path, command: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a line for the shell; `evalwright` is ours."""
    ours = f"{quote(sys.executable)} -m evalwright"
    ended = subprocess.run(
        ["/bin/sh", "-c", command.replace("evalwright", ours)], cwd=folder, capture_output=True, text=True, check=False
    )
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_lead_nowhere(tmp_path: Path, closed: str) -> None:
    made = project(tmp_path, {"a": "thanks"})
    code, out, err = shell(made.folder, f"evalwright run eval.yaml {closed}")
    assert (code, "Internal error" in out + err) == (0, False)


def test_what_a_system_prints_where_streams_are_closed_is_in_no_file_of_the_run(tmp_path: Path) -> None:
    made = project(tmp_path, {"a": "thanks"})
    agent = made.folder / "agent.py"
    agent.write_text(f"import os\nfor n in (1, 2): os.write(n, b'heron')\n{agent.read_text()}")
    assert shell(made.folder, "evalwright run eval.yaml <&- >&- 2>&-")[0] == 0
    assert [path for path in made.folder.rglob("runs/*/*") if path.is_file() and b"heron" in path.read_bytes()] == []


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "command",
    [
        "run eval.yaml --json",
        "list formats --json",
        *(
            pytest.param(words, marks=pytest.mark.slow("starts interpreters"))
            for words in ("report runs/*", "inspect runs/*")
        ),
    ],
)
def test_a_text_that_a_full_disk_swallows_is_an_error(tmp_path: Path, command: str) -> None:
    made = project(tmp_path, {"a": "thanks"})
    assert shell(made.folder, "evalwright run eval.yaml")[0] == 0
    code, _, err = shell(made.folder, f"evalwright {command} > {FULL}")
    assert (code, "cannot write to standard output: No space left on device" in err) == (5, True)


def test_a_reader_that_has_gone_is_none(tmp_path: Path) -> None:
    code, _, err = shell(tmp_path, "{ evalwright list evaluators; echo $? >&3; } 3>&2 | true")
    assert (code, err.strip()) == (0, "0")


def test_a_working_directory_that_is_gone_is_told(tmp_path: Path) -> None:
    code, _, err = shell(tmp_path, "mkdir gone; cd gone; rmdir ../gone; evalwright list runs")
    assert (code, "the working directory no longer exists" in err) == (2, True)


def test_json_stays_json_where_the_encoding_lacks_a_character(tmp_path: Path) -> None:
    made = project(tmp_path / "é\U0001f600–", {"a": "thanks"})
    code, out, _ = shell(made.folder, "PYTHONIOENCODING=ascii evalwright run eval.yaml --json")
    assert code == 0
    assert json.loads(out)["summary"]["config_path"] == str(made.folder / "eval.yaml")


def test_json_has_no_character_on_which_a_terminal_acts(tmp_path: Path) -> None:
    answer = "thanks \x9b2J \u202eevil\u202c é"
    made = project(tmp_path, {"a": answer})
    out = made.evalwright("report", made.run(), "--format", "json").out
    assert json.loads(out)["cells"][0]["trace"]["output"]["final_answer"] == answer
    assert [one for one in "\x9b\u202e\u202c" if one in out] == []
    assert "é" in out
