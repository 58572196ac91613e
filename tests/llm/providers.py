"""A server on loopback as strict as OpenAI's and Anthropic's: it refuses unknown fields, versions and wrong forms.

It stands for both providers under one address, keeps batches, and answers each question with a function of its text:

    PYTHONPATH=tests python -m llm.providers     prints its address and serves until it is ended
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from contextlib import contextmanager, suppress

from llm.request_forms import Refused, check_anthropic, check_chat, only
from targets.loopback import listening

KEY = "sk-test"


def last_text(body):
    """The text of the last message."""
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


class Providers:
    """`answer` makes the text of a reply out of a whole request."""

    def __init__(self, answer):
        self.answer, self.requests, self.batches, self.files = answer, [], {}, {}
        self.polls_until_done = 2
        self.refuses_batches = 0
        """The status with which batches are refused, as by servers that have none."""
        self.batches_end = "completed"
        """Or `failed`, none of whose questions was asked; `expired` and `canceled`, when only the first was."""
        self.silent_polls = 0
        """How often the server is too busy to say how a batch is doing."""
        self.port = 0

    def environment(self):
        here = f"http://127.0.0.1:{self.port}"
        return {
            "OPENAI_BASE_URL": f"{here}/v1",
            "ANTHROPIC_BASE_URL": here,
            "OPENAI_API_KEY": KEY,
            "ANTHROPIC_API_KEY": KEY,
        }

    def respond(self, method, path, headers, raw):
        """Status, headers and body, or a list of events."""
        path = path.partition("?")[0]
        body = json.loads(raw) if "json" in headers.get("content-type", "") and raw else {}
        self.requests.append((method, path, headers, body))
        anthropic = path.startswith("/v1/messages")
        try:
            self._authorized(headers, anthropic=anthropic)
            if self.refuses_batches and ("/batches" in path or "/files" in path):
                raise Refused("no such route", self.refuses_batches)
            return 200, self._anthropic(method, path, body) if anthropic else self._openai(method, path, body, raw)
        except Refused as error:
            if anthropic:
                return error.status, {
                    "type": "error",
                    "error": {"type": "invalid_request_error", "message": str(error)},
                }
            return error.status, {"error": {"message": str(error), "type": "invalid_request_error", "code": None}}

    def _authorized(self, headers, *, anthropic):
        if anthropic:
            if not re.fullmatch(r"20\d\d-\d\d-\d\d", headers.get("anthropic-version", "")):
                raise Refused(f"anthropic-version: unknown version {headers.get('anthropic-version')!r}")
            if headers.get("x-api-key") != KEY and headers.get("authorization") != f"Bearer {KEY}":
                raise Refused("invalid x-api-key", 401)
        elif headers.get("authorization") != f"Bearer {KEY}":
            raise Refused("Incorrect API key provided", 401)

    def _openai(self, method, path, body, raw):
        if path == "/v1/chat/completions":
            return self._completion(body)
        if path == "/v1/embeddings":
            only(body, {"model", "input", "encoding_format", "dimensions", "user"}, "body")
            texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
            data = [{"object": "embedding", "index": i, "embedding": [1.0, 0.0]} for i in range(len(texts))]
            usage = {"prompt_tokens": 5, "total_tokens": 5}
            return {"object": "list", "model": body["model"], "data": data, "usage": usage}
        if path == "/v1/moderations":
            only(body, {"model", "input"}, "body")
            found = {"flagged": True, "categories": {"violence": True}, "category_scores": {"violence": 0.1}}
            return {"id": "m", "model": body["model"], "results": [found]}
        if path == "/v1/files" and method == "POST":
            name = f"file-{len(self.files)}"
            self.files[name] = re.search(rb"\r\n\r\n(\{.*?\})\s*\r\n--", raw, re.DOTALL)[1]
            return {
                "id": name,
                "object": "file",
                "bytes": 1,
                "created_at": 0,
                "filename": "b.jsonl",
                "purpose": "batch",
            }
        if path.startswith("/v1/files/"):
            return self.files[path.split("/")[3]]
        if path == "/v1/batches" and method == "POST":
            models = {json.loads(line)["body"]["model"] for line in self.files[body["input_file_id"]].splitlines()}
            if len(models) > 1:
                raise Refused("a batch may have one model")
            only(body, {"input_file_id", "endpoint", "completion_window", "metadata"}, "body")
            if body["completion_window"] != "24h":
                raise Refused("completion_window: only 24h is supported")
            lines = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
            return self._batch_of(f"batch_{len(self.batches)}", lines)
        if path.startswith("/v1/batches/"):
            return self._polled(path.split("/")[3])
        raise Refused("Unknown request URL", 404)

    def _completion(self, body):
        check_chat(body)
        text = self.answer(body)
        message = text if isinstance(text, dict) else {"role": "assistant", "content": text, "refusal": None}
        usage = {
            "prompt_tokens": 100,
            "completion_tokens": 10,
            "total_tokens": 110,
            "prompt_tokens_details": {"cached_tokens": 0},
        }
        about = {"id": "chatcmpl-1", "created": 0, "model": body["model"]}
        ended = "tool_calls" if message.get("tool_calls") else "stop"
        if not body.get("stream"):
            choice = {"index": 0, "finish_reason": ended, "logprobs": None, "message": message}
            return {**about, "object": "chat.completion", "choices": [choice], "usage": usage}
        return [
            {**about, "object": "chat.completion.chunk", **event} for event in chat_events(message, ended, usage, body)
        ]

    def _batch_of(self, name, lines):
        self.batches[name] = [0, lines]
        return self._state(name, "validating")

    def _state(self, name, status, **more):
        count = len(self.batches[name][1])
        counts = {"total": count, "completed": 0, "failed": 0}
        return {
            "id": name,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "input_file_id": "f",
            "completion_window": "24h",
            "created_at": 0,
            "status": status,
            "request_counts": counts,
            **more,
        }

    def _polls(self, name):
        self.batches[name][0] += 1
        if self.silent_polls:
            self.silent_polls -= 1
            raise Refused("overloaded", 503)
        return self.batches[name][0]

    def _polled(self, name):
        if self._polls(name) < self.polls_until_done:
            return self._state(name, "in_progress")
        if self.batches_end == "failed":
            said = [{"code": "x", "line": 1, "message": f"line {n} is wrong"} for n in range(4)]
            return self._state(name, "failed", errors={"object": "list", "data": said})
        good, bad = [], []
        for line in self.batches[name][1]:
            only(line, {"custom_id", "method", "url", "body"}, "line")
            if good and self.batches_end != "completed":
                error = {"code": "batch_expired", "message": "out of time"}
                row = {"id": "b", "custom_id": line["custom_id"], "response": None, "error": error}
                bad += [json.dumps(row)] * (self.batches_end == "expired")
                continue
            status, body = 200, None
            try:
                body = self._completion(line["body"])
            except Refused as error:
                status, body = error.status, {"error": {"message": str(error), "type": "invalid_request_error"}}
            reply = {"status_code": status, "request_id": "r", "body": body}
            row = {"id": "b", "custom_id": line["custom_id"], "response": reply, "error": None}
            (good if status == 200 else bad).append(json.dumps(row))
        self.files[f"{name}-out"] = "\n".join(good).encode() + b"\n"
        self.files[f"{name}-err"] = "\n".join(bad).encode() + b"\n"
        errors = {"error_file_id": f"{name}-err"} if bad else {}
        ended = self.batches_end.replace("canceled", "cancelled")
        return self._state(name, ended, output_file_id=f"{name}-out", **errors)

    def _anthropic(self, method, path, body):
        if path == "/v1/messages":
            return self._message(body)
        if path == "/v1/messages/batches" and method == "POST":
            only(body, {"requests"}, "body")
            name = f"msgbatch_{len(self.batches)}"
            self.batches[name] = [0, body["requests"]]
            return self._message_batch(name, "in_progress")
        name = path.split("/")[4]
        if path.endswith("/results"):
            first, *others = self.batches[name][1]
            left = [] if self.batches_end == "completed" else others
            rows = [self._result(one) for one in (first, *others) if one not in left]
            rows += [{"custom_id": one["custom_id"], "result": {"type": self.batches_end}} for one in left]
            return "\n".join(map(json.dumps, rows)).encode()
        return self._message_batch(name, "ended" if self._polls(name) >= self.polls_until_done else "in_progress")

    def _message_batch(self, name, status):
        count = len(self.batches[name][1])
        counts = {"processing": count, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
        return {
            "id": name,
            "type": "message_batch",
            "processing_status": status,
            "request_counts": counts,
            "created_at": "2026-01-01T00:00:00Z",
            "expires_at": "2026-01-02T00:00:00Z",
            "results_url": f"http://127.0.0.1:{self.port}/v1/messages/batches/{name}/results",
        }

    def _result(self, request):
        only(request, {"custom_id", "params"}, "request")
        try:
            found = {"type": "succeeded", "message": self._message(request["params"])}
        except Refused as error:
            inner = {"type": "error", "error": {"type": "invalid_request_error", "message": str(error)}}
            found = {"type": "errored", "error": inner}
        return {"custom_id": request["custom_id"], "result": found}

    def _message(self, body):
        check_anthropic(body)
        text = self.answer(body)
        content = text if isinstance(text, list) else [{"type": "text", "text": text}]
        stop = "tool_use" if content[-1]["type"] == "tool_use" else "end_turn"
        usage = {"input_tokens": 100, "output_tokens": 10}
        whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": content}
        whole |= {"stop_reason": stop, "stop_sequence": None, "usage": usage}
        return anthropic_events(whole) if body.get("stream") else whole

    async def handle(self, reader, writer):
        try:
            while True:
                first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip().split("\r\n")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
                raw = await reader.readexactly(int(headers.get("content-length", 0)))
                method, path, _ = first.split(" ")
                status, given = self.respond(method, path, headers, raw)
                kind, content = "application/json", given
                if isinstance(given, list):
                    kind = "text/event-stream"
                    named = [f"event: {argument['type']}\n" if "/messages" in path else "" for argument in given]
                    events = [f"{name}data: {json.dumps(one)}\n\n" for name, one in zip(named, given, strict=True)]
                    content = ("".join(events) + ("" if "/messages" in path else "data: [DONE]\n\n")).encode()
                elif not isinstance(given, bytes):
                    content = json.dumps(given).encode()
                head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n\r\n"
                writer.write(head.encode() + content)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


def chat_events(message, ended, usage, body):
    """The chunks of a streamed completion: words, pieces of tool calls, and the usage where it was asked for."""
    chunks = [{"role": "assistant", "content": ""}]
    chunks += [{"content": word} for word in re.findall(r"\S+\s*", message.get("content") or "")]
    for index, call in enumerate(message.get("tool_calls") or ()):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        first = {"index": index, "id": call["id"], "type": "function", "function": {"name": name, "arguments": ""}}
        chunks.append({"tool_calls": [first]})
        halves = arguments[: len(arguments) // 2], arguments[len(arguments) // 2 :]
        chunks += [{"tool_calls": [{"index": index, "function": {"arguments": half}}]} for half in halves]
    events = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}], "usage": None} for delta in chunks]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": ended}], "usage": None})
    if (body.get("stream_options") or {}).get("include_usage"):
        events.append({"choices": [], "usage": usage})
    return events


def anthropic_events(whole):
    """The events of a streamed message."""
    events = [{"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}, {"type": "ping"}]
    for index, block in enumerate(whole["content"]):
        if block["type"].endswith("tool_use"):
            start, text = {**block, "input": {}}, json.dumps(block["input"])
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in (text[:3], text[3:])]
        elif block["type"] == "thinking":
            start = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}]
        elif block["type"].endswith("_tool_result"):
            start, deltas = block, []
        else:
            start = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": word} for word in re.findall(r"\S+\s*", block["text"])]
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 10}})
    return [*events, {"type": "message_stop"}]


def providing(answer=last_text, made=Providers):
    """Both providers, whose models say again what they were asked, unless `answer` says something else."""
    return listening(made(answer))


@contextmanager
def providing_in_a_thread(answer=last_text):
    """As `providing`, for what has an event loop of its own."""
    ready, providers = threading.Event(), Providers(answer)

    async def serve():
        async with listening(providers):
            over.append((asyncio.get_running_loop(), asyncio.current_task()))
            ready.set()
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    over = []
    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    ready.wait()
    try:
        yield providers
    finally:
        loop, task = over[0]
        loop.call_soon_threadsafe(task.cancel)
        thread.join()


def judge(body):
    """What a judge of assertions says: all of them pass."""
    return json.dumps({"assertions": [{"text": "x", "passed": True, "reason": "so it is"}]})


async def main():
    async with providing(judge) as providers:
        print("\n".join(f"export {name}={value}" for name, value in providers.environment().items()), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
