"""The marks by which each format of recordings is recognised in the beginning of a file."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from evalwright.importers.call_payloads import is_message_list
from evalwright.importers.file_heads import Head
from evalwright.importers.record_values import dictionaries
from evalwright.importers.span_marks import (
    is_braintrust,
    is_langfuse,
    is_langsmith,
    is_mlflow,
    is_openai_agents,
    is_openinference,
    is_otlp,
)

__all__ = ["FORMAT_MARKS", "is_promptfoo_table", "may_be_anthropic", "may_be_items"]


def _is_inspect(head: Head) -> bool:
    return head.zip or {"version", "status", "eval", "plan"} <= head.mapping.keys()


def _is_atif(head: Head) -> bool:
    return head.any(lambda record: str(record.get("schema_version", "")).startswith("ATIF-"))


def is_promptfoo_table(columns: Collection[str]) -> bool:
    """Whether these are columns of `promptfoo eval -o out.csv`."""
    return {"Status", "Score", "Named Scores", "Grader Reason"} <= {*columns}


def _is_promptfoo_results(head: Head) -> bool:
    mapping = head.mapping
    if ("evalId" in mapping and "results" in mapping) or is_promptfoo_table(head.columns):
        return True
    if head.any(lambda record: {"promptIdx", "testIdx"} <= record.keys()):
        return True
    results = mapping.get("results")
    rows = results.get("results") if isinstance(results, dict) else None
    first = next(dictionaries(rows), {})
    return not first.keys().isdisjoint(("gradingResult", "promptIdx", "testIdx"))


def _is_swe_agent(head: Head) -> bool:
    info = head.mapping.get("info")
    return "trajectory" in head.mapping and isinstance(info, dict) and "model_stats" in info


def _is_mini_swe_agent(head: Head) -> bool:
    return str(head.mapping.get("trajectory_format", "")).startswith("mini-swe-agent")


def _is_tau2(head: Head) -> bool:
    info = head.mapping.get("info")
    about_it = isinstance(info, dict) and {"agent_info", "environment_info"} <= info.keys()
    return about_it and not head.mapping.keys().isdisjoint(("simulations", "simulation_index"))


def _is_agentdojo(head: Head) -> bool:
    return {"suite_name", "user_task_id", "pipeline_name", "messages"} <= head.mapping.keys()


def _is_openhands(head: Head) -> bool:
    def is_event(record: dict[str, Any]) -> bool:
        keys = record.keys()
        marked = any(marks <= keys for marks in ({"timestamp", "kind"}, {"action", "args"}, {"observation", "extras"}))
        return marked and "id" in keys and record.get("source") in ("agent", "user", "environment", "hook")

    def has_history(record: dict[str, Any]) -> bool:
        history = record.get("history")
        if not isinstance(history, list):
            return False
        of_benchmark = {"instance_id", "test_result"} <= record.keys()
        pairs = (event for pair in history for event in dictionaries(pair))
        return of_benchmark or any(map(is_event, dictionaries(history))) or any(map(is_event, pairs))

    is_state = {"execution_status", "persistence_dir", "stats"} <= head.mapping.keys()
    return is_state or head.any(lambda record: is_event(record) or has_history(record))


def _is_skill_benchmark(head: Head) -> bool:
    mapping = head.mapping
    return "run_summary" in mapping and isinstance(mapping.get("runs"), list)


_CODEX = ("session_meta", "response_item", "event_msg", "turn_context")


def _is_codex(head: Head) -> bool:
    return head.any(
        lambda record: (
            record.get("type") in ("thread.started", "turn.started")
            or ("timestamp" in record and record.get("type") in _CODEX and "payload" in record)
        )
    )


def _is_gemini(head: Head) -> bool:
    document = isinstance(head.whole, dict) and {"response", "stats"} <= head.whole.keys()
    return document or head.any(
        lambda record: (
            (record.get("type") == "init" and "session_id" in record) or {"sessionId", "projectHash"} <= record.keys()
        )
    )


_COPILOT = ("assistant.message", "user.message", "tool.execution_start", "tool.execution_complete")


def _is_copilot(head: Head) -> bool:
    return head.any(lambda record: record.get("type") in _COPILOT)


def _is_opencode(head: Head) -> bool:
    def is_event(record: dict[str, Any]) -> bool:
        return "sessionID" in record and isinstance(record.get("part"), dict)

    def is_export(record: dict[str, Any]) -> bool:
        first = next(dictionaries(record.get("messages")), {})
        return isinstance(record.get("info"), dict) and {"info", "parts"} <= first.keys()

    return head.any(lambda record: is_event(record) or is_export(record))


def _is_cursor(head: Head) -> bool:
    def is_start(record: dict[str, Any]) -> bool:
        """Whether it is the first line of a stream; Claude Code's names the tools."""
        return record.get("subtype") == "init" and "permissionMode" in record and "tools" not in record

    def is_end(record: dict[str, Any]) -> bool:
        return record.get("type") == "result" and "request_id" in record and "num_turns" not in record

    return head.any(
        lambda record: (
            "session_id" in record and (record.get("type") == "tool_call" or is_start(record) or is_end(record))
        )
    )


