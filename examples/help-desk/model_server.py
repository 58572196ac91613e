"""A model that needs no key and no network: an API like OpenAI's, which answers with the sentence that fits best."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_UNKNOWN = "I do not know."
_COMMON = {
    "the",
    "and",
    "are",
    "can",
    "how",
    "what",
    "does",
    "for",
    "may",
    "which",
    "who",
    "with",
    "take",
    "takes",
    "much",
}


def start() -> str:
    """Serve at a free port as long as the process lives; the address to give to a client."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = [message["content"] for message in asked["messages"]]
        body = json.dumps(_completion(asked["model"], texts, _answer(texts[0], texts[-1]))).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing on the screen."""


def _answer(pages: str, question: str) -> str:
    sentences = re.findall(r"[A-Z][^.#\n]+\.", pages.partition("\n")[2])
    wanted = _words(question)
    best = max(sentences, key=lambda sentence: len(_words(sentence) & wanted), default=_UNKNOWN)
    return best if len(_words(best) & wanted) >= 2 else _UNKNOWN


def _words(text: str) -> set[str]:
    return {word.removesuffix("s") for word in re.findall(r"[a-z]{3,}", text.lower())} - _COMMON


def _completion(model: str, texts: list[str], answer: str) -> dict:
    given, said = sum(len(text.split()) for text in texts), len(answer.split())
    return {
        "id": "completion",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": answer}}],
        "usage": {"prompt_tokens": given, "completion_tokens": said, "total_tokens": given + said},
    }
