"""Datasets of instrumented applications: runs from beginning to end, and what is wrong with files."""

import json
import sys

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.formats.pixie.datasets import read_dataset
from evalwright.formats.pixie.suite import datasets_in
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Trace
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run

APP = """
import pixie
from pydantic import BaseModel

class Args(BaseModel):
    text: str

class App(pixie.Runnable[Args]):
    async def run(self, args):
        raise NotImplementedError

class Echo(pixie.Runnable[Args]):
    async def run(self, args: Args):
        if args.text == "crash":
            raise RuntimeError("the application crashed")
        if args.text == "exit":
            raise SystemExit(3)
        with pixie.start_observation(input=args.text, name="step"):
            who = pixie.wrap("nobody", purpose="input", name="who")
        pixie.wrap(f"{args.text} {who}", purpose="output", name="reply")

def long_enough(evaluable):
    return pixie.Evaluation(score=0.5, reasoning="just so")
"""


TORN_DOWN = """
import pathlib
from pydantic import BaseModel

class Args(BaseModel):
    text: str

class App:
    @classmethod
    def create(cls):
        return cls()

    async def run(self, args: Args):
        return None

    async def teardown(self):
        pathlib.Path(__file__).with_suffix(".down").touch()
        raise RuntimeError("still busy")
"""


def entry(text="hello", **changes):
    settings = {
        "description": text,
        "entry_kwargs": {"text": text},
        "eval_input": [{"name": "who", "value": "you"}],
        "expectation": "hello you",
    }
    return {key: value for key, value in (settings | changes).items() if value is not ...}


@pytest.fixture
def written(tmp_path):
    (tmp_path / "app.py").write_text(APP)

    def write(*entries, **keys):
        document = {"runnable": "app.py:Echo", "evaluators": ["ExactMatch"], "entries": list(entries)} | keys
        path = tmp_path / "dataset.json"
        path.write_text(json.dumps({key: value for key, value in document.items() if value is not ...}))
        return path

    return write


def ran(path, tmp_path):
    outcome = run_suite(load_suite(path, "pixie"), RunOptions(out=tmp_path / "out"))
    reader, _ = open_run(outcome.run_dir)
    try:
        verdicts = {verdict.case_id: verdict.status for verdict in reader.verdicts(CaseVerdict)}
        results = {(result.case_id, result.evaluator): result for result in reader.results(EvaluationResult)}
        return outcome, verdicts, results, {trace.case_id: trace for trace in reader.traces(Trace)}
    finally:
        reader.close()


def test_an_application_is_served_captured_and_judged(written, tmp_path):
    path = written(entry(), entry("bye"), entry(evaluators=["...", "app.py:long_enough"]))
    outcome, verdicts, results, traces = ran(path, tmp_path)
    assert verdicts == {"entry-1": "pass", "entry-2": "fail", "entry-3": "pass"}
    assert outcome.summary.native == {"passed": 2, "total": 3}
    assert results["entry-3", "long_enough"].score == 0.5
    assert traces["entry-1"].extra["observed"] == {"input": "you", "output": "hello you"}


def test_entries_of_release_0_5_have_a_test_case(written, tmp_path):
    case = {key: value for key, value in entry(expectation="bye you").items() if key != "entry_kwargs"}
    path = written({"entry_kwargs": {"text": "bye"}, "test_case": {**case, "evaluators": ["ValidJSON"]}})
    assert [problem.key for problem in load_suite(path, "pixie").warnings] == ["entries.0.test_case.evaluators"]
    _, verdicts, results, _ = ran(path, tmp_path)
    assert (verdicts, results["entry-1", "ExactMatch"].score) == ({"entry-1": "pass"}, 1.0)


def test_the_spans_of_an_entry_are_in_its_trace(written, tmp_path):
    _, _, _, traces = ran(written(entry()), tmp_path)
    assert [(span.name, span.input) for span in traces["entry-1"].spans] == [("step", "hello")]


