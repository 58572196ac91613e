"""What is valid in `eval.yaml`, but probably not what its author meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalwright.files.key_paths import steps_of
from evalwright.formats.loading import load_suite
from formats.suites import CONDITION, SOUND, changed, write


@pytest.mark.parametrize(
    ("path", "value", "key"),
    [
        ("output", [SOUND["output"], {"type": "webhook", "platform": "slack", "url": "", "headrs": {}}], "headrs"),
        ("systems[0].enrich_trace_from", [{"type": "langfuse", "public_key": "x", "merg": {}}], "merg"),
        ("systems[0].enrich_trace_from", [{"type": "phoenix", "public_key": "x"}], "public_key"),
        ("gate", CONDITION | {"value": 0.9}, "value"),
    ],
)
def test_what_a_mirror_an_enricher_or_a_gate_most_likely_was_not_meant_to_say_is_a_warning(
    tmp_path: Path, path: str, value: Any, key: str
) -> None:
    suite = load_suite(write(tmp_path, changed(path, value)))
    assert [steps_of(warning.key)[-1] for warning in suite.warnings] == [key]


def test_a_variable_of_the_caller_that_nothing_names_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, changed("metadata", {"region": "${REGION:-here}"}))
    suite = load_suite(path, None, {"REGOIN": "there"})
    (warning,) = suite.warnings
    assert "REGOIN" in warning.message
    assert 'did you mean "REGION"?' in warning.message
    assert load_suite(path, None, {"REGION": "there"}).warnings == []


@pytest.mark.parametrize(
    ("path", "value", "key"),
    [
        ("evaluators[0].config", {"all_of": ["a", ""]}, "evaluators[0].config.all_of[1]"),
        ("evaluators[0]", {"name": "e", "type": "regex", "config": {"pattern": ""}}, "evaluators[0].config.pattern"),
        ("dataset.seed", 3, "dataset.seed"),
        ("run.retry", {"on": ["timeout"]}, "run.retry.on"),
        ("run.retry", {"backoff_seconds": 3}, "run.retry.backoff_seconds"),
    ],
)
def test_what_always_holds_and_what_has_no_effect_is_told(tmp_path: Path, path: str, value: Any, key: str) -> None:
    suite = load_suite(write(tmp_path, changed(path, value)))
    assert [warning.key for warning in suite.warnings] == [key]
