"""Plans, secrets and summaries in run folders, and other programs' folders."""

from __future__ import annotations

import json
import os
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
import yaml

from evalwright.errors import InputError
from evalwright.files.masker import MASKED, Masker
from evalwright.model.plan import Plan, Variant
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.summary import EvaluatorRate, EvaluatorRollup
from evalwright.model.trace import Output, Trace
from evalwright.stores.local_files import LocalFiles
from evalwright.testing import a_case, a_plan, a_result, a_summary, a_trace, a_verdict
from stores.local_runs import created, rewritten

# secrets


def test_no_secret_is_in_any_file_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-canary-1")
    variants = [Variant("v1", "http", {"headers": {"Authorization": "Bearer sk-canary-1"}})]
    cases = [a_case(input={"key": "sk-canary-1"})]
    documents = {"config.yaml": b"key: sk-canary-1\n"}
    writer = LocalFiles(tmp_path).create(a_plan(variants=variants), cases, documents)
    writer.append_trace(a_trace(output=Output("it is sk-canary-1")))
    writer.append_results([a_result(reason="found sk-canary-1")])
    writer.append_verdict(a_verdict(reasons=["found sk-canary-1"]))
    writer.save_summary(a_summary(config_path="/sk-canary-1"))
    rewritten(writer)
    writer.close()
    for path in writer.folder.iterdir():
        assert b"sk-canary-1" not in path.read_bytes(), path.name
    plan = LocalFiles(tmp_path).read(writer.folder.name).plan
    assert plan is not None
    assert plan.variants[0].config == {"headers": {"Authorization": "Bearer ${MY_API_KEY}"}}
    with closing(LocalFiles(tmp_path).open(writer.folder.name)) as again:
        assert again.reveal({"MY_API_KEY": "sk-canary-1", "OTHER": "x"}) == {"MY_API_KEY": "sk-canary-1"}
        assert again.plan is not None
        assert again.plan.variants == variants


def test_a_plan_says_which_secrets_it_lacks_and_keeps_their_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variants = [Variant("v1", "http", {"key": "sk-canary-1", "text": "a literal ${PLACE}"})]
    writer = LocalFiles(tmp_path, Masker({"MY_API_KEY": "sk-canary-1"})).create(a_plan(variants=variants), [], {})
    writer.close()
    monkeypatch.delenv("MY_API_KEY", raising=False)
    without = LocalFiles(tmp_path).open(writer.folder.name)
    assert without.unresolved == ["MY_API_KEY"]
    assert without.plan is not None
    without.save_plan(without.plan)
    without.close()
    with closing(LocalFiles(tmp_path).open(writer.folder.name)) as again:
        again.reveal({"MY_API_KEY": "sk-rotated"})
        assert again.unresolved == []
        assert again.plan is not None
        assert again.plan.variants[0].config == {"key": "sk-rotated", "text": "a literal ${PLACE}"}
        assert again.mask("it is sk-rotated") == "it is ***MASKED***"


def test_looking_at_a_run_fills_nothing_in_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-canary-1")
    cases = [a_case(input={"q": "sk-canary-1"})]
    writer = LocalFiles(tmp_path).create(a_plan(variants=[Variant("v", "http", {"k": "sk-canary-1"})]), cases, {})
    writer.close()
    reader = LocalFiles(tmp_path).read(writer.folder.name)
    assert reader.plan is not None
    assert reader.plan.variants[0].config == {"k": "${MY_API_KEY}"}
    assert [case.input for case in reader.cases()] == [{"q": "${MY_API_KEY}"}]
    assert reader.case(0).input == {"q": "${MY_API_KEY}"}


@pytest.mark.parametrize("name", ["plan.json", "summary.yaml", "traces.jsonl", "artifacts", "labels.jsonl", "x"])
def test_a_link_out_of_a_run_folder_is_not_followed(tmp_path: Path, name: str) -> None:
    writer = LocalFiles(tmp_path / "runs").create(a_plan(), [], {})
    writer.close()
    (tmp_path / "private").write_text("private")
    (writer.folder / name).unlink(missing_ok=True)
    (writer.folder / name).symlink_to(tmp_path / "private")
    with pytest.raises(InputError, match=f"{name} is a link that leads out of the run folder"):
        LocalFiles(tmp_path / "runs").read(writer.folder.name)