@pytest.mark.parametrize(
    ("text", "said"), [("crash", "the application crashed"), ("exit", "tried to end the process (exit code 3)")]
)
def test_an_application_that_raises_spoils_its_own_entry_only(written, tmp_path, text, said):
    _, verdicts, results, _ = ran(written(entry(text), entry()), tmp_path)
    assert verdicts == {"entry-1": "error", "entry-2": "pass"}
    assert said in results["entry-1", "ExactMatch"].error.message


def test_every_application_is_torn_down_though_another_ones_teardown_fails(tmp_path, caplog):
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text(TORN_DOWN)
        document = {"runnable": f"{name}.py:App", "evaluators": ["ExactMatch"], "entries": [entry(expectation="None")]}
        (tmp_path / f"{name}.json").write_text(json.dumps({**document, "name": name}))
    outcome = run_suite(load_suite(tmp_path, "pixie"), RunOptions(out=tmp_path / "out"))
    assert outcome.summary.cells_missing == 0
    assert [path.name for path in sorted(tmp_path.glob("*.down"))] == ["first.down", "second.down"]
    assert caplog.text.count("raised RuntimeError: still busy") == 2


@pytest.mark.parametrize("files", [("app.py", "other.py"), ("one/app.py", "two/app.py")])
def test_datasets_of_one_name_are_driven_by_their_own_applications(tmp_path, files):
    for number, name in enumerate(files, 1):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"def said(given):\n    return {number}\n")
        document = {"name": "same", "runnable": f"{file.name}:said", "evaluators": ["ExactMatch"]}
        text = json.dumps({**document, "entries": [entry(expectation=number)]})
        file.with_name(f"{number}.json").write_text(text)
    (warning,) = load_suite(tmp_path, "pixie").warnings
    assert (warning.file, warning.key, warning.line) == (str(file.with_name("2.json")), "name", 1)
    assert ran(tmp_path, tmp_path)[1] == {"same/entry-1": "pass", "same#2/entry-1": "pass"}


def test_broken_json_is_told_as_such_without_naming_the_format(tmp_path):
    path = tmp_path / "dataset.json"
    path.write_text('{"runnable": "app.py:Echo",\n "entries": [}')
    with pytest.raises(InputError, match="broken JSON: Expecting value: line 2 column 14"):
        load_suite(path)


def test_a_misplaced_ellipsis_hides_no_other_mistake_of_the_list(written):
    with pytest.raises(InputError) as caught:
        load_suite(written(entry(), evaluators=["...", "ExactMtach"]), "pixie")
    assert [problem.key for problem in caught.value.problems] == ["evaluators", "evaluators"]


def test_the_environment_says_how_many_entries_run_at_once(written, monkeypatch):
    monkeypatch.setenv("PIXIE_RUNNABLE_CONCURRENCY", "7")
    assert load_suite(written(entry()), "pixie").run.max_concurrency == 7


@pytest.mark.parametrize(("given", "said"), [("many", "a number above 0"), ("0", "above 0"), ("1.5", "a whole number")])
def test_a_number_of_entries_that_is_none_is_refused(written, monkeypatch, given, said):
    monkeypatch.setenv("PIXIE_RUNNABLE_CONCURRENCY", given)
    with pytest.raises(InputError, match=f"PIXIE_RUNNABLE_CONCURRENCY: expected .*{said}, found '{given}'"):
        load_suite(written(entry()), "pixie")


def test_an_input_that_the_entry_lacks_is_told(written, tmp_path):
    path = written(entry(eval_input=[{"name": "other", "value": 1}]))
    _, verdicts, results, _ = ran(path, tmp_path)
    assert verdicts == {"entry-1": "error"}
    assert "'who'" in results["entry-1", "WrapError"].reason