_CLAUDE = ("user", "assistant", "system", "result", "summary", "queue-operation", "file-history-snapshot")


def _is_claude_code(head: Head) -> bool:
    def is_line(record: dict[str, Any]) -> bool:
        named = "sessionId" in record or "session_id" in record
        # a message that is a text is one of the prompts that Gemini CLI lists beside its sessions
        return named and record.get("type") in _CLAUDE and not isinstance(record.get("message"), str)

    return head.any(is_line)


def _is_lm_eval(head: Head) -> bool:
    return head.any(lambda record: "doc_id" in record and "resps" in record)


_ITEMS = ("function_call", "function_call_output")
_PARTS_OF_ITEMS = ("input_text", "output_text")


def _is_openai_responses(head: Head) -> bool:
    def has_items(record: dict[str, Any]) -> bool:
        return any(map(is_item, dictionaries(record.get("input"))))

    def is_item(record: dict[str, Any]) -> bool:
        return record.get("type") in _ITEMS or any(
            part.get("type") in _PARTS_OF_ITEMS for part in dictionaries(record.get("content"))
        )

    return head.any(lambda record: record.get("object") == "response" or is_item(record) or has_items(record))


def _is_pydantic_ai(head: Head) -> bool:
    def is_message(value: dict[str, Any]) -> bool:
        parts = [*dictionaries(value.get("parts"))]
        return value.get("kind") in ("request", "response") and all("part_kind" in part for part in parts)

    messages = (message for record in head.records for message in [record, *dictionaries(record.get("messages"))])
    return any(map(is_message, messages))


def _is_pydantic_evals(head: Head) -> bool:
    listed = (case for key in ("cases", "failures") for case in dictionaries(head.mapping.get(key)))
    return any("inputs" in case for case in listed)


def _is_anthropic(head: Head) -> bool:
    def has_blocks(record: dict[str, Any]) -> bool:
        messages = [record, *dictionaries(record.get("messages"))]
        with_roles = (message for message in messages if "role" in message)  # LangChain's have a type instead
        blocks = (block for message in with_roles for block in dictionaries(message.get("content")))
        return any(str(block.get("type")).endswith(("tool_use", "tool_result")) for block in blocks)

    def is_response(record: Any) -> bool:
        return isinstance(record, dict) and record.get("type") == "message" and isinstance(record.get("content"), list)

    return head.any(lambda record: has_blocks(record) or is_response(record) or is_response(record.get("response")))


def _is_openai_messages(head: Head) -> bool:
    return is_message_list(head.whole) or head.any(
        lambda record: (
            record.get("object") == "chat.completion"
            or any(isinstance(record.get(key), list) for key in ("messages", "traj", "conversation", "conversations"))
        )
    )


_GOLDEN = frozenset(
    ("actual_output", "actualOutput", "expected_output", "expectedOutput", "retrieval_context", "retrievalContext")
)


