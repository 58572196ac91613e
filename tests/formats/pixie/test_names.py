"""The modules and names of pixie 0.4 to 0.6 that programs import, and what the classes behind them do."""

import asyncio
import importlib
import warnings
from datetime import UTC, datetime, timedelta

import pytest

from evalwright import pixie
from evalwright.capture.spans import ObserveSpan
from evalwright.formats import shims
from evalwright.formats.pixie import FORMAT

MODULES = {
    "pixie.eval.agent_evaluator": "create_agent_evaluator",
    "pixie.evals.test_result": "RunResult load_test_result save_test_result generate_test_id",
    "pixie.harness.run_result": "DatasetResult EntryResult EvaluationResult RunResult load_test_result",
    "pixie": "ObservationStore StorageHandler WrappedData enable_storage Evaluable MemoryTraceHandler",
    "pixie.dataset.models": "Dataset",
    "pixie.eval.llm_evaluator": "create_llm_evaluator",
    "pixie.eval.rate_limiter": "EvalRateLimiter configure_rate_limits_from_config get_rate_limiter RateLimitConfig",
    "pixie.eval.scorers": "AutoevalsAdapter ExactMatch Factuality",
    "pixie.evals.evaluation": "Evaluation Evaluator evaluate",
    "pixie.evals.llm_evaluator": "create_llm_evaluator",
    "pixie.evals.scorers": "LevenshteinMatch",
    "pixie.evals.trace_helpers": "last_llm_call root",
    "pixie.harness.runnable": "Runnable get_runnable_args_type is_runnable_class",
    "pixie.instrumentation": "MessageContent WrapNameCollisionError ENTRY_KWARGS_KEY filter_by_purpose",
    "pixie.instrumentation.handler": "InstrumentationHandler",
    "pixie.instrumentation.handlers": "StorageHandler enable_storage",
    "pixie.instrumentation.llm_tracing": "LLMSpan enable_llm_tracing add_handler flush",
    "pixie.instrumentation.models": "EntryInputLog LLMSpanLog ENTRY_KWARGS_KEY",
    "pixie.instrumentation.observation": "observe start_observation init",
    "pixie.instrumentation.spans": "ObserveSpan LLMSpan UserMessage ToolCall",
    "pixie.instrumentation.wrap": "wrap WrappedData WrapRegistryMissError get_eval_output",
    "pixie.storage": "ObservationStore ObservationNode build_tree as_evaluable UNSET",
    "pixie.storage.store": "ObservationStore",
    "pixie.storage.tree": "build_tree ObservationNode",
}


def test_every_module_has_its_names():
    shims.serve(FORMAT)
    missing = [
        f"{module}.{name}"
        for module, names in MODULES.items()
        for name in names.split()
        if not hasattr(importlib.import_module(module), name)
    ]
    assert missing == []


def test_a_function_keeps_its_name_beside_a_module_that_is_called_alike():
    shims.serve(FORMAT)
    instrumentation = importlib.import_module("pixie.instrumentation")
    assert instrumentation.wrap is importlib.import_module("pixie.instrumentation.wrap").wrap is pixie.wrap
    scorers = importlib.import_module("pixie.eval").scorers
    assert type(scorers.ExactMatch()).__name__ == "AutoevalsAdapter"


def step(name, second, *, parent=None, error=None):
    began = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
    return ObserveSpan(
        span_id=name,
        trace_id="t",
        parent_span_id=parent,
        started_at=began,
        ended_at=began,
        duration_ms=0.0,
        name=name,
        input=None,
        output=None,
        metadata={},
        error=error,
    )


def test_a_store_answers_for_the_spans_that_a_handler_saved():
    store = pixie.ObservationStore()
    handler = pixie.StorageHandler(store)

    async def asked():
        await store.create_tables()
        for span in (step("inner", 1, parent="outer", error="ValueError"), step("outer", 0)):
            await handler.on_observe(span)
        [tree] = await store.get_trace("t")
        return tree, await store.get_root("t"), await store.get_errors(), await store.list_traces()

    tree, root, errors, traces = asyncio.run(asked())
    assert (tree.name, [child.name for child in tree.children], root.name) == ("outer", ["inner"], "outer")
    assert [span.name for span in errors] == ["inner"]
    assert (traces[0]["root_name"], traces[0]["has_error"], traces[0]["observation_count"]) == ("outer", True, 2)
    with pytest.raises(ValueError, match="No root observation"):
        asyncio.run(store.get_root("u"))


def test_spans_can_be_given_to_a_handler_by_hand():
    handler = pixie.MemoryTraceHandler()
    asyncio.run(handler.on_observe(step("one", 0)))
    assert [node.name for node in handler.get_trace("t")] == ["one"]


def test_an_evaluable_needs_no_input():
    evaluable = pixie.Evaluable(eval_output="hi")
    assert pixie.collapse_named_data(evaluable.eval_input) is None
    assert pixie.Evaluable.model_validate(evaluable.model_dump(mode="json")) == evaluable


def test_comparing_named_values_with_a_bare_one_is_warned_of():
    output = pixie.Evaluable(eval_output="hi").eval_output
    with pytest.warns(UserWarning, match="compared with str 'hi', which is never equal"):
        assert output != "hi"
    with pytest.warns(UserWarning, match="collapse_named_data"):
        assert "hi" not in output
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert output == [pixie.NamedData(name="output", value="hi")]
        assert output != []


def test_results_of_a_run_are_written_and_read_as_records(tmp_path, monkeypatch):
    shims.serve(FORMAT)
    results = importlib.import_module("pixie.harness.run_result")
    monkeypatch.setenv("PIXIE_ROOT", str(tmp_path))
    made = results.EvaluationResult("ExactMatch", 0.5, "near")
    entry = results.EntryResult({"q": 1}, "a", None, "first", [made])
    run = results.RunResult("1", "pixie test", "then", "now", [results.DatasetResult("d", [entry])])
    path = results.save_test_result(run)
    assert path == str(tmp_path / "results" / "1" / "result.json")
    assert results.load_test_result("1") == run
    (tmp_path / "results" / "1" / "dataset-0.md").write_text("# fine")
    assert results.load_test_result("1").datasets[0].analysis == "# fine"
