"""A help desk over HTTP: it finds pages of the handbook, and has a model answer from them.

`python service.py` serves it at port 8000; `MODEL_URL` names the model's server, an API like OpenAI's.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from wsgiref.simple_server import make_server

from openai import OpenAI

from evalwright.pixie import observe

_PAGES = 2
_PROMPT = "Answer from these pages only. Say that you do not know if they do not tell.\n\n{pages}"


class HelpDesk:
    """The WSGI application. `POST /ask` with `{"question"}` gives `{"answer", "sources"}`."""

    def __init__(self, handbook: Path, model_url: str) -> None:
        self._pages = {page.stem: page.read_text() for page in sorted(handbook.glob("*.md"))}
        self._model = OpenAI(base_url=model_url, api_key="none", max_retries=0)

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        if (environ["REQUEST_METHOD"], environ["PATH_INFO"]) != ("POST", "/ask"):
            return _reply(start_response, "404 Not Found", {"error": "POST /ask"})
        try:
            asked = json.loads(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
            question = str(asked["question"])
        except (ValueError, KeyError, TypeError):
            return _reply(start_response, "400 Bad Request", {"error": "expected a JSON object with 'question'"})
        return _reply(start_response, "200 OK", self.ask(question))

    @observe()
    def ask(self, question: str) -> dict:
        """The answer, and the pages that it was made from."""
        found = self.retrieve(question)
        pages = "\n\n".join(self._pages[name] for name in found)
        said = self._model.chat.completions.create(
            model="small-model",
            messages=[
                {"role": "system", "content": _PROMPT.format(pages=pages)},
                {"role": "user", "content": question},
            ],
        )
        return {"answer": said.choices[0].message.content, "sources": found}

    @observe()
    def retrieve(self, question: str) -> list[str]:
        """The names of the pages whose words are those of the question, rare words first."""
        scores = {name: self._score(question, page) for name, page in self._pages.items()}
        best = sorted(scores, key=lambda name: -scores[name])[:_PAGES]
        return [name for name in best if scores[name] > 0]

    def _score(self, question: str, page: str) -> float:
        shared = _words(question) & _words(page)
        return sum(math.log(len(self._pages) / sum(word in _words(p) for p in self._pages.values())) for word in shared)


def _words(text: str) -> set[str]:
    return {word.removesuffix("s") for word in re.findall(r"[a-z]{3,}", text.lower())}


def _reply(start_response: Callable, status: str, body: dict) -> Iterable[bytes]:
    data = json.dumps(body).encode()
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(data)))])
    return [data]


if __name__ == "__main__":
    desk = HelpDesk(Path(__file__).parent / "handbook", os.environ["MODEL_URL"])
    make_server("127.0.0.1", 8000, desk).serve_forever()
