"""A run that is to end makes no call any more that waits for money, and leaves its cells to `resume`."""

import json
import sys
from contextlib import contextmanager

import pytest

from evalwright.formats.loading import load_suite
from evalwright.llm.choices import ModelChoices
from evalwright.model.plan import Price
from evalwright.model.trace import Trace
from evalwright.run.options import RunOptions
from evalwright.run.resumption import resume
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run

CASES = 8
MODEL = """
import asyncio
from evalwright.model.chat import ChatReply, Usage
asked, ends, waiting, state = [], None, None, None

def answer(case):
    return {"final_answer": "hello"}

async def model(request):
    asked.append(request)
    if state is None:
        if len(asked) == 3:
            while waiting() < 5:  # else those that come later find money, and are asked
                await asyncio.sleep(0)
            ends()
    elif len(asked) == 1:
        while len(asked) < 2 or len(state.running) > 1:  # until all others have been given up
            await asyncio.sleep(0)
    else:
        while state.waiting < 6:
            await asyncio.sleep(0)
        ends()
    said = '{"score": 1.0, "assertions": [{"text": "is polite", "passed": true, "reason": "it is"}]}'
    return ChatReply(said, "m", usage=Usage(10, 2))
"""


@pytest.fixture
def paid(tmp_path, monkeypatch):
    (tmp_path / "paid_here.py").write_text(MODEL)
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("paid_here", None)
    import paid_here

    yield paid_here
    sys.modules.pop("paid_here", None)


def suite(folder, who):
    model = "python:paid_here:model"
    systems = {
        "system": {"name": "s", "adapter": "chat", "model": model, "user_template": "{{ input.q }}", "max_tokens": 100},
        "judge": {"name": "s", "adapter": "python_function", "target": "paid_here:answer"},
    }
    config = {"model": model, "nl_assertions": ["is polite"], "max_tokens": 100}
    judges = {
        "system": {"name": "e", "type": "contains_text", "config": {"all_of": ["polite"]}},
        "judge": {"name": "e", "type": "llm_judge", "config": config},
    }
    whole = {
        "eval": {"name": "x"},
        "dataset": {"type": "yaml", "path": "cases.yaml"},
        "systems": [systems[who]],
        "evaluators": [judges[who]],
        "run": {"max_concurrency": CASES},
        "output": {"type": "local_files", "path": "runs"},
    }
    cases = [{"id": f"c{n}", "input": {"q": n}} for n in range(CASES)]
    (folder / "cases.yaml").write_text(json.dumps({"cases": cases}))
    (folder / "eval.yaml").write_text(json.dumps(whole))
    loaded = load_suite(folder / "eval.yaml")
    loaded.out = folder / "runs"
    loaded.prices = {model: Price(0.0, 1000.0)}
    return loaded


@pytest.mark.parametrize(("who", "traces"), [("system", 3), ("judge", CASES)])
def test_calls_that_wait_for_money_are_left_to_a_later_session(tmp_path, paid, who, traces):
    @contextmanager
    def watch(state):
        paid.ends, paid.waiting = lambda: setattr(state, "stopping", True), lambda: state.waiting
        yield

    outcome = run_suite(suite(tmp_path, who), RunOptions(models=ModelChoices(budget_usd=0.12, no_cache=True)), watch)
    reader, _ = open_run(outcome.run_dir)
    assert (len(paid.asked), len(list(reader.traces(Trace)))) == (3, traces)
    assert (outcome.exit_code, outcome.summary.cells_missing) == (130, CASES - 3)
    assert resume(outcome.run_dir, models=ModelChoices(no_cache=True)).exit_code == 0
    assert len(paid.asked) == CASES


@pytest.mark.parametrize("who", ["system", "judge"])
def test_a_call_under_way_is_finished_after_those_that_wait_for_money_were_given_up(tmp_path, paid, who):
    @contextmanager
    def watch(state):
        paid.ends, paid.state = lambda: setattr(state, "stopping", True), state
        yield

    outcome = run_suite(suite(tmp_path, who), RunOptions(models=ModelChoices(budget_usd=0.24, no_cache=True)), watch)
    assert (len(paid.asked), outcome.exit_code, outcome.summary.cells_missing) == (2, 130, CASES - 2)
    assert outcome.summary.variants[0].cases_passed == 2
