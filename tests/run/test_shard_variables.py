"""Shards of one run with other values of its variables, and suites that are another run."""

import re

import pytest

from evalwright.errors import InputError
from evalwright.model.plan import Shard
from evalwright.run.merge import merge
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from run.stored import cut, stored
from run.suites import suite


def with_variable(tmp_path, name, value, **system):
    """A suite that takes a value from a variable of this name."""
    made = suite(tmp_path, ["done"] * 7)
    made.document = {"systems": [{"name": "main", "login": value, **system}]}
    made.secrets = {name: value}
    return made


def test_shards_may_have_keys_of_their_own_and_others_later(tmp_path, agents):
    options = RunOptions(shard=Shard(1, 2), out=tmp_path / "out")
    first = run_suite(with_variable(tmp_path, "SHOP_API_KEY", "sk-of-monday"), options).run_dir
    for name in ("traces", "results", "verdicts"):
        cut(first / f"{name}.jsonl", 2)
    agents.calls.clear()
    again = run_suite(with_variable(tmp_path, "SHOP_API_KEY", "sk-of-tuesday"), options)
    assert (again.run_dir, len(agents.calls)) == (first, 2)
    options = RunOptions(shard=Shard(2, 2), out=tmp_path / "out")
    second = run_suite(with_variable(tmp_path, "SHOP_API_KEY", "sk-of-wednesday"), options).run_dir
    merged = merge([second, first], tmp_path / "merged").run_dir
    of_suite = {(folder / "config_hash.txt").read_text() for folder in (first, merged)}
    assert of_suite == {stored(merged, "plan.json")["config_hash"] + "\n"}


def test_the_plan_and_the_documents_of_a_merged_run_are_those_of_its_earliest_shard(tmp_path):
    folders = {}
    for index in (2, 1, 3):
        made = with_variable(tmp_path, "SHOP_API_KEY", f"sk-of-machine-{index}")
        folders[index] = run_suite(made, RunOptions(shard=Shard(index, 3), out=tmp_path / "out")).run_dir
    merged = merge(folders.values(), tmp_path / "merged").run_dir
    first, plan = stored(folders[2], "plan.json"), stored(merged, "plan.json")
    assert (plan["started_at"], plan["config_hash"]) == (first["started_at"], first["config_hash"])
    assert (merged / "config_hash.txt").read_bytes() == (folders[2] / "config_hash.txt").read_bytes()


@pytest.mark.parametrize(
    ("name", "value", "system", "said"),
    [
        ("SHOP_MODEL", "other-model", {}, "a variable that the suite uses has another value"),
        ("SHOP_API_KEY", "one-model", {"top_k": 3}, "systems[0].top_k is missing, not 3"),
    ],
)
def test_a_suite_that_differs_in_more_than_keys_is_another_one(tmp_path, name, value, system, said):
    options = RunOptions(shard=Shard(1, 2), out=tmp_path / "out")
    first = run_suite(with_variable(tmp_path, name, "one-model"), options).run_dir
    with pytest.raises(InputError, match=re.escape(said)):
        run_suite(with_variable(tmp_path, name, value, **system), options)
    options = RunOptions(shard=Shard(2, 2), out=tmp_path / "other")
    second = run_suite(with_variable(tmp_path, name, value, **system), options).run_dir
    with pytest.raises(InputError, match=re.escape(said.replace("is missing, not 3", "is 3, not missing"))):
        merge([first, second], tmp_path / "merged")