def test_an_entry_that_lacks_an_input_has_no_output(tmp_path):
    early = 'wrap("early", purpose="output", name="a")\n    wrap(1, purpose="input", name="gone")'
    (tmp_path / "app.py").write_text(f"from pixie import wrap\n\ndef answer(kwargs):\n    {early}\n")
    path = tmp_path / "dataset.json"
    path.write_text(json.dumps({"runnable": "app.py:answer", "evaluators": ["ExactMatch"], "entries": [entry()]}))
    _, _, _, traces = ran(path, tmp_path)
    assert traces["entry-1"].extra["observed"] == {"input": "you", "output": None}
    assert [output["value"] for output in traces["entry-1"].extra["outputs"]] == ["early"]


@pytest.mark.parametrize(
    ("value", "text"), [("[(1,), [2]]", "[[1], [2]]"), ("{1: 2}", '{"1": 2}'), ("[b'a']", "[\"b'a'\"]")]
)
def test_a_returned_value_that_is_no_json_is_judged_as_text(tmp_path, value, text):
    (tmp_path / "app.py").write_text(f"def answer(kwargs):\n    return {value}\n")
    path = tmp_path / "dataset.json"
    document = {"runnable": "app.py:answer", "evaluators": ["ExactMatch"], "entries": [entry(expectation=text)]}
    path.write_text(json.dumps(document))
    _, verdicts, _, traces = ran(path, tmp_path)
    assert traces["entry-1"].extra["observed"]["output"] == text
    assert verdicts == {"entry-1": "pass"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"entry_kwargs": ...}, "entries.0.entry_kwargs"),
        ({"eval_input": []}, "at least 1"),
        (
            {"eval_input": ..., "eval_inputs": []},
            "required (a list of {name, value}); should 'eval_inputs' be 'eval_input'?",
        ),
        ({"eval_input": [{"name": "x"}]}, "entries.0.eval_input.0.value"),
        ({"description": " "}, "description"),
        ({"evaluators": ["ExactMtach"]}, 'did you mean "ExactMatch"'),
        ({"evaluators": [1]}, "evaluator #1"),
        ({"evaluators": ["gone.py:check"]}, "gone.py"),
        ({"eval_metadata": []}, "entries.0.eval_metadata"),
    ],
)
def test_mistakes_of_an_entry_are_named(written, changes, said):
    with pytest.raises(InputError) as refused:
        load_suite(written(entry(**changes)), "pixie")
    assert [(said in problem.message, problem.line) for problem in refused.value.problems if not problem.unread] == [
        (True, 1)
    ]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"runnable": "app.go"}, "filepath:name"),
        ({"runnable": "app.py:gone"}, "gone"),
        ({"runnable": "app.py:App"}, "annotated with a pydantic model"),
        ({"evaluators": ["..."]}, "row-level"),
        ({"evaluators": "ExactMatch"}, "list of strings"),
        ({"items": []}, "expected one of them"),
        ({"runnable": ..., "runable": "app.py:Echo"}, "should 'runable' be 'runnable'?"),
    ],
)
def test_mistakes_of_a_file_are_named(written, keys, said):
    with pytest.raises(InputError) as refused:
        load_suite(written(**keys), "pixie")
    assert any(said in problem.message for problem in refused.value.problems)


def test_a_folder_leaves_out_results_and_other_json_but_nothing_broken(tmp_path):
    (tmp_path / "results").mkdir()
    for name, text in {
        "a.json": '{"entries": []}', "b.json": '{"meta": 1}', "c.json": '{"meta": 1, "meta": 2}', "d.json": '"\\ud800"',
        "e.json": '{"entries": [', "results/f.json": '{"entries": []}',
    }.items():  # fmt: skip
        (tmp_path / name).write_text(text)
    assert [path.name for path in datasets_in(tmp_path)] == ["a.json", "e.json"]


def test_entries_of_one_dataset_count_as_independent_of_each_other(written, tmp_path):
    outcome, *_ = ran(written(entry("a"), entry("b"), entry("c"), entry("d")), tmp_path)
    exact = next(evaluator for evaluator in outcome.summary.by_evaluator if evaluator.evaluator == "ExactMatch")
    assert (exact.by_variant["app"].n, exact.by_variant["app"].cases) == (4, 4)


