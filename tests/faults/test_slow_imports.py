"""What a package takes to be imported is not the time of the first cells that need it."""

from __future__ import annotations

import json

import pytest
import yaml

from faults.harness import Project, lines

SLOW_PACKAGE = """
import time
from types import SimpleNamespace as Of

time.sleep(3)


async def acompletion(**asked):
    message = Of(content="fine", tool_calls=None, refusal=None)
    return Of(model="m", usage=None, choices=[Of(index=0, message=message, finish_reason="stop")])
"""


@pytest.mark.cold
def test_the_first_cells_have_their_whole_time_for_the_model(tmp_path):
    (tmp_path / "litellm.py").write_text(SLOW_PACKAGE)
    (tmp_path / "cases.jsonl").write_text(
        "".join(json.dumps({"id": f"c{n}", "input": {"prompt": "hello"}}) + "\n" for n in "123")
    )
    suite = {
        "eval": {"name": "slow"},
        "dataset": {"type": "jsonl", "path": "cases.jsonl"},
        "systems": [
            {
                "name": "v",
                "adapter": "openai_chat",
                "model": "litellm/m",
                "timeout_seconds": 2,
                "user_template": "{{ input.prompt }}",
            }
        ],
        "evaluators": [{"name": "fine", "type": "contains_text", "config": {"all_of": ["fine"]}}],
        "output": [{"type": "local_files", "path": "runs"}],
    }
    (tmp_path / "eval.yaml").write_text(yaml.safe_dump(suite))
    project = Project(tmp_path, {"PYTHONPATH": str(tmp_path)})
    done = project.command("run", "eval.yaml")
    assert done.returncode == 0, done.stderr + done.stdout
    errors = [trace["error"] for trace in lines(project.run_dir() / "traces.jsonl")]
    assert errors == [None, None, None]
