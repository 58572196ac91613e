"""A chat model on loopback that wants a tool called with what it was asked, and counts tokens by it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number = int(asked["messages"][-1]["content"].rsplit(maxsplit=1)[-1])
        time.sleep(0.02)  # so that calls at the same moment overlap
        openai = self.path.endswith("/chat/completions")
        body = json.dumps(_completion(number) if openai else _message(number)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing on the screen."""


def _completion(number: int) -> dict[str, object]:
    call = {"id": f"c{number}", "type": "function", "function": {"name": "look_up", "arguments": f'{{"n": {number}}}'}}
    message = {"role": "assistant", "content": f"answer {number}", "tool_calls": [call]}
    return {
        "id": f"r{number}",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-test",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": number, "completion_tokens": 2, "total_tokens": number + 2},
    }


def _message(number: int) -> dict[str, object]:
    return {
        "id": f"r{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": [
            {"type": "text", "text": f"answer {number}"},
            {"type": "tool_use", "id": f"c{number}", "name": "look_up", "input": {"n": number}},
        ],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": number, "output_tokens": 2},
    }


@contextmanager
def serving() -> Iterator[str]:
    """The address of the server, without a path."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
