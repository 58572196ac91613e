"""Suites in the words of later releases of AgentV, loaded and run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evalwright.formats.loading import load_suite
from evalwright.model.result import CaseVerdict
from evalwright.model.suite import Suite
from evalwright.run.options import RunOptions
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run

HI = {"type": "contains", "value": "hi"}
ECHO = {"name": "default", "provider": "cli", "command": "echo {PROMPT}"}


def load(folder: Path, **head: Any) -> Suite:
    (folder / "suite.eval.yaml").write_text(json.dumps({"name": "suite", **head}))
    return load_suite(folder / "suite.eval.yaml", "agentv")


def statuses(folder: Path, **head: Any) -> dict[str, str]:
    reader, _ = open_run(run_suite(load(folder, **head), RunOptions(out=folder / "runs")).run_dir)
    return {verdict.case_id: verdict.status for verdict in reader.verdicts(CaseVerdict)}


def one(**fields: Any) -> dict[str, Any]:
    return {"id": "a", "input": "hi", **fields}


def problems(suite: Suite) -> list[str]:
    return [str(case.extra.get("load_error") or "") for case in suite.cases]