@pytest.mark.parametrize("name", ["plan.json", "summary.yaml", "index.sqlite", "x"])
def test_a_pipe_in_a_run_folder_keeps_nobody_waiting(tmp_path: Path, name: str) -> None:
    writer = LocalFiles(tmp_path / "runs").create(a_plan(), [], {})
    writer.close()
    (writer.folder / name).unlink(missing_ok=True)
    os.mkfifo(writer.folder / name)
    with pytest.raises(InputError, match=f"{name} is neither a file nor a folder"):
        LocalFiles(tmp_path / "runs").read(writer.folder.name)
    assert LocalFiles(tmp_path / "runs").run_ids() == [writer.folder.name]


def test_links_inside_a_run_folder_and_to_it_are_followed(tmp_path: Path) -> None:
    writer = LocalFiles(tmp_path / "runs").create(a_plan(), [], {})
    writer.close()
    (writer.folder / "latest.jsonl").symlink_to("traces.jsonl")
    (tmp_path / "baseline").symlink_to(writer.folder)
    store, run_id = LocalFiles.at(tmp_path / "baseline")
    assert store.read(run_id).plan is not None


def test_the_system_is_given_what_the_author_wrote_though_it_holds_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-canary-1")
    recorded = msgspec.Raw(b'{"a":"sk-canary-1 $"}')
    cases = [
        a_case(id="plain", input="5$ ${X}"),
        a_case(input={"q": ["is sk-canary-1 $${X} $?"]}, recorded=recorded),
    ]
    writer = LocalFiles(tmp_path).create(a_plan(), cases, {})
    assert b"sk-canary-1" not in (writer.folder / "cases.jsonl").read_bytes()
    assert list(writer.cases()) == cases
    assert writer.case(1) == cases[1]
    writer.close()


def test_a_weak_secret_makes_no_record_unreadable(tmp_path: Path) -> None:
    words = ("production", "final_answer", "borderline", "2026-01-02", "says_hello", a_plan().run_id)
    masker = Masker({f"{number}_KEY": word for number, word in enumerate(words)})
    plan = a_plan(variants=[Variant("production", "http")])
    writer = LocalFiles(tmp_path, masker).create(plan, [a_case()], {})
    writer.append_trace(a_trace(variant_name="production", output=Output("in production"), run_id=plan.run_id))
    writer.append_results([a_result(variant_name="production")])
    writer.append_verdict(a_verdict(variant_name="production", status="borderline"))
    writer.close()
    reader = LocalFiles(tmp_path).read(writer.folder.name)
    assert [(t.variant_name, t.output.final_answer) for t in reader.traces(Trace)] == [("production", f"in {MASKED}")]
    assert [t.run_id for t in reader.traces(Trace)] == [plan.run_id]
    assert [r.evaluator for r in reader.results(EvaluationResult)] == ["says_hello"]
    assert [v.status for v in reader.verdicts(CaseVerdict)] == ["borderline"]
    assert reader.plan == plan


# the summary


@pytest.mark.parametrize(
    "text", ["on", "1.0", "2026-01-02", "null", "=", "a: b # c", "\0\x1b\x85\u2028\ufeff", "é😀\n x"]
)
def test_summaries_come_back_whatever_they_say(tmp_path: Path, text: str) -> None:
    writer = created(tmp_path)
    summary = a_summary(config_path=text, by_evaluator=[EvaluatorRollup(text, {text: EvaluatorRate(0.5, None)})])
    writer.save_summary(summary)
    assert writer.summary() == summary
    writer.close()


def test_a_summary_is_plain_yaml_for_others(tmp_path: Path) -> None:
    writer = created(tmp_path)
    writer.save_summary(a_summary())
    plain = yaml.safe_load((writer.folder / "summary.yaml").read_text())
    assert plain["started_at"] == "2026-01-02T03:04:05.678000Z"
    assert plain["cases_total"] == 1
    writer.close()


def test_an_older_summary_is_read_with_its_gaps_filled(tmp_path: Path) -> None:
    writer = created(tmp_path)
    (writer.folder / "summary.yaml").write_text(
        "{run_id: r, started_at: 2026-01-02T03:04:05Z, finished_at: '2026-01-02T03:04:06+00:00', config_path: p,\n"
        " config_hash: '', cases_total: 1, variants: [], by_evaluator: [], surprise: 1,\n"
        " comparison: {baseline: a, deltas: []}}\n"
    )
    summary = writer.summary()
    assert summary is not None
    assert summary.comparison is not None
    assert (summary.comparison.kind, summary.sink_errors) == ("ad_hoc", [])
    assert summary.started_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    writer.close()


