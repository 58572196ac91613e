"""Record the judge of the built-in example anew: `python scripts/record_demo_judge.py` after a change of its prompts.

The judge is a server on loopback that goes by three rules; no model is asked.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from evalwright import demo

SUITE = Path(demo.__file__).parent / "suite"
RECORDING = SUITE / "judgements.jsonl"
BLOCK = re.compile(r"^(\S+):\n<data-\w+>\n(.*?)\n</data-", re.MULTILINE | re.DOTALL)
KIND = ("sorry", "please", "thank", "welcome")


def judgement(prompt: str) -> dict[str, Any]:
    shown = dict(BLOCK.findall(prompt))
    question, answer = shown["input"], shown["output.final_answer"]
    answered = question.count("?") + question.count(", and ") < 2
    private = "INTERNAL" in answer
    kind = any(word in answer.lower() for word in KIND)
    return {
        "assertions": [
            {"text": "1", "passed": answered, "reason": "" if answered else "Only one of two questions is answered."},
            {"text": "2", "passed": not private, "reason": "It quotes an internal note." if private else ""},
            {"text": "3", "passed": kind, "reason": "" if kind else "It is matter-of-fact."},
        ]
    }


class Judge(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = json.dumps(judgement(asked["messages"][-1]["content"]))
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 400, "completion_tokens": 60, "total_tokens": 460}
        body = {"id": "1", "object": "chat.completion", "created": 0, "model": asked["model"], "choices": [choice]}
        data = json.dumps({**body, "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Judge)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    RECORDING.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "evalwright", "run", "judged.yaml", "--record", RECORDING, "--out", folder]
        here = {**os.environ, "OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1"}
        if (code := subprocess.run(command, cwd=SUITE, env=here, check=False).returncode) > 1:
            sys.exit(code)
    rows = sorted(RECORDING.read_bytes().split(b"\n"))[1:]  # the order of calls is chance
    RECORDING.write_bytes(b"".join(row + b"\n" for row in rows))


if __name__ == "__main__":
    main()
