"""Scripts of a suite while another run of this process uses modules of the same names."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from evalwright.errors import InputError
from evalwright.model.plan import Variant
from evalwright.session import Session, import_from
from evalwright.session.imports import import_by_name
from evalwright.targets.build import build_target


@pytest.mark.parametrize("key", ["setup_script", "agent_script"])
def test_a_script_that_cannot_be_loaded_beside_another_run_is_refused_and_not_left_out(
    tmp_path: Path, key: str
) -> None:
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "letta_depot.py").write_text(f"PLACE = {place!r}\n")
    (tmp_path / "two" / "scripts.py").write_text("def prepare(client): ...\n")
    refused = []

    def other() -> None:
        with Session(), pytest.raises(InputError) as raised:
            build_target(Variant("agent", "letta_agent", {key: f"{tmp_path}/two/scripts.py:prepare"}), [])
        refused.extend(raised.value.problems)

    with Session():
        import_from([str(tmp_path / "one")])
        import_by_name("letta_depot")
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    [problem] = refused
    assert f"{tmp_path}/two/letta_depot.py" in problem.message