def test_numbers_as_another_program_writes_them_are_numbers(tmp_path: Path) -> None:
    """YAML 1.1, by which we read it, takes `5e-05` for a text."""
    with closing(created(tmp_path)) as writer:
        (writer.folder / "summary.yaml").write_text(
            "{run_id: r, started_at: 2026-01-02T03:04:05Z, finished_at: 2026-01-02T03:04:06Z, config_path: p,\n"
            " config_hash: '', cases_total: 1, by_evaluator: [], variants: [{name: v, cases_total: 1,\n"
            " cases_passed: 1, cases_errored: 0, pass_rate: 1.0, avg_latency_ms: 1e+3, avg_cost_usd: 5e-05}]}\n"
        )
        [variant] = writer.summary().variants
    assert (variant.avg_latency_ms, variant.avg_cost_usd) == (1000.0, 5e-05)


@pytest.mark.parametrize("content", ["{", "- 1", "", "a: !!python/object/apply:os.getcwd []", "[" * 5000])
def test_a_broken_summary_is_no_summary(tmp_path: Path, content: str) -> None:
    writer = created(tmp_path)
    (writer.folder / "summary.yaml").write_text(content)
    assert writer.summary() is None
    assert writer.damage[0].startswith("summary.yaml: ")
    writer.close()


# folders of other programs


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    folder = tmp_path / "2025-12-31T23-59-59_theirs"
    folder.mkdir()
    (folder / "traces.jsonl").write_bytes(
        b'{"schema_version": "1.3", "run_id": "r", "case_id": "a", "variant_name": "v", "news": 1,'
        b' "started_at": "2026-01-02T03:04:05Z", "finished_at": "2026-01-02T03:04:05Z", "latency_ms": 1,'
        b' "input": {}, "output": {}}\r\n\n{"case_id": "b", "variant_name": "v",'
        b' "started_at": "2026-01-02T03:04:05Z", "finished_at": "2026-01-02T03:04:05Z", "latency_ms": 1,'
        b' "input": {}, "output": {}}'
    )
    (folder / "results.jsonl").touch()
    return folder


def test_the_folder_of_another_program_is_read(foreign: Path) -> None:
    reader = LocalFiles(foreign.parent).read(foreign.name)
    assert [t.case_id for t in reader.traces(Trace)] == ["a", "b"]
    assert (reader.plan, list(reader.verdicts(CaseVerdict)), list(reader.cases()), reader.damage) == (
        None,
        [],
        [],
        [],
    )
    with pytest.raises(InputError, match=r"cases\.jsonl .*there is no case 1"):
        reader.case(0)


def test_the_folder_of_another_program_can_be_written_to(foreign: Path) -> None:
    writer = LocalFiles(foreign.parent).open(foreign.name)
    writer.append_trace(a_trace(case_id="c"))
    writer.append_verdict(a_verdict())
    writer.close()
    reader = LocalFiles(foreign.parent).read(foreign.name)
    assert [t.case_id for t in reader.traces(Trace)] == ["a", "b", "c"]
    assert len(list(reader.verdicts(CaseVerdict))) == 1


def test_a_plan_that_is_none_is_refused_by_name(tmp_path: Path) -> None:
    writer = created(tmp_path)
    writer.close()
    for content in (b"{", b"[]", b"{}", b"\xff"):
        (writer.folder / "plan.json").write_bytes(content)
        with pytest.raises(InputError, match=r"plan\.json  is not a valid plan of a run"):
            LocalFiles(tmp_path).read(writer.folder.name)
        with pytest.raises(InputError, match=r"plan\.json"):
            LocalFiles(tmp_path).open(writer.folder.name)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("shard", {"index": 3, "of": 2}, "there is no shard 3 of 2"),
        ("shard", {"index": 0, "of": 0}, "there is no shard 0 of 0"),
        ("shard", {"index": 1, "of": 10**30}, "there is no shard 1 of 1"),
        ("started_at", "2026-01-02T03:04:05", "timezone"),
        ("started_at", "0001-01-01T00:00:00+14:00", "out of range"),
        ("cases_total", -1, "cases_total"),
        ("cases_total", 10**30, "cases_total"),
        ("cases_total", 2 * 10**9, "it has 2,000,000,000 cells"),
        ("run", {"trials": -2}, "trials"),
    ],
)
def test_a_plan_with_impossible_numbers_is_refused(tmp_path: Path, key: str, value: object, said: str) -> None:
    writer = created(tmp_path)
    writer.close()
    path = writer.folder / "plan.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(InputError, match=rf"plan\.json  is not a valid plan of a run: .*{said}"):
        LocalFiles(tmp_path).read(writer.folder.name)


def test_plans_are_equal_after_storing(tmp_path: Path) -> None:
    plan: Plan = a_plan(metadata={"${X}": ["$", "$$", "${", None, 1.5]})
    writer = LocalFiles(tmp_path).create(plan, [], {})
    writer.close()
    assert LocalFiles(tmp_path).read(writer.folder.name).plan == plan
