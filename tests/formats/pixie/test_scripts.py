"""Programs that `python -m evalwright.pixie` runs."""

import json

import pytest

import warm


def run(folder, *arguments):
    return warm.run(["-m", "evalwright.pixie", *arguments], cwd=folder)


def test_every_way_to_a_name_leads_to_one_surface(tmp_path):
    (tmp_path / "script.py").write_text(
        "import pixie.eval.evaluable, pixie.dataset.store\n"
        "from pixie.storage.evaluable import UNSET, Evaluable, as_evaluable\n"
        "print(pixie.eval.evaluable.Evaluable is Evaluable, pixie.DatasetStore is pixie.dataset.store.DatasetStore)\n"
    )
    assert run(tmp_path, "script.py").stdout == "True True\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "usage: python -m evalwright.pixie FILE ... | -m MODULE ...\n"),
        (["gone.py"], "there is no file 'gone.py'\n"),
        (["-m", "gone.module"], "there is no module 'gone.module'\n"),
    ],
)
def test_a_program_that_is_not_there_is_a_usage_error(tmp_path, arguments, said):
    done = run(tmp_path, *arguments)
    assert (done.returncode, done.stderr) == (2, said)


TRACED = """
import threading, pixie
from opentelemetry import trace

def work():
    pixie.wrap([1], purpose="state", name="rows")
    with trace.get_tracer("t").start_as_current_span("call") as span:
        span.set_attribute("openinference.span.kind", "LLM")
        span.set_attribute("llm.model_name", "gpt-4o")

pixie.init()
pixie.init()
thread = threading.Thread(target=work)
thread.start()
thread.join()
pixie.flush()
print("done")
"""


@pytest.fixture
def traced(tmp_path, monkeypatch):
    def run_traced(tracing, output):
        (tmp_path / "script.py").write_text(TRACED)
        monkeypatch.setenv("PIXIE_TRACING", tracing)
        monkeypatch.setenv("PIXIE_TRACE_OUTPUT", output)
        return run(tmp_path, "script.py")

    return run_traced


def test_an_application_is_logged_where_the_environment_says_so(tmp_path, traced):
    assert traced("True", "out/t.jsonl").stdout == "done\n"
    lines = [json.loads(line) for line in (tmp_path / "out/t.jsonl").read_text().splitlines()]
    shown = [(line["type"], line.get("data"), line.get("request_model")) for line in lines]
    assert shown == [("wrap", [1], None), ("llm_span", None, "gpt-4o")]


def test_an_application_is_not_logged_unless_tracing_is_on(tmp_path, traced):
    assert traced("0", "t.jsonl").stdout == "done\n"
    assert not (tmp_path / "t.jsonl").exists()


def test_a_log_that_cannot_be_written_is_told_of_and_harms_no_application(traced):
    done = traced("1", "script.py/t.jsonl")
    assert (done.stdout, "t.jsonl cannot be written" in done.stderr) == ("done\n", True)
