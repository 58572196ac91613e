"""`eval.yaml`: what it means."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright.formats.loading import load_suite
from evalwright.formats.native.suite import adopt_run
from evalwright.model.plan import RetryRule
from formats.suites import SOUND, changed, refusal, write


def test_variables_of_the_caller_go_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUITE_NAME", "environment")
    path = write(tmp_path, changed("eval.name", "${SUITE_NAME}"))
    assert [load_suite(path).name, load_suite(path, None, {"SUITE_NAME": "caller"}).name] == ["environment", "caller"]


def test_numbers_may_come_from_variables(tmp_path: Path) -> None:
    path = write(tmp_path, changed("run.max_concurrency", "${N}"))
    assert load_suite(path, None, {"N": "7"}).run.max_concurrency == 7
    assert load_suite(path, None, {"N": "7"}, options={"max_concurrency": 2}).run.max_concurrency == 2


def test_words_that_other_yaml_takes_for_booleans_stay_words(tmp_path: Path) -> None:
    text = "eval: {name: no}\n" + "".join(write(tmp_path, SOUND).read_text().partition("dataset:")[1:])
    assert load_suite(write(tmp_path, text)).name == "no"


def test_the_run_settings_are_taken_over(tmp_path: Path) -> None:
    run = {
        "max_concurrency": 3,
        "per_variant_concurrency": 2,
        "trials": 5,
        "evaluator_timeout_seconds": 0.5,
        "baseline_variant": "s",
        "retry": {"max_attempts": 4, "on": ["timeout"], "backoff_seconds": 0.25},
    }
    settings = load_suite(write(tmp_path, changed("run", run))).run
    assert settings.retry == RetryRule(4, ["timeout"], 0.25)
    assert [getattr(settings, key) for key in run if key != "retry"] == [run[key] for key in run if key != "retry"]


def test_a_system_s_other_keys_are_its_adapter_s(tmp_path: Path) -> None:
    keys = {"metadata": {"model": "m"}, "timeout_seconds": 9, "concurrency": 2, "isolation": "process", "trials": 3}
    system = {"name": "own", "adapter": "python_function", "target": "builtins:print", "x": None}
    (variant,) = load_suite(write(tmp_path, changed("systems[0]", {**system, **keys}))).variants
    assert variant.config == {"target": "builtins:print", "timeout_seconds": 9, "concurrency": 2, "x": None}
    assert [getattr(variant, key) for key in keys] == list(keys.values())


def test_systems_have_the_rules_of_evalh_where_its_name_is_given(tmp_path: Path) -> None:
    path = write(tmp_path, {"schema_version": "1.0", **SOUND})
    suites = [load_suite(path, "evalh"), load_suite(path)]
    assert [suite.variants[0].evalh_rules for suite in suites] == [True, False]


def test_dates_of_a_configuration_are_what_a_resumed_run_will_see(tmp_path: Path) -> None:
    text = (
        write(tmp_path, SOUND)
        .read_text()
        .replace("adapter: replay", "adapter: python_function\n  target: builtins:print\n  since: 2026-05-01")
    )
    assert load_suite(write(tmp_path, text)).variants[0].config["since"] == "2026-05-01"


def test_the_document_has_defaults_in_the_order_of_the_format(tmp_path: Path) -> None:
    document = load_suite(write(tmp_path, SOUND)).document
    assert list(document)[:4] == ["schema_version", "eval", "metadata", "dataset"]
    assert (document["output"], document["run"]["max_concurrency"]) == ([SOUND["output"]], 4)


def test_a_document_is_itself_a_suite_of_the_same_meaning(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, SOUND))
    assert load_suite(write(tmp_path, suite.document)).document == suite.document


def test_other_code_is_not_imported_when_stored_traces_are_judged(tmp_path: Path) -> None:
    system = {"name": "s", "adapter": "python_function", "target": "no_such_module_here:f"}
    path = write(tmp_path, {**changed("systems", [system]), "workspace": {"type": "docker"}})
    assert load_suite(path, to_run=False).variants[0].config["target"] == "no_such_module_here:f"


def test_a_missing_dataset_is_told_only_when_its_cases_are_needed(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, changed("dataset.path", "gone.yaml")), to_run=False)
    assert "gone.yaml" in str(refusal(lambda: list(suite.cases)))


def test_the_configuration_of_a_foreign_run_is_read_without_its_environment(tmp_path: Path) -> None:
    masked = {"name": "s", "adapter": "http", "api_key": "***MASKED***", "headers": {"a": "${NOT_SET_ANYWHERE}"}}
    write(tmp_path, changed("systems", [masked])).rename(tmp_path / "config.yaml")
    suite = adopt_run(tmp_path)
    assert suite is not None
    assert suite.variants[0].config["headers"] == {"a": "${NOT_SET_ANYWHERE}"}
