"""Commands of originals are made on request only, and never in the place of one that is there."""

import runpy

import pytest

from evalwright.cli import main


@pytest.fixture
def called(capsys):
    def call(*words):
        with pytest.raises(SystemExit) as ended:
            main(words)
        said = capsys.readouterr()
        return ended.value.code, said.out + said.err

    return call


@pytest.mark.parametrize(
    ("name", "line"), [("pixie", "dataset"), ("letta-evals", "list-graders"), ("evalh", "retry-failed")]
)
def test_a_command_starts_ours(called, tmp_path, monkeypatch, capsys, name, line):
    assert called("install-commands", name, "--into", str(tmp_path))[0] == 0
    script = tmp_path / name
    assert script.stat().st_mode & 0o111
    monkeypatch.setattr("sys.argv", [str(script), "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    assert (ended.value.code, line in capsys.readouterr().out) == (0, True)


def test_a_command_of_another_is_never_overwritten_nor_removed(called, tmp_path):
    (tmp_path / "pixie").write_text("#!/bin/sh\necho original\n")
    code, printed = called("install-commands", "--into", str(tmp_path))
    assert (code, "already exists and was not written by evalwright" in printed) == (2, True)
    assert called("install-commands", "--remove", "--into", str(tmp_path))[0] == 0
    assert (tmp_path / "pixie").read_text() == "#!/bin/sh\necho original\n"
    assert not (tmp_path / "letta-evals").exists()


def test_ours_is_made_again_and_removed(called, tmp_path):
    for _ in range(2):
        assert called("install-commands", "--into", str(tmp_path))[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evalh", "letta-evals", "pixie"]
    called("install-commands", "--remove", "--into", str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_name_is_refused(called, tmp_path):
    code, printed = called("install-commands", "pixi", "--into", str(tmp_path))
    assert (code, 'did you mean "pixie"' in printed) == (2, True)
