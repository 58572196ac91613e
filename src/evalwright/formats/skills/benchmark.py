"""The folder of a benchmark in skill-creator's layout: gradings, timings, outputs and their summary."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from evalwright.decisions.runs import one_run
from evalwright.decisions.terms import Terms
from evalwright.errors import InputError, counted
from evalwright.files.durable import make_folder, must_be_writable, replace_file, storage_error
from evalwright.formats.skills import FORMAT
from evalwright.formats.skills.grading import GradedCell
from evalwright.formats.skills.variants import WITH
from evalwright.model.cell import attempt_key
from evalwright.model.plan import Plan
from evalwright.model.protocols import RunReader
from evalwright.model.snapshot import Case
from evalwright.model.summary import RunSummary
from evalwright.reports.cells import Choice, chosen_cells
from evalwright.scoring.verdict import names_needed
from evalwright.stores.artifacts import read_artifact, safe_name

__all__ = ["SkillBenchmark", "run_summary"]

_SMALL = 0.001
_NUMBERS = {"pass_rate": "+.2f", "time_seconds": "+.1f", "tokens": "+.0f"}


_ROWS: tuple[tuple[str, str, Callable[[Mapping[str, float]], str]], ...] = (
    ("pass_rate", "Pass Rate", lambda n: f"{n['mean'] * 100:.0f}% ± {n['stddev'] * 100:.0f}%"),
    ("time_seconds", "Time", lambda n: f"{n['mean']:.1f}s ± {n['stddev']:.1f}s"),
    ("tokens", "Tokens", lambda n: f"{n['mean']:.0f} ± {n['stddev']:.0f}"),
)


class SkillBenchmark:
    """The `benchmark.json` of skill-creator and its gradings, written whenever a session of the run ends.

    `path` is their folder, by default `benchmark` in the run folder.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._path: str | None = config.get("path")

    @classmethod
    def of_stored(cls, plan: Plan, folder: Path) -> SkillBenchmark:
        """Raises InputError for a run of another format, which has no criteria."""
        if plan.dialect != FORMAT.name:
            raise InputError(f"a benchmark has the criteria of {FORMAT.title}: only runs of its suites do")
        return cls({"path": str(folder)})

    def check(self) -> None:
        """Raises InputError for a folder that cannot be written."""
        if self._path is not None:
            must_be_writable(Path(self._path, "benchmark.json"))

    def write(self, run: RunReader, plan: Plan, summary: RunSummary, mask: Callable[[str], str]) -> None:
        """Raises StorageError."""
        location = Path(run.location)
        if self._path is None and not location.is_dir():
            return  # a run in a database has no folder; --benchmark names one
        writing = _BenchmarkFolder(Path(self._path) if self._path else location / "benchmark", mask)
        cells = _in_order(_graded_cells(run, plan), plan)
        for cell in cells:
            writing.cell(cell)
        document = _document(cells, run, plan, summary)
        writing.json("benchmark.json", document)
        writing.text("benchmark.md", _markdown(document))


def _in_order(cells: Iterable[GradedCell], plan: Plan) -> list[GradedCell]:
    """By case, variant and run, as skill-creator lists them, whichever ended first."""
    place = {variant.name: i for i, variant in enumerate(plan.variants)}
    return sorted(cells, key=lambda c: (c.trace.case_index or 0, place[c.trace.variant_name], c.trace.trial))


def _graded_cells(run: RunReader, plan: Plan) -> Iterator[GradedCell]:
    cases = dict(enumerate(run.cases()))
    numbered = all(case.id.isdecimal() for case in cases.values())  # skill-creator sorts ids: all must be of one kind
    trials = plan.trials_by_variant
    for cell in chosen_cells(run, plan, names_needed(run, plan), Choice()):
        trace = cell.trace
        case = cases.get(-1 if trace.case_index is None else trace.case_index, Case(trace.case_id, trace.input))
        artifact = read_artifact(run.artifacts, *attempt_key(trace), trials[trace.variant_name])
        yield GradedCell(case, int(case.id) if numbered else case.id, cell, artifact)


