"""The Python surface: assertions, datasets, templates."""

import asyncio
import subprocess
import sys

import pytest

import evalwright.pixie as pixie
from evalwright.formats.pixie.llm_evaluator import UnknownPlaceholderError


async def app(word):
    with pixie.start_observation(input=word, name="app") as step:
        await asyncio.sleep(0)
        step.set_output(word.upper())


def right(evaluable, *, trace=None):
    same = evaluable.eval_output[0].value == evaluable.expected_output
    return pixie.Evaluation(1.0 if same else 0.0, "")


def items(*pairs):
    return [pixie.Evaluable(eval_input=word, expected_output=expected) for word, expected in pairs]


def test_inputs_at_the_same_moment_are_judged_by_their_own_spans():
    wanted = items(("a", "A"), ("b", "B"), ("c", "C"))
    assert asyncio.run(pixie.assert_pass(app, ["a", "b", "c"], [right], evaluables=wanted)) is None


def test_a_failure_carries_the_matrix():
    with pytest.raises(pixie.EvalAssertionError, match=r"Fail: 1/2 inputs \(50\.0%\)") as failed:
        asyncio.run(pixie.assert_pass(app, ["a", "b"], [right], evaluables=items(("a", "A"), ("b", "x"))))
    assert [[one.score for one in row] for row in failed.value.results] == [[1.0], [0.0]]


def test_an_observed_result_is_judged_as_the_value_that_it_is():
    @pixie.observe()
    def shout(word):
        return word.upper()

    said = asyncio.run(pixie.run_and_evaluate(right, shout, "hi", expected_output="HI"))
    assert said.score == 1.0


def test_a_dataset_is_stored_and_found_by_any_spelling(tmp_path):
    store = pixie.DatasetStore(tmp_path)
    store.create("My Set", items(("q", None)))
    store.append("my-set", pixie.Evaluable(eval_input="w"))
    assert [item.expected_output for item in store.get("MY SET").items] == [None, pixie.UNSET]


@pytest.mark.parametrize("template", ["{foo}", "{eval_output[reply]}", "{eval_output:{foo}}"])
def test_templates_that_cannot_be_filled_are_refused(template):
    with pytest.raises(ValueError, match=r"foo|Nested"):
        pixie.create_llm_evaluator("T", template)
    assert issubclass(UnknownPlaceholderError, ValueError)


def test_the_import_loads_nothing_costly():
    source = (
        "import sys, evalwright.pixie; print([m for m in ('pydantic', 'opentelemetry', 'openai') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
