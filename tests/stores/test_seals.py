"""Seals of plans: only those of one's own account hold, and only as long as what they cover stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalwright.files.masker import Masker
from evalwright.model.plan import Variant
from evalwright.stores.documents import plan_from_json, plan_to_json
from evalwright.testing import a_plan

PLAN = a_plan(seal="asked for")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def stored() -> bytes:
    return plan_to_json(PLAN, Masker({}))


def seal_of(data: bytes) -> str:
    return plan_from_json("plan.json", data, {})[0].seal


def changed(**keys: object) -> bytes:
    return json.dumps({**json.loads(stored()), **keys}).encode()


def test_a_seal_of_ones_own_holds(state: Path) -> None:
    seal = seal_of(stored())
    assert len(seal) == 32
    assert seal_of(stored()) == seal, "the key stays"
    [key] = state.rglob("key")
    assert (len(key.read_bytes()), key.stat().st_mode & 0o077) == (32, 0)


def test_a_plan_that_asks_for_none_gets_none(state: Path) -> None:
    assert json.loads(plan_to_json(a_plan(), Masker({})))["seal"] == ""
    assert not state.exists()


def test_another_account_does_not_know_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = stored()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert seal_of(data) == ""
    assert not (tmp_path / "other").exists(), "who reads makes no key"


@pytest.mark.parametrize(
    "keys",
    [
        {"variants": [{"name": "v1", "adapter": "cli"}]},
        {"config_path": "x"},
        {"import_paths": ["x"]},
        {"run": {"executor": {"type": "x"}}},
        {"seal": "0" * 32},
    ],
)
def test_what_it_covers_may_not_change(keys: dict[str, object]) -> None:
    assert seal_of(changed(**keys)) == ""


@pytest.mark.parametrize("keys", [{"name": "x"}, {"cases_total": 9}])
def test_what_it_does_not_cover_may(keys: dict[str, object]) -> None:
    assert seal_of(changed(**keys))


def test_a_key_that_is_none_seals_nothing(state: Path) -> None:
    stored()
    [key] = state.rglob("key")
    key.write_bytes(key.read_bytes()[:31])
    assert json.loads(stored())["seal"] == ""


def test_an_account_without_a_place_for_a_key_seals_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    assert json.loads(stored())["seal"] == ""


def test_secrets_are_in_it_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = a_plan(seal="asked for", variants=[Variant("v1", "http", {"key": "sk-canary-1"})])
    data = plan_to_json(plan, Masker({"MY_KEY": "sk-canary-1"}))
    assert plan_from_json("plan.json", data, {"MY_KEY": "sk-rotated"})[0].seal
    assert plan_from_json("plan.json", data.replace(b"MY_KEY", b"HER_KEY"), {"HER_KEY": "x"})[0].seal == ""