class _BenchmarkFolder:
    def __init__(self, folder: Path, mask: Callable[[str], str]) -> None:
        self._folder, self._mask = folder, mask

    def cell(self, graded: GradedCell) -> None:
        task = f"eval-{safe_name(graded.case.id)}"
        folder = f"{task}/{_configuration(graded.trace.variant_name)}/run-{graded.trace.trial + 1}"
        self.json(f"{task}/eval_metadata.json", _about(graded))
        self.json(f"{folder}/timing.json", graded.timing())
        if graded.judged:
            self.json(f"{folder}/grading.json", graded.grading())
        else:
            with suppress(OSError):
                (self._folder / folder / "grading.json").unlink()  # left by an earlier attempt
        self._outputs(graded, self._folder / folder / "outputs")

    def _outputs(self, graded: GradedCell, folder: Path) -> None:
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for path in graded.made if graded.artifact is not None else ():
                source = graded.artifact.folder / "after" / path  # type: ignore[union-attr]
                if source.is_file():  # else it is stored under another name because its own contains a secret
                    (folder / path).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source, folder / path)
        except OSError as error:
            raise storage_error("write", folder, error) from error

    def json(self, name: str, document: Mapping[str, Any]) -> None:
        self.text(name, msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n")

    def text(self, name: str, text: str) -> None:
        path = self._folder / name
        make_folder(path.parent)
        replace_file(path, self._mask(text).encode("utf-8", "backslashreplace"))


def _configuration(variant: str) -> str:
    return safe_name(variant.replace("/", "-"))


def _about(graded: GradedCell) -> dict[str, Any]:
    case = graded.case
    texts = [spec.config["text"] for spec in case.evaluators or () if spec.type == "skill_criterion"]
    prompt = case.input.get("prompt", "") if isinstance(case.input, dict) else case.input
    return {"eval_id": graded.eval_id, "eval_name": graded.name, "prompt": prompt, "assertions": texts}


def _document(cells: Sequence[GradedCell], run: RunReader, plan: Plan, summary: RunSummary) -> dict[str, Any]:
    judged = [cell for cell in cells if cell.judged]
    names = [variant.name for variant in plan.variants]
    errors = {_configuration(name): 0 for name in names}
    for cell in cells:
        errors[_configuration(cell.trace.variant_name)] += cell.cell.verdict.status == "error"
    decided = _comparisons(run, plan)
    models = [variant.config.get("model") for variant in plan.variants]
    seen = [cell.trace.extra.get("model") for cell in cells]
    judges = [row.detail.get("judge_model") for cell in cells for row in cell.cell.results]
    return {
        "metadata": {
            "skill_name": plan.metadata.get("skill_name", plan.name),
            "skill_path": plan.metadata.get("skill_path", ""),
            "executor_model": _joined_names(models) or _joined_names(seen),
            "analyzer_model": _joined_names(judges),
            "timestamp": summary.started_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "evals_run": sorted(
                {cell.eval_id for cell in cells}, key=lambda eval_id: (isinstance(eval_id, str), eval_id)
            ),
            "runs_per_configuration": max((cell.trace.trial + 1 for cell in cells), default=0),
            "errors": errors,
        },
        "runs": [cell.run(_configuration(cell.trace.variant_name)) for cell in judged],
        "run_summary": run_summary({_configuration(name): _runs_of(name, judged) for name in names}),
        "comparison": decided,
        "per_eval": {_configuration(name): _means(name, cells) for name in names},
        "notes": [*_notes(judged, errors, decided), *summary.warnings],
    }


def _joined_names(names: Sequence[Any]) -> str:
    return ", ".join(dict.fromkeys(str(name) for name in names if name))


def _runs_of(name: str, judged: Sequence[GradedCell]) -> list[GradedCell]:
    return [cell for cell in judged if cell.trace.variant_name == name]


def run_summary(runs: Mapping[str, Sequence[GradedCell]]) -> dict[str, Any]:
    """Mean, sample standard deviation and range of each number over the runs, and the first configuration's lead.

    Tokens come from the runs that report them; if none does, they are left out.
    """
    summary: dict[str, Any] = {}
    for name, cells in runs.items():
        if not cells:
            continue
        numbers: dict[str, list[float]] = {
            "pass_rate": [cell.grading()["summary"]["pass_rate"] for cell in cells],
            "time_seconds": [cell.seconds for cell in cells],
            "tokens": [cell.tokens for cell in cells if cell.tokens is not None],
        }
        summary[name] = {key: _spread(values) for key, values in numbers.items() if values}
    if len(summary) > 1:
        first, second = [*summary.values()][:2]
        shared = [key for key in _NUMBERS if key in first and key in second]
        summary["delta"] = {key: format(first[key]["mean"] - second[key]["mean"], _NUMBERS[key]) for key in shared}
    return summary


def _spread(values: Sequence[float]) -> dict[str, float]:
    mean = sum(values) / len(values)
    squares = sum((value - mean) ** 2 for value in values)
    deviation = math.sqrt(squares / (len(values) - 1)) if len(values) > 1 else 0.0
    return {
        "mean": round(mean, 4),
        "stddev": round(deviation, 4),
        "min": round(min(values), 4),
        "max": round(max(values), 4),
    }


def _means(name: str, cells: Sequence[GradedCell]) -> dict[str, float | None]:
    """Mean time, tokens and cost of a run of an eval, each over the runs that report it."""
    own = [cell for cell in cells if cell.trace.variant_name == name]
    costs = [cell.trace.metrics.cost_usd for cell in own if cell.trace.metrics.cost_usd is not None]
    tokens = [cell.tokens for cell in own if cell.tokens is not None]
    seconds = [cell.seconds for cell in own if cell.trace.latency_ms is not None]
    return {"seconds": _mean(seconds), "tokens": _mean(tokens), "usd": _mean(costs)}


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 6) if values else None


