"""Runs an application and evaluates it inside a test of your own."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.capture.listeners import init, listening
from evalwright.capture.tree import ObservationNode, tree_of
from evalwright.formats.pixie.observer import PASSES, Note, noted
from evalwright.formats.pixie.recorded import root
from evalwright.formats.pixie.surface.config import get_config
from evalwright.formats.pixie.surface.evaluable import UNSET, Evaluable, collapse_named_data
from evalwright.formats.pixie.surface.evaluation import Evaluation, could_not_judge, evaluate_unrecorded, label_of
from evalwright.reports.text import one_line
from evalwright.targets.threads import Threads

__all__ = [
    "EvalAssertionError",
    "ScoreThreshold",
    "assert_dataset_pass",
    "assert_pass",
    "run_and_evaluate",
]

_MOST_SHOWN = 20
_LONGEST = 200
Matrix = list[list[Evaluation]]


class EvalAssertionError(AssertionError):
    """The results did not meet the criteria; `results` has a row for each input."""

    def __init__(self, message: str, results: Matrix) -> None:
        super().__init__(message)
        self.results = results


@dataclass
class ScoreThreshold:
    """A share `pct` of the inputs must have scores of at least `threshold` by all evaluators."""

    threshold: float = 0.5
    pct: float = 1.0

    def passes(self, evaluation: Evaluation) -> bool:
        """Whether a score is high enough; an evaluator that could not judge has no score."""
        return evaluation.score >= self.threshold and not could_not_judge(evaluation)

    def __call__(self, results: Matrix) -> tuple[bool, str]:
        passing = sum(all(self.passes(evaluation) for evaluation in row) for row in results)
        total = len(results)
        share = passing / total if total else 0.0
        passed = total > 0 and share >= self.pct
        return passed, (
            f"{'Pass' if passed else 'Fail'}: {passing}/{total} inputs ({share:.1%}) scored >= {self.threshold} "
            f"on all evaluators (required: {self.pct:.1%})"
        )


async def _run(runnable: Callable[[Any], Any], note: Note) -> list[ObservationNode]:
    """The spans of this call only. Raises ValueError if there are none."""
    init()
    with listening() as observed:
        note.spans = observed.spans
        begun = time.monotonic()
        try:
            await _call(runnable, note.given)
        finally:
            note.seconds = time.monotonic() - begun
    trace = tree_of(observed.spans)
    if not trace:
        raise ValueError("No spans captured: mark the application with observe or start_observation")
    return trace


async def _call(runnable: Callable[[Any], Any], value: Any) -> None:
    if inspect.iscoroutinefunction(runnable):
        await runnable(value)
        return
    threads = Threads()
    try:
        result = await threads.call(_with_loop, runnable, value)
    finally:
        threads.close()
    if inspect.isawaitable(result):
        await result


def _with_loop(runnable: Callable[[Any], Any], value: Any) -> Any:
    """Call a function in a thread in which it finds an event loop."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return runnable(value)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _judged_evaluable(
    trace: list[ObservationNode], from_trace: Callable[..., Evaluable] | None, expected: Any
) -> Evaluable:
    evaluable = (from_trace or root)(trace)
    return evaluable if expected is UNSET else evaluable.model_copy(update={"expectation": expected})


async def run_and_evaluate(
    evaluator: Any,
    runnable: Callable[[Any], Any],
    eval_input: Any,
    *,
    expected_output: Any = UNSET,
    from_trace: Callable[..., Evaluable] | None = None,
) -> Evaluation:
    """Call the application once and judge its first step, or what `from_trace` makes of its spans."""
    with noted(eval_input, [evaluator]) as note:
        trace = await _run(runnable, note)
        note.evaluable = _judged_evaluable(trace, from_trace, expected_output)
        return (await _evaluations_of(note, trace))[0]


async def _evaluations_of(note: Note, trace: list[ObservationNode] | None) -> list[Evaluation]:
    """The results of all evaluators of a note; all are called. Raises the first of their errors."""
    pending = (evaluate_unrecorded(evaluator, note.evaluable, trace=trace) for evaluator in note.evaluators)
    note.outcomes = await asyncio.gather(*pending, return_exceptions=True)
    return _without_exceptions(note.outcomes)


