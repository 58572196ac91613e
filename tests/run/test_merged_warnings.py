"""A merged run warns of what the run on one machine would have warned of, in the same words and numbers."""

import random

import pytest
import yaml

from evalwright import built_in
from evalwright.errors import TargetError
from evalwright.model.case import EvalCase
from evalwright.model.plan import EvaluatorSpec, RunSettings, Variant
from evalwright.model.result import Evaluation
from evalwright.model.suite import Suite
from evalwright.model.trace import Answer, Doubt
from evalwright.run.merge import merge
from evalwright.run.re_evaluation import re_evaluate
from evalwright.run.resumption import resume, retry
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run
from run.merging import sharded, summary
from run.suites import PROJECT, suite

NEVER = Doubt("$.tools found nothing", if_all=True)
KINDS = [NEVER, Doubt("$.cost found nothing", if_all=True), *(Doubt(what) for what in ("cut off", "no end", "odd"))]


class Doubtful:
    """Answers with the doubts that its case names, each with an example of its own."""

    def __init__(self, variant):
        self._name = variant.name

    async def run(self, case, trial):
        kinds = case.input[self._name]
        if kinds is None:
            raise TargetError("down")
        doubts = [Doubt(KINDS[n].what, f"{case.id} {trial}", KINDS[n].if_all) for n in kinds]
        return Answer.of("done", doubts=doubts)

    async def close(self):
        if self._name != "a":
            raise ValueError("still busy")


class Asked:
    def evaluate(self, case, trace):
        return Evaluation(True, skipped=case.input["skip"])


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(built_in.KINDS["evaluators"], "asked", f"{__name__}:Asked")
    monkeypatch.setitem(built_in.KINDS["targets"], "doubtful", f"{__name__}:Doubtful")


def drawn_suite(folder, dice):
    names = ["b", "a", "b: c"][: dice.randint(1, 3)]
    usual = {name: dice.sample(range(5), dice.randint(0, 3)) for name in names}

    def drawn(name):
        draw = dice.random()
        return None if draw < 0.1 else usual[name] if draw < 0.8 else dice.choices(range(5), k=dice.randint(0, 6))

    inputs = [{name: drawn(name) for name in names} for _ in range(dice.randint(1, 12))]
    choice = dice.choice([[], [EvaluatorSpec("called", "contains_text", {"all_of": ["done"]})]])
    return Suite(
        name="drawn",
        dialect="evalh",
        source=PROJECT / "eval.yaml",
        cases=[EvalCase(id=f"c{n}", input=value) for n, value in enumerate(inputs)],
        variants=[Variant(name, "doubtful", trials=dice.choice([None, 2])) for name in names],
        evaluators=choice,
        run=RunSettings(
            max_concurrency=dice.randint(1, 6), stop_after_errors=0, cost_limit_usd=dice.choice([None, 1.0])
        ),
        out=folder / "runs",
    )


@pytest.mark.parametrize("seed", range(12))
def test_of_any_shards(tmp_path, seed):
    dice = random.Random(seed)
    made = drawn_suite(tmp_path, dice)
    one = run_suite(made)
    parts = sharded(made, dice.randint(2, 5), tmp_path / "shards")
    dice.shuffle(parts)
    merged = merge(parts, tmp_path / "merged")
    assert merged.summary.warnings == one.summary.warnings
    assert summary(merged.run_dir) == summary(one.run_dir)


def doubted(folder, *kinds):
    return suite(folder, [{"a": kind} for kind in kinds], variants=[Variant("a", "doubtful")], max_concurrency=1)


def test_what_was_found_in_one_shard_only_was_found(tmp_path):
    made = doubted(tmp_path, [0, 2], [], [0, 2], [2])
    parts = sharded(made, 2, tmp_path)
    assert "a: $.tools found nothing in any of 2 replies" in open_run(parts[0])[0].summary().warnings
    assert merge(parts, tmp_path / "merged").summary.warnings == ["a: cut off in 3 of 4 replies: c0 0"]


def test_what_follows_from_a_shard_s_numbers_says_nothing_about_the_run(tmp_path):
    inputs = [{"a": [], "skip": True}, {"a": [], "skip": False}]
    asked = [EvaluatorSpec("asked", "asked")]
    made = suite(tmp_path, inputs, variants=[Variant("a", "doubtful")], evaluators=asked)
    parts = sharded(made, 2, tmp_path)
    warnings = [open_run(part)[0].summary().warnings for part in parts]
    assert warnings == [["nothing was judged: every cell was skipped"], []]
    assert merge(parts, tmp_path / "merged").summary.warnings == []


def test_counts_stay_when_a_shard_is_judged_again_and_are_made_anew_when_it_is_called_again(tmp_path):
    parts = sharded(doubted(tmp_path, [2], None, [2], [3]), 2, tmp_path)
    expected = ["a: cut off in 2 of 3 replies: c0 0", "a: no end in 1 of 3 replies: c3 0"]
    assert merge(parts, tmp_path / "merged").summary.warnings == expected
    re_evaluate(parts[0])
    resume(parts[1])
    assert merge(parts, tmp_path / "other").summary.warnings == expected
    retry(parts[1])  # only c1 is called, which fails as before
    assert merge(parts, tmp_path / "third").summary.warnings == ["a: cut off in 2 of 2 replies: c0 0"]


def test_shards_of_an_older_version_keep_their_warnings_as_they_are(tmp_path):
    parts = sharded(doubted(tmp_path, [0, 2], [], [0, 2], [2]), 2, tmp_path)
    older = yaml.safe_load((parts[1] / "summary.yaml").read_text())
    del older["to_merge"]
    (parts[1] / "summary.yaml").write_text(yaml.safe_dump(older, sort_keys=False))
    assert merge(parts, tmp_path / "merged").summary.warnings == [
        "a: $.tools found nothing in any of 2 replies",
        "a: cut off in 2 of 2 replies: c0 0",
        "a: cut off in 1 of 2 replies: c3 0",
    ]
