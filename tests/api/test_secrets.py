"""Secrets of the environment in what a Python program receives, prints and writes."""

import asyncio
import json

import pytest

import evalwright as ew

KEY = "sk-proj-Zq7Lw2Xe9Rt4Yb6Nm1Vc8Kd5"


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", KEY)


def tells(text):
    if text == "broken":
        raise ValueError(f"no such key: {KEY}")
    return f"the key is {KEY}"


def quotes(output):
    return False, f"it says {output}"


def evaluate(cases, **options):
    return ew.evaluate(cases, tells, evaluators=quotes, **{"out": None, **options})


def test_no_suite_shows_one_in_a_notebook(tmp_path):
    (tmp_path / "eval.yaml").write_text(
        """eval: {name: shop}
dataset: {type: yaml, path: cases.yaml}
systems:
  - name: shop
    adapter: http
    endpoint: https://shop.example/ask
    headers: {Authorization: "Bearer ${SOME_API_KEY}"}
    provider: simple
evaluators: [{name: says, type: contains_text}]
output: {type: local_files, path: runs}
"""
    )
    (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: {word: a}}]")
    shown = repr(ew.load(tmp_path / "eval.yaml"))
    assert (KEY in shown, shown.endswith("1 variant, 1 evaluator>")) == (False, True)


@pytest.mark.parametrize("format", ["markdown", "html", "json", "junit"])
def test_no_report_of_a_run_in_memory_has_one(tmp_path, format):
    run = evaluate(["a", "broken"])
    assert KEY not in run.report(format, tmp_path / "report")
    assert KEY not in (tmp_path / "report").read_text()


@pytest.mark.parametrize(
    "evaluate", [ew.evaluate, lambda suite, **options: asyncio.run(ew.aevaluate(suite, **options))]
)
def test_no_mistake_in_cases_that_are_read_while_a_run_begins_has_one(tmp_path, evaluate):
    (tmp_path / "eval.yaml").write_text(
        """eval: {name: shop}
dataset: {type: cases, path: cases.jsonl}
systems: [{name: shop, adapter: cli, command: [cat]}]
evaluators: [{name: says, type: answered}]
output: {type: local_files, path: runs}
"""
    )
    (tmp_path / "cases.jsonl").write_text(2 * f'{{"id": "{KEY}", "input": "hi"}}\n')
    with pytest.raises(ew.InputError, match="duplicate case id") as raised:
        evaluate(ew.load(tmp_path / "eval.yaml"), out=None)
    assert KEY not in str(raised.value)


def test_no_message_has_one(tmp_path):
    run = evaluate(["broken"] * 3, out=tmp_path, stop_after_equal_errors=2, concurrency=1)
    with pytest.raises(AssertionError) as raised:
        run.raise_for_status()
    assert "all ended in the same error: ValueError: no such key: ***MASKED***" in str(raised.value)
    assert KEY not in f"{raised.value}{run.stopped}{run._repr_html_()}"


def test_no_problem_of_a_suite_or_of_an_argument_has_one(tmp_path):
    (tmp_path / "eval.yaml").write_text(
        "eval: {name: '${OWN}'}\ndataset: {type: jsonl, path: c.jsonl}\n"
        "systems: [{name: a, adapter: python_function, target: '${OWN}', timeout_seconds: '${SOME_API_KEY}'}]\n"
    )
    with pytest.raises(ew.InputError, match="found '\\*\\*\\*MASKED") as raised:
        ew.load(tmp_path / "eval.yaml", variables={"OWN": "hush-hush-hush"})
    assert KEY not in str(raised.value)
    assert "hush-hush-hush" not in str(raised.value)
    with pytest.raises(ew.InputError, match="unknown 'provider'") as raised:
        ew.evaluate(["a"], ew.System("http", settings={"endpoint": "https://h", "provider": KEY}), evaluators=quotes)
    assert KEY not in str(raised.value)


def test_a_cell_that_has_just_finished_is_like_a_stored_one():
    seen = []

    async def stream():
        async with ew.stream(["a"], tells, evaluators=quotes, out=None) as cells:
            seen.extend([cell async for cell in cells])

    run = evaluate(["a"], on_cell=seen.append)
    asyncio.run(stream())
    for cell in (*seen, *run):
        assert (cell.output, cell.reasons) == ("the key is ***MASKED***", ["quotes: it says the key is ***MASKED***"])
        assert cell.results["quotes"].reason == "it says the key is ***MASKED***"


def test_a_variant_keeps_its_name(monkeypatch):
    monkeypatch.setenv("THE_TOKEN", "production")
    seen = []
    run = ew.evaluate(
        ["a"], {"production": lambda text: "in production"}, evaluators=quotes, out=None, on_cell=seen.append
    )
    assert [(cell.variant, cell.output) for cell in (*seen, *run)] == [("production", "in ***MASKED***")] * 2
    assert json.loads(run.report("json"))["summary"]["variants"]
