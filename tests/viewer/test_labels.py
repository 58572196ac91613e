"""Labelling: one answer at a time, a file that only grows, and what calibrate makes of it."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from evalwright.cli.bundling import write_pages
from evalwright.cli.viewed_runs import runs_at
from evalwright.formats.loading import load_suite
from evalwright.importers.labels import read_labels
from evalwright.llm.choices import ModelChoices
from evalwright.model.cell import cell_key
from evalwright.model.plan import Plugin
from evalwright.run.calibration import calibrate_run
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from run.suites import suite
from viewer.reading import cases, page, seen
from viewer.runs import made_run, site, site_of

TOKEN = "t" * 32
CALLING = """
def answer(case, variant):
    call = {"id": "t1", "name": "refund", "arguments": {"order": "order-7"}}
    result = {"tool_call_id": "t1", "name": "refund", "content": "paid back"}
    return {"final_answer": "Done.", "tool_calls": [call], "tool_results": [result]}
"""
ORIGIN = {"Origin": "http://127.0.0.1:7766"}


@pytest.fixture
def labelled(tmp_path):
    run = made_run(tmp_path, trials=1)
    with site(run.parent, TOKEN, labeller="ann") as client:
        client.cookies.set("evalwright_7766", TOKEN)
        yield run, client


def fields(text: str) -> dict[str, str]:
    form = text[text.index('method="post"') :]
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))


def answered(client, run, text: str, verdict: str, **more: str) -> str:
    """The page after a label."""
    form = {**fields(text), "verdict": verdict, "note": "", **more}
    answer = client.post(f"/runs/{run.name}/labels", data=form, headers=ORIGIN)
    assert answer.status_code == 303, answer.text
    return page(client, answer.headers["location"])


def test_labels_are_stored_one_by_one_and_calibrate_reads_them(labelled):
    run, client = labelled
    text = page(client, f"/runs/{run.name}/label?evaluator=says&order=suite")
    assert "Where is order 0?" in text
    assert "ready" not in seen(text[text.index('id="expected"') :]) if 'id="expected"' in text else True
    assert "score 1" not in seen(text)  # what the evaluator said
    assert '<p class="label">calls <b>find</b></p>' in text  # messages and input are those of the page of the cell
    assert '<p class="label">user_message</p>' in text
    shown = page(client, f"/runs/{run.name}/label?evaluator=says&order=suite&show=1")
    assert "✓ Pass" in seen(shown)
    text = answered(client, run, shown, "pass", note='=1 "quoted", note\nof two lines')
    assert "Where is order 1?" in text
    assert 'aria-valuetext="1 of 6"' in text
    text = answered(client, run, text, "unsure")
    text = answered(client, run, text, "fail")
    text = answered(client, run, text, "undo")
    assert "Where is order 2?" in text
    text = answered(client, run, text, "skip")
    assert "Where is order 3?" in text
    text = answered(client, run, text, "pass")
    assert 'aria-valuetext="3 of 6"' in text
    with (run / "labels.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["case_id"], row["verdict"], row["seen"], row["labeller"]) for row in rows] == [
        ("case-0", "pass", "1", "ann"),
        ("case-1", "unsure", "", "ann"),
        ("case-2", "fail", "", "ann"),
        ("case-2", "", "", "ann"),
        ("case-3", "pass", "", "ann"),
    ]
    assert rows[0]["note"] == '=1 "quoted", note\nof two lines'
    labels, problems = read_labels(run / "labels.csv")
    assert (problems, [(label.case_id, label.passed, label.unsure) for label in labels]) == (
        [],
        [("case-0", True, False), ("case-1", None, True), ("case-3", True, False)],
    )
    [evaluator] = calibrate_run(run, run / "labels.csv").evaluators
    assert (evaluator.labels, evaluator.notes[-1]) == (2, "1 answer labelled unsure, left out")


def test_blanks_around_an_id_are_part_of_it_or_a_slip_of_the_labeller(tmp_path):
    two = suite(tmp_path, ["done", "done"])
    two.cases[0].id = " a b "
    run = run_suite(two).run_dir
    evaluator = two.evaluators[0].name
    with site(run.parent, TOKEN, labeller="ann") as client:
        client.cookies.set("evalwright_7766", TOKEN)
        text = page(client, f"/runs/{run.name}/label?evaluator={evaluator}&order=suite")
        answered(client, run, text, "pass")
    with (run / "labels.csv").open("a") as file:
        file.write(f" c1 ,main,0,1,{evaluator},pass,,,ann,,2026-11-30T12:00:00Z\n")
    [calibrated] = calibrate_run(run, run / "labels.csv").evaluators
    assert calibrated.labels == 2


def test_labels_say_how_their_answer_was_chosen(labelled):
    run, client = labelled
    text = answered(client, run, page(client, f"/runs/{run.name}/label?evaluator=says&order=suite"), "pass")
    assert "leaves their labels out" not in text
    text = page(client, f"/runs/{run.name}/label?evaluator=says&order=threshold")
    assert "leaves their labels out" in text
    answered(client, run, text, "fail")
    [evaluator] = calibrate_run(run, run / "labels.csv").evaluators
    assert (evaluator.labels, evaluator.chosen_by_results, evaluator.accuracy.n) == (2, 1, 1)


def test_a_file_of_labels_from_before_goes_on_and_one_of_another_kind_stays(labelled):
    run, client = labelled
    text = page(client, f"/runs/{run.name}/label?evaluator=says&order=suite")
    file = run / "labels.csv"
    columns = "case_id,variant,trial,attempt,evaluator,verdict,score,note,labeller,seen,labelled_at"
    file.write_text(f"{columns}\ncase-0,agent,0,1,says,pass,,,bob,,2026-01-01T00:00:00Z")
    answered(client, run, text, "fail")
    assert file.read_text().startswith(f"{columns}\n")
    answered(client, run, page(client, f"/runs/{run.name}/label?evaluator=says&order=threshold"), "fail")
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert [(row["labeller"], row["verdict"], row["sampling"]) for row in rows] == [
        ("bob", "pass", None),
        ("ann", "fail", None),
        ("ann", "fail", "threshold"),
    ]
    other = "case_id,evaluator,verdict\ncase-0,says,pass\n"
    file.write_text(other)
    form = {**fields(text), "verdict": "pass", "note": ""}
    refused = client.post(f"/runs/{run.name}/labels", data=form, headers=ORIGIN)
    assert (refused.status_code, "Cannot be stored" in seen(refused.text)) == (503, True)
    assert "has other columns than the labels of this page" in seen(refused.text)
    assert file.read_text() == other


def test_the_command_at_the_end_reads_the_labels(labelled):
    run, client = labelled
    text = page(client, f"/runs/{run.name}/label?evaluator=says&order=suite&sample=1")
    told = re.search(r"<code>evalwright calibrate (\S+) --labels (\S+)</code>", answered(client, run, text, "pass"))
    assert told is not None
    [evaluator] = calibrate_run(Path(told[1]), Path(told[2])).evaluators
    assert (evaluator.evaluator, evaluator.labels) == ("says", 1)


def test_tool_calls_that_no_message_tells_are_there_to_be_judged(tmp_path):
    (tmp_path / "calling_agent.py").write_text(CALLING)
    (tmp_path / "cases.jsonl").write_text('{"id": "c", "input": {}}')
    suite = {
        "eval": {"name": "calls"},
        "dataset": {"type": "jsonl", "path": "cases.jsonl"},
        "systems": [{"name": "v", "adapter": "python_function", "target": "calling_agent:answer"}],
        "evaluators": [{"name": "refunds", "type": "tool_called", "config": {"tool_name": "refund"}}],
        "output": {"type": "local_files", "path": "runs"},
    }
    (tmp_path / "eval.yaml").write_text(json.dumps(suite))
    run = run_suite(load_suite(tmp_path / "eval.yaml"), RunOptions(out=tmp_path / "runs")).run_dir
    with site(run.parent, TOKEN, labeller="ann") as client:
        client.cookies.set("evalwright_7766", TOKEN)
        told = seen(page(client, f"/runs/{run.name}/label?evaluator=refunds"))
    assert "calls refund" in told
    assert "order-7" in told
    assert "paid back" in told


def test_after_ten_labels_the_page_says_how_far_the_evaluator_agrees(tmp_path):
    run = made_run(tmp_path, trials=2)
    with site(run.parent, TOKEN, labeller="ann") as client:
        client.cookies.set("evalwright_7766", TOKEN)
        text = page(client, f"/runs/{run.name}/label?evaluator=says&order=suite")
        for verdict in ["pass"] * 9:
            text = answered(client, run, text, verdict)
        assert "Agreement on" not in text
        text = answered(client, run, text, "pass")
        told = (  # two trials of five cases, which are not ten independent answers
            "Agreement on the first 10 labels TPR 70.0% [29.9–92.7%]: of 10 answers that you passed TNR –: of 0 answers"
        )
        assert told in seen(text)
        assert told in seen(answered(client, run, text, "fail"))  # one more would tell what the evaluator said of it


def test_a_random_order_is_that_of_its_seed(labelled):
    run, client = labelled

    def first(seed: int) -> str:
        return fields(page(client, f"/runs/{run.name}/label?evaluator=says&seed={seed}"))["key"]

    assert first(1) == first(1)
    assert len({first(seed) for seed in range(12)}) > 2
    seeds = {fields(page(client, f"/runs/{run.name}/label?evaluator=says"))["seed"] for _ in range(2)}
    assert len(seeds) == 1  # who comes back goes on with the sample that they began


def test_a_balanced_sample_has_as_many_failures_as_passes_and_calibrate_weights_it(tmp_path):
    run = made_run(tmp_path, trials=2)
    with site(run.parent, TOKEN, labeller="ann") as client:
        client.cookies.set("evalwright_7766", TOKEN)
        text = page(client, f"/runs/{run.name}/label?evaluator=says&order=balanced&sample=4&seed=1")
        assert "calibrate weights their labels" in seen(text)
        for verdict in ("pass", "fail", "pass", "fail"):
            text = answered(client, run, text, verdict)
    with (run / "labels.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert sorted(row["stratum"] for row in rows) == ["fail", "fail", "pass", "pass"]
    results = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
    said = [result["passed"] for result in results if result["evaluator"] == "says" and result.get("error") is None]
    sizes = {"pass": str(said.count(True)), "fail": str(said.count(False))}
    assert {(row["sampling"], row["stratum_size"]) for row in rows} == {("balanced", size) for size in sizes.values()}
    assert all(row["stratum_size"] == sizes[row["stratum"]] for row in rows)
    [evaluator] = calibrate_run(run, run / "labels.csv").evaluators
    assert (evaluator.labels, evaluator.outdated, evaluator.accuracy.n) == (4, 0, 4)
    assert evaluator.rates[0].corrected is not None


def test_the_order_of_a_balanced_sample_does_not_reveal_the_verdicts(tmp_path):
    run = made_run(tmp_path, trials=2)
    results = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
    said = {
        cell_key(result["case_id"], result["variant_name"], result["trial"]): result["passed"]
        for result in results
        if result["evaluator"] == "says"
    }
    with site(run.parent, TOKEN, labeller="ann") as client:
        client.cookies.set("evalwright_7766", TOKEN)
        asked = f"/runs/{run.name}/label?evaluator=says&order=balanced&sample=2"
        first = [said[fields(page(client, f"{asked}&seed={seed}"))["key"]] for seed in range(12)]
    assert {*first} == {True, False}


@pytest.mark.parametrize("change", [{"form_token": "x"}, {"verdict": "maybe"}, {"key": "0" * 16}, {"evaluator": "x"}])
def test_forms_of_others_store_nothing(labelled, change):
    run, client = labelled
    form = {**fields(page(client, f"/runs/{run.name}/label?evaluator=says")), "verdict": "pass", **change}
    assert client.post(f"/runs/{run.name}/labels", data=form, headers=ORIGIN).status_code in (400, 403, 404)
    assert client.post(f"/runs/{run.name}/labels", data=form).status_code == 403
    assert client.post(f"/runs/{run.name}/labels", content=b"x" * 70_000, headers=ORIGIN).status_code == 403
    assert client.post(f"/runs/{run.name}", headers=ORIGIN).status_code == 405
    assert not (run / "labels.csv").exists()


def test_labelling_can_be_off(labelled):
    run, _ = labelled
    with site(run.parent, labels=False) as client:
        assert "Label answers" not in page(client, f"/runs/{run.name}")
        assert client.get(f"/runs/{run.name}/label").status_code == 404


def test_labels_are_on_the_page_of_their_cell_and_in_bundles_only_if_asked_for(labelled, tmp_path):
    run, client = labelled
    address = f"runs/{run.name}/cells/{cell_key('case-0', 'agent', 0)}"
    assert "Labels of people" not in page(client, f"/{address}")
    text = page(client, f"/runs/{run.name}/label?evaluator=says&order=suite")
    answered(client, run, text, "fail", note="not <i>polite</i>")
    assert "says fail ann not <i>polite</i>" in seen(page(client, f"/{address}"))
    for name, wanted in (("without", False), ("with", True)):
        assert write_pages([run], tmp_path / name, "all", None, 100, with_labels=wanted) == 0
        pages = [path.read_text() for path in (tmp_path / name).rglob("*.html")]
        assert any("polite&lt;/i&gt;" in one for one in pages) is wanted


def test_cells_are_found_by_their_labels_and_by_where_these_differ_from_the_evaluator(labelled):
    run, client = labelled
    listed = f"/runs/{run.name}"
    assert 'name="label"' not in page(client, listed)
    text = page(client, f"{listed}/label?evaluator=says&order=suite")
    for verdict in ("pass", "fail", "pass", "unsure"):  # of case-0 to case-3, of which case-2 alone failed
        text = answered(client, run, text, verdict)
    assert cases(page(client, f"{listed}?label=pass")) == ["case-0", "case-2"]
    with (run / "labels.csv").open("a") as file:  # a trial that no run has
        file.write(f"case-1,agent,{10**30},1,says,pass\n")
    assert cases(page(client, f"{listed}?label=unsure&label=")) == ["case-3"]
    assert cases(page(client, f"{listed}?label=disagrees")) == ["case-1", "case-2"]
    assert cases(page(client, f"{listed}?label=disagrees&evaluator=says&tag=t0")) == ["case-2"]
    assert cases(page(client, f"{listed}?label=disagrees&evaluator=polite")) == []
    assert 'name="label"' in page(client, listed)


def test_scores_are_on_the_scale_and_count_as_calibrate_counts_them(tmp_path):
    rubric = {"model": "python:viewed_agent:judge", "rubric": "Is it polite?", "pass_threshold": 4}
    run = made_run(tmp_path, judge=rubric)
    with site(run.parent, TOKEN, labeller="ann") as client:
        client.cookies.set("evalwright_7766", TOKEN)
        text = page(client, f"/runs/{run.name}/label?evaluator=polite&order=suite")
        for score in ("7", "0.5", "nan", "much", ""):
            form = {**fields(text), "verdict": "score", "score": score}
            refused = client.post(f"/runs/{run.name}/labels", data=form, headers=ORIGIN)
            assert refused.status_code == 400
            assert "expected a number from 1 to 5" in seen(refused.text)
        for score in ("5", "4", "2", "4", "5", "4", "5", "1", "5", "4"):
            text = answered(client, run, text, "score", score=score)
        cell = page(client, f"/runs/{run.name}/cells/{cell_key('case-0', 'agent', 0)}")
    assert 'data-label="Threshold" class="number">4<' in cell  # as the form and the agreement take it
    told = seen(text)
    [evaluator] = calibrate_run(run, run / "labels.csv").evaluators
    assert "of 8 answers that you passed" in told
    assert "of 2 answers that you failed" in told
    assert evaluator.labels == 10
    assert (evaluator.tpr.n, evaluator.tnr.n) == (8, 2)


def test_lines_that_are_no_labels_are_left_out(labelled):
    run, client = labelled
    page(client, f"/runs/{run.name}/label?evaluator=says&order=suite")
    lines = [
        "case_id,variant,trial,attempt,evaluator,verdict,score,note,labeller,seen,labelled_at",
        f"case-0,agent,0,1,says,pass,,{'x' * 200_000},ann,,",
        f"case-1,agent,{'9' * 5000},1,says,pass,,,ann,,",
        *(f"case-{number},agent,0,1,says,,high,,ann,," for number in range(6)),
        "case-2,agent,0,1,says,,nan,,ann,,",
        "case-3,agent,0,1,says,fail,,,ann,,",
    ]
    (run / "labels.csv").write_text("\n".join([*lines, ""]))
    text = page(client, f"/runs/{run.name}/label?evaluator=says&order=suite")
    assert "1 of 6 labelled" in seen(text)
    assert "ann" in seen(page(client, f"/runs/{run.name}/cells/{cell_key('case-3', 'agent', 0)}"))


def test_the_page_opens_on_the_judge_that_has_no_labels(labelled):
    run, client = labelled
    opened = fields(page(client, f"/runs/{run.name}/label"))
    assert opened["evaluator"] == "polite"  # not `says`, which is first, and exact


def test_the_page_opens_on_the_next_judge_once_one_has_labels(tmp_path):
    made_run(tmp_path, trials=1)
    written = json.loads((tmp_path / "eval.yaml").read_text())
    written["evaluators"].append({**written["evaluators"][1], "name": "helpful"})
    (tmp_path / "eval.yaml").write_text(json.dumps(written))
    read = load_suite(tmp_path / "eval.yaml")
    read.out = tmp_path / "runs"
    run = run_suite(read, RunOptions(models=ModelChoices(no_cache=True))).run_dir
    with site(run.parent, TOKEN, labeller="ann") as client:
        client.cookies.set("evalwright_7766", TOKEN)
        first = page(client, f"/runs/{run.name}/label")
        assert fields(first)["evaluator"] == "polite"
        assert fields(answered(client, run, first, "pass"))["evaluator"] == "polite"  # until it is opened again
        assert fields(page(client, f"/runs/{run.name}/label"))["evaluator"] == "helpful"


def test_a_run_in_a_database_is_labelled_before_it_has_artifacts(tmp_path):
    made_run(tmp_path, trials=1)
    read = load_suite(tmp_path / "eval.yaml")
    read.store = Plugin("sqlite", {"path": str(tmp_path / "runs.sqlite")})
    run_suite(read, RunOptions(models=ModelChoices(no_cache=True)))
    with site_of(lambda: runs_at([tmp_path / "runs.sqlite"]), TOKEN, labeller="ann") as client:
        client.cookies.set("evalwright_7766", TOKEN)
        (run,) = runs_at([tmp_path / "runs.sqlite"])
        text = page(client, f"/runs/{run.id}/label?evaluator=says")
        form = {**fields(text), "verdict": "pass", "note": ""}
        answer = client.post(f"/runs/{run.id}/labels", data=form, headers=ORIGIN)
        assert "1 of 6 labelled" in seen(page(client, answer.headers["location"]))
    assert len(read_labels(run.labels_path())[0]) == 1


def test_a_label_is_about_the_answer_that_was_shown_whatever_a_retry_does_meanwhile(labelled):
    run, client = labelled
    asked = f"/runs/{run.name}/label?evaluator=says&order=suite"
    shown = answered(client, run, page(client, asked), "pass")  # case-0 has its label, case-1 is shown
    for name in ("traces", "results", "verdicts"):
        lines = (run / f"{name}.jsonl").read_text().splitlines()
        again = [json.dumps({**json.loads(line), "attempt": 2}) for line in lines if re.search('"case-[01]"', line)]
        with (run / f"{name}.jsonl").open("a") as file:
            file.write("".join(f"{line}\n" for line in again))
    text = answered(client, run, shown, "fail")
    assert "nothing was stored" in text
    assert "Where is order 1?" in text
    assert "0 of 6 labelled" in seen(text)  # the first label is of the first attempt
    assert '<h2 id="labels">' not in page(client, f"/runs/{run.name}/cells/{cell_key('case-0', 'agent', 0)}")
    text = answered(client, run, text, "fail")
    assert "1 of 6 labelled" in seen(text)
    assert [row.attempt for row in read_labels(run / "labels.csv")[0]] == [1, 2]
    evaluator = calibrate_run(run, run / "labels.csv").evaluators[0]
    assert (evaluator.labels, evaluator.superseded) == (2, 1)


def _verdicts(run):
    with (run / "labels.csv").open(newline="") as file:
        return [row["verdict"] for row in csv.DictReader(file)]


def test_a_label_of_another_window_is_not_replaced_unseen(labelled):
    run, client = labelled
    first, second = (page(client, f"/runs/{run.name}/label?evaluator=says&order=suite") for _ in range(2))
    answered(client, run, first, "pass")
    text = answered(client, run, second, "fail")
    assert "labelled in another window" in seen(text)
    assert "Where is order 0?" in text
    assert _verdicts(run) == ["pass"]
    answered(client, run, text, "fail")  # now it is known that there is one
    assert _verdicts(run) == ["pass", "fail"]
