"""Stored runs of a system that answers what each case says, for audits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evalwright.audit.audit import audit_run
from evalwright.files.yaml import dump
from evalwright.formats.loading import load_suite
from evalwright.model.audit import AuditReport, EvaluatorAudit, MutationAudit
from evalwright.run.start import run_suite

AGENT = "def run(case, variant):\n    return case['input']\n"
CALLS = [{"name": "find", "arguments": {"n": 1}}, {"name": "refund", "arguments": {"n": 1}}]


def says(name: str, *words: str, **config: Any) -> dict[str, Any]:
    return {"name": name, "type": "contains_text", "config": {"all_of": [*words], **config}}


def stored(folder: Path, answers: dict[str, Any], *evaluators: dict[str, Any], **sections: Any) -> Path:
    """The folder of a run with a case for each id, whose answer is given."""
    texts = {case: {"final_answer": answer} if isinstance(answer, str) else answer for case, answer in answers.items()}
    (folder / "cases.jsonl").write_text(
        "".join(json.dumps({"id": i, "input": text}) + "\n" for i, text in texts.items())
    )
    (folder / "audited_agent.py").write_text(AGENT)
    suite = {
        "eval": {"name": "audited"},
        "dataset": {"type": "jsonl", "path": "cases.jsonl"},
        "systems": [{"name": "v", "adapter": "python_function", "target": "audited_agent:run"}],
        "evaluators": [*evaluators],
        "output": {"type": "local_files", "path": str(folder / "runs")},
        **sections,
    }
    (folder / "eval.yaml").write_text(dump(suite))
    return run_suite(load_suite(folder / "eval.yaml")).run_dir


def audited(folder: Path, answers: dict[str, Any], *evaluators: dict[str, Any], **sections: Any) -> AuditReport:
    return audit_run(stored(folder, answers, *evaluators, **sections), limit=100)


def mutation(report: AuditReport, name: str) -> MutationAudit:
    return next(one for one in report.mutations if one.mutation == name)


def evaluator(report: AuditReport, name: str) -> EvaluatorAudit:
    return next(one for one in report.evaluators if one.evaluator == name)
