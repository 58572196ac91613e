"""Gates of stored plans: those that suites write are read back, those that were edited by hand are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalwright.errors import InputError
from evalwright.files.masker import Masker
from evalwright.formats.shared.claims import checked_gates
from evalwright.scoring.gate import AGGREGATIONS, OPERATORS
from evalwright.stores.documents import plan_from_json, plan_to_json
from evalwright.testing import a_plan

SIMPLE = {"kind": "simple", "metric_key": "m", "aggregation": "avg_score", "op": "gte", "value": 0.5}
WEIGHTED = {**SIMPLE, "kind": "weighted_average", "weights": {"m": 1, "n": 2}}
LOGICAL = {"kind": "logical", "operator": "and", "conditions": [SIMPLE]}
AT_LEAST = {"at_least": 0.9}


PASS_RATE = {"kind": "promptfoo", "pass_rate": 50.0}
REWARD = {"kind": "reward", "metric_key": "m", "max_error_rate": 0.1}


def read(gate: Any, totals: str = "") -> Any:
    stored = json.loads(plan_to_json(a_plan(totals=totals), Masker({})))
    return plan_from_json("plan.json", json.dumps({**stored, "gate": gate}).encode(), {})[0].gate


def checked(written: Any) -> Any:
    mistakes: list[Any] = []
    gate = checked_gates(written, ["m", "n"], lambda *mistake: mistakes.append(mistake))
    assert gate is not None, mistakes
    return gate


@pytest.mark.parametrize(
    "written",
    [
        *({"metric_key": "m", "aggregation": aggregation, "op": "gte", "value": 1} for aggregation in AGGREGATIONS),
        *(
            {"kind": "simple", "metric_key": "m", "op": operator, "value": 1, "pass_threshold": 0.5}
            for operator in OPERATORS
        ),
        {"op": "gte", "value": 0.5, "metric": "accuracy", "pass_op": "gt", "pass_value": 0.2},
        {"kind": "weighted_average", "aggregation": "p95", "weights": {"m": 1, "n": 0}, "op": "lt", "value": 2},
        {"kind": "logical", "operator": "or", "conditions": [SIMPLE, LOGICAL]},
        AT_LEAST,
        {"not_worse_than": "baseline", "margin": "2pp", "slices": {"by": "tag"}, "guards": {"cost": "+10%"}},
        [{"better_than": "a", "group": "user", "errors": "strict"}, AT_LEAST, SIMPLE],
        [AT_LEAST, SIMPLE, SIMPLE],
    ],
)
def test_gates_that_suites_write_are_read_back(written: Any) -> None:
    gate = checked(written)
    assert read(gate) == json.loads(json.dumps(gate))


@pytest.mark.parametrize(("totals", "gate"), [("promptfoo", PASS_RATE), ("promptfoo", SIMPLE), ("letta", REWARD)])
def test_a_format_has_kinds_of_its_own_beside_conditions(totals: str, gate: Any) -> None:
    assert read(gate, totals) == gate


@pytest.mark.parametrize(
    ("totals", "gate", "told"),
    [
        ("", {**SIMPLE, "kind": "simpel"}, "unknown kind 'simpel'; did you mean \"simple\""),
        ("promptfoo", {**PASS_RATE, "kind": "promptfo"}, "unknown kind 'promptfo'; did you mean \"promptfoo\""),
        ("promptfoo", {**PASS_RATE, "pass_rate": "high"}, r"\$\.pass_rate"),
        ("promptfoo", {"kind": "promptfoo"}, "pass_rate"),
        ("promptfoo", REWARD, "unknown kind 'reward'"),
        ("letta", {**REWARD, "metric_key": ["m"]}, r"\$\.metric_key"),
        ("", REWARD, "unknown kind 'reward'"),
        ("agentv", PASS_RATE, "unknown kind 'promptfoo'"),
    ],
)
def test_a_kind_is_read_by_the_format_whose_totals_the_run_has(totals: str, gate: Any, told: str) -> None:
    with pytest.raises(InputError, match=rf"^plan\.json .*{told}"):
        read(gate, totals)


@pytest.mark.parametrize(
    ("gate", "told"),
    [
        ({}, "the gate has no kind"),
        ({"kind": ["simple"]}, "the gate has no kind"),
        ({**SIMPLE, "value": "0.5"}, r"\$\.value"),
        ({**SIMPLE, "op": "above"}, r"\$\.op"),
        ({**SIMPLE, "aggregation": "mode"}, r"\$\.aggregation"),
        ({**SIMPLE, "metric_key": 3}, r"\$\.metric_key"),
        ({**SIMPLE, "pass_threshold": None}, r"\$\.pass_threshold"),
        ({**SIMPLE, "max_error_rate": "0.1"}, "max_error_rate: expected a number, found '0.1'"),
        ({**LOGICAL, "conditions": SIMPLE}, r"\$\.conditions"),
        ({**LOGICAL, "conditions": [{**SIMPLE, "value": []}]}, r"\$\.conditions\[(0|\.\.\.)\]\.value"),
        ({**LOGICAL, "conditions": [{"kind": "reward", "metric_key": "m"}]}, r"\$\.conditions\[(0|\.\.\.)\]\.kind"),
        ({**SIMPLE, "max_error_rate": True}, "max_error_rate: expected a number, found true"),
        ({**LOGICAL, "conditions": []}, r"length >= 1.*\$\.conditions"),
        ({**WEIGHTED, "weights": {"m": 0}}, "sum above 0"),
        ({**WEIGHTED, "weights": {"m": 2, "n": -1}}, r">= 0.*\$\.weights"),
        ({"kind": "claims", "claims": [], "conditions": None}, r"length >= 1.*\$\.claims"),
        ({"kind": "claims", "claims": {}, "conditions": None}, r"\$\.claims"),
        ({"kind": "claims", "claims": [{"claim": "at_most"}], "conditions": None}, r"\$\.claims\[(0|\.\.\.)\]\.claim"),
        ({"kind": "claims", "claims": [{"claim": "at_least"}], "conditions": None}, r"\$\.claims\[(0|\.\.\.)\]"),
    ],
)  # fmt: skip
def test_a_gate_edited_by_hand_is_refused_where_it_is_wrong(gate: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        read(gate)
