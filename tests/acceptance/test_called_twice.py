"""The command line can be called again and again in one process."""

import pytest

from evalwright.cli import main


def test_one_command_does_not_break_the_next(capsys):
    for _ in range(2):
        with pytest.raises(SystemExit) as end:
            main(["list", "targets"])
        assert end.value.code == 0
    assert "replay" in capsys.readouterr().out
