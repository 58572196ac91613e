"""The command line can be called again and again in one process."""

import pytest

from evalwright.cli import main


def test_one_command_does_not_break_the_next(capsys):
    for words, said in ((["list", "targets"], "replay"), (["list", "targets"], "replay"), (["--help"], "re-evaluate")):
        with pytest.raises(SystemExit) as end:
            main(words)
        assert (end.value.code, said in capsys.readouterr().out) == (0, True)
