"""Cases with `turns`: each question follows the system's earlier answers (AgentV 4, `mode: conversation`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.files.key_paths import as_written
from evalwright.formats.agentv.assertions import Evaluators
from evalwright.formats.agentv.exchange import PromptRequest, ProviderReply
from evalwright.formats.agentv.message_files import Files
from evalwright.formats.agentv.message_texts import reference_of
from evalwright.formats.agentv.messages import expected_messages
from evalwright.formats.agentv.notes import Notes
from evalwright.formats.agentv.providers import Provider
from evalwright.formats.agentv.specs import Spec

__all__ = [
    "AFTER_FAILURE",
    "OF_TURN",
    "TURN_AGGREGATIONS",
    "TURN_KEYS",
    "call_in_turns",
    "is_conversation",
    "read_turns",
    "transcript",
    "window",
]

TURN_AGGREGATIONS = ("mean", "min", "max")
TURN_KEYS = ("mode", "turns", "aggregation", "on_turn_failure", "window_size")
"""Keys of a case for its conversation."""
OF_TURN = ("input", "expected_output", "assertions", "assert")
AFTER_FAILURE = ("continue", "stop")


def is_conversation(raw: Mapping[str, Any]) -> bool:
    return raw.get("mode") is not None or raw.get("turns") not in (None, [])


def read_turns(
    raw: Mapping[str, Any], whole: list[Spec], evaluators: Evaluators, files: Files, report: Notes
) -> tuple[dict[str, Any], Spec]:
    """What systems are asked turn by turn, and the evaluator of all turns; `whole` judges the conversation."""
    if raw.get("mode") not in (None, "conversation"):
        report("mode", f"mode: expected 'conversation', found {as_written(raw['mode'])}")
    turns, listed = raw.get("turns"), []
    if not isinstance(turns, list) or not turns:
        report("turns", f"turns: a conversation needs a list of at least one turn, found {as_written(turns)}")
        turns = []
    requests = []
    for i, turn in enumerate(turns):
        place = f"turns[{i}]"
        if not isinstance(turn, dict):
            report(place, f"{place}: expected a mapping with an 'input', found {as_written(turn)}")
            continue
        report.unknown_keys(place, turn, OF_TURN)
        if turn.get("input") in (None, "", []):
            what = repr(turn["input"]) if "input" in turn else f"only {', '.join(map(str, turn))}"
            report(f"{place}.input", f"{place}: expected an 'input' that is not empty, found {what}")
            continue
        content = turn["input"]
        answer = turn.get("expected_output")
        expected = [] if answer is None else expected_messages(answer, f"{place}.expected_output", files, report)
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        requests.append({"input": text, "expected_messages": expected, "reference_answer": reference_of(expected)})
        key = "assertions" if turn.get("assertions") is not None else "assert"
        specs = [] if turn.get(key) is None else evaluators.read(turn[key], f"{place}.{key}", report, named=False)
        listed.append(specs or ([evaluators.default()] if expected else []))
    aggregation = _one_of(raw, "aggregation", TURN_AGGREGATIONS, report)
    size = raw.get("window_size")
    if size is not None and (type(size) is not int or size < 1):
        report("window_size", f"window_size: expected a whole number of at least 1, found {as_written(size)}")
    config: dict[str, Any] = {"turns": listed, "aggregation": aggregation}
    if _one_of(raw, "on_turn_failure", AFTER_FAILURE, report) == "stop":
        config |= {"stop": True, "threshold": evaluators.required}
    config |= {"window_size": size} if size is not None else {}
    config |= {"whole": whole} if whole else {}
    spec = {"name": "conversation", "type": "conversation_turns", "config": config}
    return {"turns": requests, **({"window_size": size} if size is not None else {})}, spec


def _one_of(raw: Mapping[str, Any], key: str, choices: Sequence[str], report: Notes) -> str:
    value = raw.get(key, choices[0])
    if value not in choices:
        report(key, f"{key}: expected one of {', '.join(choices)}, found {as_written(value)}")
    return str(value)


async def call_in_turns(
    provider: Provider, opening: PromptRequest, turns: Sequence[Mapping[str, Any]], size: int | None
) -> tuple[ProviderReply, list[dict[str, Any]]]:
    """The last answer with the totals of all turns, and each turn's messages. Raises TargetError."""
    history: list[dict[str, Any]] = [*opening.chat]
    messages: list[dict[str, Any]] = []
    kept: list[dict[str, Any]] = []
    replies: list[ProviderReply] = []
    for number, turn in enumerate(turns, 1):
        question = {"role": "user", "content": turn["input"]}
        history.append(question)
        seen = window(history, size)
        prompt = str(turn["input"]) if len(seen) == 1 else transcript(seen, "@[{role}]:\n{content}", str.title)
        request = opening._replace(
            prompt=prompt, bare_prompt=prompt, chat=seen, messages=seen, case_id=f"{opening.case_id}/turn-{number}"
        )
        reply = await provider.ask(request, "system")
        said_messages = [*reply.messages] or [{"role": "assistant", "content": reply.text}]
        history.append({"role": "assistant", "content": reply.text})
        messages += [question, *said_messages]
        kept.append({"answer": reply.text, "output_messages": said_messages})
        replies.append(reply)
    usages = [reply.token_usage for reply in replies if reply.token_usage is not None]
    usage = {
        name: sum(usage_of_turn.get(name) or 0 for usage_of_turn in usages)
        for name in dict.fromkeys(k for u in usages for k in u)
    }
    costs = [reply.cost_usd for reply in replies if reply.cost_usd is not None]
    warnings = [warning for reply in replies for warning in reply.warnings]
    whole = len(usages) == len(replies), len(costs) == len(replies)  # a sum of only some would be too low
    last = ProviderReply(replies[-1].text, messages, usage if whole[0] else None, sum(costs) if whole[1] else None)
    return last._replace(warnings=warnings), kept


def window(history: Sequence[dict[str, Any]], size: int | None) -> list[dict[str, Any]]:
    """System messages and, of the others, the last two for each of `size` turns."""
    if size is None:
        return [*history]
    others = [message for message in history if message["role"] != "system"]
    return [*(message for message in history if message["role"] == "system"), *others[-2 * size :]]


def transcript(messages: Sequence[Mapping[str, Any]], form: str = "{role}: {content}", spelt: Any = str) -> str:
    return "\n\n".join(form.format(role=spelt(m["role"]), content=_text(m["content"])) for m in messages)


def _text(content: Any) -> str:
    """The text of a message; images are only mentioned."""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] if part["type"] == "text" else "<image>" for part in content)
