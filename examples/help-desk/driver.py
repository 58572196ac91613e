"""The system under test: the service as it is, asked over HTTP, with a model's server started for it."""

from __future__ import annotations

from pathlib import Path

import httpx
import model_server
from service import HelpDesk


class Driver:
    """Asks one question a case. The requests reach the service in this process, so that its spans are captured."""

    def __init__(self, handbook: str) -> None:
        desk = HelpDesk(Path(__file__).parent / handbook, model_server.start())
        self._client = httpx.Client(transport=httpx.WSGITransport(app=desk), base_url="http://help-desk")

    def __call__(self, case: dict, variant: dict) -> dict:
        reply = self._client.post("/ask", json={"question": case["input"]["user_message"]})
        reply.raise_for_status()
        said = reply.json()
        return {"final_answer": said["answer"], "structured": {"sources": said["sources"]}}
