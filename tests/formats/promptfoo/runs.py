"""Runs of small configurations of promptfoo, and what is in their records."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import yaml

from evalwright.formats.loading import load_suite
from evalwright.model.result import CaseVerdict, EvaluationResult
from evalwright.model.trace import Trace
from evalwright.run.options import RunOptions
from evalwright.run.outcomes import Outcome
from evalwright.run.start import run_suite
from evalwright.run.stored_run import open_run

ECHO = {"prompts": ["{{q}}"], "providers": ["echo"]}


def write(folder: Path, config: Any, **files: str) -> Path:
    for name, text in files.items():
        place = folder / name.replace("__", ".")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    path = folder / "promptfooconfig.yaml"
    path.write_text(config if isinstance(config, str) else yaml.safe_dump(config, sort_keys=False))
    return path


class Ran:
    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        reader, plan = open_run(outcome.run_dir)
        variants = [variant.name for variant in plan.variants]

        def place(record: Trace | CaseVerdict) -> tuple[int, int, int]:
            """In the plan: records are stored as cells finish."""
            return record.case_index or 0, record.trial, variants.index(record.variant_name)

        with closing(reader):
            self.traces = {(t.case_id, t.variant_name, t.trial): t for t in sorted(reader.traces(Trace), key=place)}
            self.verdicts = {
                (v.case_id, v.variant_name, v.trial): v for v in sorted(reader.verdicts(CaseVerdict), key=place)
            }
            self.rows = list(reader.results(EvaluationResult))

    @property
    def verdict(self) -> CaseVerdict:
        [only] = self.verdicts.values()
        return only

    @property
    def statuses(self) -> list[str]:
        return [verdict.status for verdict in self.verdicts.values()]

    @property
    def outputs(self) -> list[Any]:
        return [trace.extra["promptfoo"]["output"] for trace in self.traces.values()]

    @property
    def native(self) -> dict[str, Any]:
        assert self.outcome.summary.native is not None
        return self.outcome.summary.native

    def judged(self) -> list[str]:
        """`passed` of each row by its evaluator's name."""
        return [f"{row.evaluator} {row.status}" for row in self.rows]


def run(folder: Path, config: Any, *, options: dict[str, Any] | None = None, **files: str) -> Ran:
    return run_at(write(folder, config, **files), folder, options)


def run_at(path: Path, folder: Path, options: dict[str, Any] | None = None) -> Ran:
    return Ran(run_suite(load_suite(path, options=options), RunOptions(out=folder / "runs")))


def asserted(folder: Path, output: Any, *assertions: Any, **files: str) -> Ran:
    """One cell whose output is given."""
    test = {"vars": {"q": "asked"}, "providerOutput": output, "assert": list(assertions)}
    return run(folder, {**ECHO, "tests": [test]}, **files)


SCENARIOS = {
    **ECHO,
    "prompts": ["{{n}}{{k}}{{s}}"],
    "defaultTest": {
        "vars": {"k": "", "s": ""}, "options": {"disableDefaultAsserts": True}, "assert": [{"type": "is-json"}],
    },
    "tests": [
        {"description": "one", "vars": {"n": ["a", "b"], "k": ["x", "y"]}, "options": {"repeat": 3}},
        {"vars": {"n": "z"}},
    ],
    "scenarios": [
        {
            "config": [{"vars": {"s": 1}}, {"vars": {"s": 2}}],
            "tests": [{"vars": {"n": ["p", "q"]}}, {"vars": {"n": "r"}, "description": "one"}],
        }
    ],
    "evaluateOptions": {"repeat": 2},
}  # fmt: skip