def _without_exceptions(outcomes: Sequence[Any]) -> list[Any]:
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return list(outcomes)


async def assert_pass(
    runnable: Callable[[Any], Any],
    eval_inputs: Sequence[Any],
    evaluators: Sequence[Any],
    *,
    evaluables: Sequence[Evaluable] | None = None,
    pass_criteria: Callable[[Matrix], tuple[bool, str]] | None = None,
    from_trace: Callable[..., Evaluable] | None = None,
) -> None:
    """Run the application on every input and compare the scores with the criteria.

    At most PIXIE_RUNNABLE_CONCURRENCY (4) run at a time.

    An item of `evaluables` contains the expectation; one with an output is judged without running. Raises
    EvalAssertionError, ValueError for lists of different length, and whatever application or evaluator raise.
    """
    __tracebackhide__ = True  # pytest's traceback ends in the test
    if evaluables is not None and len(evaluables) != len(eval_inputs):
        raise ValueError(f"{len(evaluables)} evaluables for {len(eval_inputs)} inputs, expected as many")
    slots = asyncio.Semaphore(get_config().runnable_concurrency)
    criteria = pass_criteria or ScoreThreshold()
    threshold = criteria.threshold if isinstance(criteria, ScoreThreshold) else PASSES

    async def row(value: Any, item: Evaluable | None) -> list[Evaluation]:
        trace: list[ObservationNode] | None = None
        with noted(value, evaluators, threshold) as note:
            if item is None or item.eval_output is None:
                async with slots:
                    trace = await _run(runnable, note)
                note.evaluable = _judged_evaluable(trace, from_trace, UNSET if item is None else item.expectation)
            else:
                note.evaluable = item
            return await _evaluations_of(note, trace)

    items = evaluables if evaluables is not None else [None] * len(eval_inputs)
    rows = (row(*pair) for pair in zip(eval_inputs, items, strict=True))
    results: Matrix = _without_exceptions(await asyncio.gather(*rows, return_exceptions=True))
    passed, message = criteria(results)
    if not passed:
        raise _with_scores(EvalAssertionError(message, results), eval_inputs, evaluators, ScoreThreshold(threshold))


def _with_scores(
    error: EvalAssertionError, inputs: Sequence[Any], evaluators: Sequence[Any], threshold: ScoreThreshold
) -> EvalAssertionError:
    """The error with a note for each score that is too low or missing, and the input that it belongs to."""
    lines = []
    for number, (value, row) in enumerate(zip(inputs, error.results, strict=True), 1):
        low = [
            (evaluator, evaluation)
            for evaluator, evaluation in zip(evaluators, row, strict=True)
            if not threshold.passes(evaluation)
        ]
        lines += [f"input {number}, {one_line(repr(value), _LONGEST)}"] if low else []
        for one, reached in low:
            score = "error" if could_not_judge(reached) else f"{reached.score:.2f}"
            lines.append(f"  {one_line(label_of(one))} {score}: {one_line(str(reached.reasoning), _LONGEST)}")
    if len(lines) > _MOST_SHOWN:
        lines[_MOST_SHOWN:] = [f"... and {len(lines) - _MOST_SHOWN} more lines"]
    for line in lines:
        error.add_note(line)
    return error


async def assert_dataset_pass(
    runnable: Callable[[Any], Any],
    dataset_name: str,
    evaluators: Sequence[Any],
    *,
    dataset_dir: str | None = None,
    pass_criteria: Callable[[Matrix], tuple[bool, str]] | None = None,
    from_trace: Callable[..., Evaluable] | None = None,
) -> None:
    """`assert_pass` with the items of a stored dataset. Raises FileNotFoundError if it does not exist."""
    from evalwright.formats.pixie.surface.dataset_store import DatasetStore

    __tracebackhide__ = True
    items = DatasetStore(dataset_dir).get(dataset_name).items
    inputs = [collapse_named_data(item.eval_input) for item in items]
    await assert_pass(
        runnable, inputs, evaluators, evaluables=items, pass_criteria=pass_criteria, from_trace=from_trace
    )