def _is_deepeval(head: Head) -> bool:
    def is_golden(keys: Collection[str]) -> bool:
        return ("input" in keys and not _GOLDEN.isdisjoint(keys)) or "scenario" in keys

    run = head.mapping.get("testRunData")
    run = run if isinstance(run, dict) else head.mapping
    cases = [
        dictionary for key in ("testCases", "conversationalTestCases") for dictionary in dictionaries(run.get(key))
    ]
    return head.any(is_golden) or is_golden(head.columns) or any("metricsData" in case for case in cases)


FORMAT_MARKS: tuple[tuple[str, Callable[[Head], bool], str], ...] = (
    ("inspect", _is_inspect, "a zip file, or version, status, eval and plan"),
    ("atif", _is_atif, "a schema_version that begins with ATIF-"),
    ("promptfoo-results", _is_promptfoo_results, "evalId, or results with promptIdx and testIdx"),
    ("swe-agent", _is_swe_agent, "trajectory and info.model_stats"),
    ("mini-swe-agent", _is_mini_swe_agent, "a trajectory_format that begins with mini-swe-agent"),
    ("tau2", _is_tau2, "simulations, and info with agent_info and environment_info"),
    ("agentdojo", _is_agentdojo, "suite_name, pipeline_name and user_task_id"),
    ("openhands", _is_openhands, "events with a source and a kind or an action, or a history of them"),
    ("skill-benchmark", _is_skill_benchmark, "run_summary and runs"),
    ("otlp-json", is_otlp, "resourceSpans"),
    ("langfuse", is_langfuse, "observations of a trace, with a startTime"),
    ("langsmith", is_langsmith, "runs with run_type, inputs and start_time"),
    ("braintrust", is_braintrust, "spans with a span_id, a root_span_id and span_attributes"),
    ("openai-agents", is_openai_agents, "objects trace with a workflow_name, or trace.span with span_data"),
    ("mlflow", is_mlflow, "data.spans, or spans, with attributes of MLflow"),
    ("openinference", is_openinference, "spans with a parent_id, and a context with trace_id and span_id"),
    ("codex", _is_codex, "lines of type thread.started, or session_meta with a payload"),
    ("gemini", _is_gemini, "a line of type init with a session_id, or a sessionId and projectHash"),
    ("copilot", _is_copilot, "lines of type assistant.message"),
    ("opencode", _is_opencode, "lines with a sessionID and a part, or info and messages with parts"),
    ("cursor", _is_cursor, "lines of type tool_call with a session_id"),
    ("claude-code", _is_claude_code, "lines of type user or assistant with a sessionId"),
    ("lm-eval", _is_lm_eval, "doc_id and resps"),
    ("openai-responses", _is_openai_responses, "object: response, or items of type function_call"),
    ("pydantic-ai", _is_pydantic_ai, "messages of kind request or response, with parts that have a part_kind"),
    ("pydantic-evals", _is_pydantic_evals, "cases with inputs, as JSON or YAML"),
    ("anthropic-messages", _is_anthropic, "blocks tool_use or tool_result, or a response of type message"),
    (
        "openai-messages",
        _is_openai_messages,
        "messages, traj, conversation, conversations or a list of messages, or a chat.completion",
    ),
    (
        "deepeval",
        _is_deepeval,
        "input with actual_output or expected_output, or a scenario, as JSON or CSV; testCases with metricsData",
    ),
)
"""Each format that can be recognised by its content: its name, the test, and the test in words."""


def may_be_anthropic(head: Head) -> bool:
    """Text-only conversations look alike in both forms; keys that only the other form has rule it out."""

    def is_message(record: dict[str, Any]) -> bool:
        return (
            record.get("role") in ("system", "user", "assistant") and "content" in record and "tool_calls" not in record
        )

    def fits(record: dict[str, Any]) -> bool:
        messages = record.get("messages")
        if isinstance(messages, list):
            return all(isinstance(message, dict) and is_message(message) for message in messages)
        return is_message(record)

    return bool(head.records) and all(map(fits, head.records))


def may_be_items(head: Head) -> bool:
    """Items of responses that are all messages look like messages of chat completions."""
    return is_message_list(head.whole)
