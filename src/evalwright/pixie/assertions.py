"""Running an application and judging it inside a test of one's own (specification pixie, 5.5)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.capture.recording import listening
from evalwright.capture.tree import ObservationNode, tree_of
from evalwright.pixie.evaluable import UNSET, Evaluable, collapse_named_data
from evalwright.pixie.evaluation import Evaluation, evaluate
from evalwright.pixie.recorded import root
from evalwright.targets.threads import Threads

__all__ = [
    "EvalAssertionError",
    "ScoreThreshold",
    "assert_dataset_pass",
    "assert_pass",
    "run_and_evaluate",
]

_AT_ONCE = 4
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

    def __call__(self, results: Matrix) -> tuple[bool, str]:
        passing = sum(all(one.score >= self.threshold for one in row) for row in results)
        total = len(results)
        share = passing / total if total else 0.0
        passed = total > 0 and share >= self.pct
        return passed, (
            f"{'Pass' if passed else 'Fail'}: {passing}/{total} inputs ({share:.1%}) scored >= {self.threshold} "
            f"on all evaluators (required: {self.pct:.1%})"
        )


async def _run(runnable: Callable[[Any], Any], given: Any) -> list[ObservationNode]:
    """The spans of one call, and of no other. Raises ValueError when there are none."""
    with listening() as heard:
        if inspect.iscoroutinefunction(runnable):
            await runnable(given)
        else:
            threads = Threads()
            try:
                result = await threads.call(_with_loop, runnable, given)
            finally:
                threads.close()
            if inspect.isawaitable(result):
                await result
    trace = tree_of(heard.spans)
    if not trace:
        raise ValueError("No spans captured: mark the application with observe or start_observation")
    return trace


def _with_loop(runnable: Callable[[Any], Any], given: Any) -> Any:
    """Call a function in a thread in which it finds an event loop."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return runnable(given)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _judged(trace: list[ObservationNode], from_trace: Callable[..., Evaluable] | None, expected: Any) -> Evaluable:
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
    trace = await _run(runnable, eval_input)
    return await evaluate(evaluator, _judged(trace, from_trace, expected_output), trace=trace)


async def assert_pass(
    runnable: Callable[[Any], Any],
    eval_inputs: Sequence[Any],
    evaluators: Sequence[Any],
    *,
    evaluables: Sequence[Evaluable] | None = None,
    pass_criteria: Callable[[Matrix], tuple[bool, str]] | None = None,
    from_trace: Callable[..., Evaluable] | None = None,
) -> None:
    """Run the application on every input, at most four at a time, and hold the scores to the criteria.

    An item of `evaluables` brings what is expected; one with an output is judged without running. Raises
    EvalAssertionError, ValueError for lists of different length, and whatever application or evaluator raise.
    """
    if evaluables is not None and len(evaluables) != len(eval_inputs):
        raise ValueError(f"{len(evaluables)} evaluables for {len(eval_inputs)} inputs, expected as many")
    slots = asyncio.Semaphore(_AT_ONCE)

    async def row(given: Any, item: Evaluable | None) -> list[Evaluation]:
        trace: list[ObservationNode] | None = None
        if item is None or item.eval_output is None:
            async with slots:
                trace = await _run(runnable, given)
            evaluable = _judged(trace, from_trace, UNSET if item is None else item.expectation)
        else:
            evaluable = item
        return list(await asyncio.gather(*(evaluate(one, evaluable, trace=trace) for one in evaluators)))

    items = evaluables if evaluables is not None else [None] * len(eval_inputs)
    results = list(await asyncio.gather(*(row(*pair) for pair in zip(eval_inputs, items, strict=True))))
    passed, message = (pass_criteria or ScoreThreshold())(results)
    if not passed:
        raise EvalAssertionError(message, results)


async def assert_dataset_pass(
    runnable: Callable[[Any], Any],
    dataset_name: str,
    evaluators: Sequence[Any],
    *,
    dataset_dir: str | None = None,
    pass_criteria: Callable[[Matrix], tuple[bool, str]] | None = None,
    from_trace: Callable[..., Evaluable] | None = None,
) -> None:
    """`assert_pass` with the items of a stored dataset. Raises FileNotFoundError for one that is not there."""
    from evalwright.pixie.dataset_store import DatasetStore

    items = DatasetStore(dataset_dir).get(dataset_name).items
    inputs = [collapse_named_data(item.eval_input) for item in items]
    await assert_pass(
        runnable, inputs, evaluators, evaluables=items, pass_criteria=pass_criteria, from_trace=from_trace
    )