@pytest.mark.parametrize("given", [{"text": "hi"}, [{"name": "input", "value": {"text": "hi"}}]])
def test_items_give_the_application_their_bare_value(written, tmp_path, given):
    (tmp_path / "app.py").write_text("def said(given):\n    return given['text']\n")
    items = [{"eval_input": given, "expected_output": "hi", "description": "d"}]
    path = written(runnable="app.py:said", items=items, entries=...)
    assert ran(path, tmp_path)[1] == {"entry-1": "pass"}


def test_what_is_odd_is_warned_of_with_its_line(written):
    twice = [{"name": "who", "value": 1}, {"name": "who", "value": 2}]
    odd = entry(expectations=1, expected_output=1, eval_input=twice)
    path = written(odd, evaluator=[], evaluators=["ExactMatch", "ExactMatch"])
    path.write_text(json.dumps(json.loads(path.read_text()), indent=1))
    lines = path.read_text().splitlines()
    warnings = load_suite(path, "pixie").warnings
    assert [(problem.key, lines[problem.line - 1].split('"')[1]) for problem in warnings] == [
        ("evaluator", "evaluator"),
        ("entries.0.expectations", "expectations"),
        ("evaluators", "evaluators"),
        ("entries.0.expected_output", "expected_output"),
        ("entries.0.eval_input", "eval_input"),
    ]


def test_an_oddity_of_an_item_has_its_place(written):
    items = [{"eval_input": 1, "description": "d", "eval_metdata": {}}]
    (warning,) = load_suite(written(items=items, entries=...), "pixie").warnings
    assert (warning.key, warning.line) == ("items.0.eval_metdata", 1)


ORDERS = """
import dataclasses, pathlib

pathlib.Path(__file__).with_name("imported").touch()

@dataclasses.dataclass
class Order:
    id: int

    def __str__(self):
        return f"order {self.id}"
"""


@pytest.mark.parametrize(
    ("kind", "trusted", "shown", "warned"),
    [
        ("pixie_orders.Order", True, "hello order 7", 0),
        ("pixie_orders.Order", False, "hello {'id': 7}", 1),
        ("subprocess.Popen", True, "hello {'id': 7}", 0),
        ("pixie_orders.gone", True, "hello {'id': 7}", 0),
    ],
)
def test_objects_are_made_again_of_trusted_classes_of_the_project_only(
    written, tmp_path, monkeypatch, kind, trusted, shown, warned
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "pixie_orders", raising=False)
    (tmp_path / "pixie_orders.py").write_text(ORDERS)
    given = [{"name": "who", "value": {"py/object": kind, "id": 7}}]
    path = written(entry(eval_input=given, expectation=shown))
    suite = load_suite(path, "pixie", options={"trust_pickled_types": trusted})
    outcome = run_suite(suite, RunOptions(out=tmp_path / "out"))
    assert (outcome.exit_code, len(suite.warnings)) == (0, warned)
    assert (tmp_path / "imported").exists() == (trusted and kind.startswith("pixie_orders"))


def test_two_files_by_the_name_of_the_runnable_are_both_named(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    for folder in (tmp_path, tmp_path / "data"):
        (folder / "twice.py").write_text("def run(**_): return 1\n")
    text = json.dumps({"name": "p", "runnable": "twice.py:run", "evaluators": ["Possible"], "entries": []})
    (tmp_path / "data" / "set.json").write_text(text)
    monkeypatch.chdir(tmp_path)
    (warning,) = read_dataset(tmp_path / "data" / "set.json", to_run=False).warnings
    assert (warning.key, str(tmp_path / "data" / "twice.py") in warning.message) == ("runnable", True)


def test_a_byte_order_mark_is_no_part_of_a_dataset(written):
    path = written(entry())
    path.write_text("\ufeff" + path.read_text())
    assert len(read_dataset(path, to_run=False).cases) == 1
