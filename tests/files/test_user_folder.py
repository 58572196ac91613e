"""What is kept for a user in their cache is theirs alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright.files.user_folder import user_folder


@pytest.mark.parametrize("there", [False, True])
def test_only_the_user_may_read_it_whoever_made_the_folders_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if there:
        (tmp_path / "cache" / "evalwright").mkdir(parents=True, mode=0o755)
    place = user_folder("indexes", "run")
    assert place == tmp_path / "cache" / "evalwright" / "indexes" / "run"
    assert {folder.stat().st_mode & 0o777 for folder in (place, tmp_path / "cache" / "evalwright")} == {0o700}