def _comparisons(run: RunReader, plan: Plan) -> list[dict[str, Any]]:
    """With the skill against without it, by case: several runs of a case are not independent."""
    names = [variant.name for variant in plan.variants]
    pairs = [(other, name) for name in names for other in names if name.endswith(WITH) and _is_base(other, name)]
    comparisons = []
    runs = one_run(run, plan, Terms()) if pairs else None
    for base, one in pairs:
        if runs is None or base not in runs.a or one not in runs.b:
            continue
        decision = runs.decision(base, one)
        comparisons.append(
            {
                "configuration": _configuration(one),
                "baseline": _configuration(base),
                "difference": decision.difference,
                "ci95": decision.ci,
                "p": decision.p_better,
                "n": decision.n,
                "verdict": decision.verdict,
                "cases_needed": None if decision.next is None else decision.next.cases,
            }
        )
    return comparisons


def _is_base(other: str, variant: str) -> bool:
    """Whether two variants are the same agent, one of them without the skill or with an older version."""
    return other != variant and other.rpartition("/")[0] == variant.rpartition("/")[0]


def _notes(
    judged: Sequence[GradedCell], errors: Mapping[str, int], comparisons: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    for comparison in comparisons:
        yield _sentence(comparison)
    for name, number in errors.items():
        if number:
            yield f"{name}: {counted(number, 'run')} without a verdict, left out of the means"
    if missing := sum(cell.tokens is None for cell in judged):
        yield f"{counted(missing, 'run')} without a number of tokens: these are left out, not guessed from characters"


def _sentence(comparison: Mapping[str, Any]) -> str:
    if comparison["difference"] is None:
        return f"{comparison['configuration']} against {comparison['baseline']}: no case was judged on both sides"
    message = (
        f"{comparison['configuration']} against {comparison['baseline']}: pass rate {comparison['difference']:+.2f}"
    )
    if comparison["ci95"] is not None:
        message += f", 95 % interval {comparison['ci95'][0]:+.2f} to {comparison['ci95'][1]:+.2f}"
    if comparison["p"] is not None:
        message += f", p {comparison['p']:.3f}" if comparison["p"] >= _SMALL else f", p < {_SMALL}"
    message += f", {counted(comparison['n'], 'case')}"
    return (
        message
        if comparison["cases_needed"] is None
        else f"{message}; about {comparison['cases_needed']} cases would decide it"
    )


def _markdown(document: Mapping[str, Any]) -> str:
    about, summary = document["metadata"], document["run_summary"]
    names = [name for name in summary if name != "delta"]
    delta = summary.get("delta", {})
    runs = about["runs_per_configuration"]
    lines = [
        f"# Skill Benchmark: {about['skill_name']}",
        "",
        f"**Model**: {about['executor_model'] or 'unknown'}",
        f"**Date**: {about['timestamp']}",
        f"**Evals**: {', '.join(map(str, about['evals_run']))} ({counted(runs, 'run')} each per configuration)",
        "",
        "## Summary",
        "",
        f"| Metric | {' | '.join(name.replace('_', ' ').title() for name in names)} | Delta |",
        f"|--------|{'---|' * (len(names) + 1)}",
    ]
    for key, title, shown in _ROWS:
        cells = [shown(summary[name][key]) if key in summary[name] else "—" for name in names]
        lines.append(f"| {' | '.join([title, *cells, delta.get(key, '—')])} |")
    if document["notes"]:
        lines += ["", "## Notes", "", *(f"- {' '.join(note.split())}" for note in document["notes"])]
    return "\n".join(lines) + "\n"
