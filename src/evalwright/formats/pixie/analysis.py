"""A model's analysis of the results of a test run: a page for each dataset, beside `result.json`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from evalwright.errors import EvaluatorError
from evalwright.evaluators.judges.prompt_data import DATA_RULE, data_blocks
from evalwright.files.durable import replace_file
from evalwright.formats.pixie.judge_calls import chat
from evalwright.formats.pixie.observer import PASSES
from evalwright.formats.pixie.surface.config import get_config
from evalwright.llm.models import LiveModels
from evalwright.session import Session, environment

__all__ = ["analyze", "read_results"]

_TEMPERATURE = 0.3
_SYSTEM = (
    "You analyse how an application did in a test, for the people who build it. Answer in Markdown with three "
    "sections: a summary of what the results show; a failure analysis, which says for each way of failing what went "
    f"wrong and why it scored low; recommendations, concrete and in the order of their use. {DATA_RULE}"
)


class _Evaluation(msgspec.Struct):
    evaluator: str
    score: float | None = None
    reasoning: str = ""


class _Entry(msgspec.Struct, rename="camel"):
    evaluations: list[_Evaluation]
    input: Any = None
    output: Any = None
    expected_output: Any = None
    description: str | None = None

    @property
    def passed(self) -> bool:
        return all(evaluation.score is not None and evaluation.score >= PASSES for evaluation in self.evaluations)


class _Dataset(msgspec.Struct):
    dataset: str
    entries: list[_Entry]


class _Results(msgspec.Struct):
    datasets: list[_Dataset]


def read_results(run_id: str) -> tuple[Path, _Results]:
    """The folder and the results of a test run. Raises FileNotFoundError, and ValueError if the file is not a result
    file."""
    folder = Path(get_config().root) / "results" / run_id
    path = folder / "result.json"
    if Path(run_id).name != run_id or not path.is_file():
        raise FileNotFoundError(f"No test result found for ID {run_id!r}")
    try:
        return folder, msgspec.json.decode(path.read_bytes(), type=_Results)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from error


async def analyze(folder: Path, results: _Results) -> list[str]:
    """Write `dataset-<i>.md` for each dataset. Returns, for those without a page, why the model did not answer."""
    with Session(models=lambda: LiveModels(environment=environment())) as asking:
        try:
            problems = await asyncio.gather(
                *(_page(folder / f"dataset-{i}.md", dataset) for i, dataset in enumerate(results.datasets))
            )
        finally:
            await asking.aclose()
    return [
        f"{result.dataset}: {problem}" for result, problem in zip(results.datasets, problems, strict=True) if problem
    ]


async def _page(path: Path, dataset: _Dataset) -> str | None:
    try:
        text = await chat(
            _shown_dataset(dataset), str, system=_SYSTEM, model=get_config().analyze_model, temperature=_TEMPERATURE
        )
    except EvaluatorError as error:
        return str(error)
    replace_file(path, f"{text.rstrip()}\n".encode())
    return None


def _shown_dataset(dataset: _Dataset) -> str:
    passed = sum(entry.passed for entry in dataset.entries)
    entries = "\n\n".join(_entry(number, entry) for number, entry in enumerate(dataset.entries, 1))
    head = data_blocks([("dataset", dataset.dataset)])
    return f"{head}\n\n{passed} of {len(dataset.entries)} entries passed.\n\n{entries}"


def _entry(number: int, entry: _Entry) -> str:
    blocks: list[tuple[str, Any]] = [("input", entry.input), ("output", entry.output)]
    if entry.description is not None:
        blocks.insert(0, ("description", entry.description))
    if entry.expected_output is not None:
        blocks.append(("expected", entry.expected_output))
    scores = [
        {"evaluator": evaluation.evaluator, "score": evaluation.score, "reason": evaluation.reasoning}
        for evaluation in entry.evaluations
    ]
    blocks.append(("scores (null: could not be judged)", scores))
    return f"## Entry {number}: {'PASS' if entry.passed else 'FAIL'}\n\n{data_blocks(blocks)}"
