"""Every shape of a system, with and without a running event loop, in this thread and in others."""

import asyncio
import functools
import threading

import pytest

import evalwright as ew
from api import agents
from api.evaluations import evaluate


def yields(text):
    yield text.upper()[:1]
    yield text.upper()[1:]


async def yields_later(text):
    yield text.upper()[:1]
    await asyncio.sleep(0)
    yield text.upper()[1:]


def with_suffix(suffix, text):
    return text.upper() + suffix


SYSTEMS = {
    "function": agents.upper,
    "lambda": lambda text: text.upper(),
    "async": agents.later,
    "generator": yields,
    "async generator": yields_later,
    "partial": functools.partial(with_suffix, ""),
    "object": agents.Agent(),
    "by case": lambda case: case.input.upper(),
    "mapping": lambda text: {"final_answer": text.upper()},
    "structured": lambda text: {"answer": text.upper(), "sure": True},
    "answer": lambda text: ew.Answer.of(text.upper()),
    "place": "api.agents:upper",
    "system": ew.System(agents.upper, name="s", settings={"a": 1}, timeout=9, concurrency=2),
}


def in_this_thread(system):
    return ew.evaluate(["hi"], system, evaluators=agents.loud, out=None)


def in_another_thread(system):
    seen = []
    thread = threading.Thread(target=lambda: seen.append(in_this_thread(system)))
    thread.start()
    thread.join()
    return seen[0]


def below_a_running_loop(system):
    async def main():
        return in_this_thread(system)

    return asyncio.run(main())


def awaited(system):
    return asyncio.run(ew.aevaluate(["hi"], system, evaluators=agents.loud, out=None))


def streamed(system):
    async def main():
        async with ew.stream(["hi"], system, evaluators=agents.loud, out=None) as cells:
            return [cell async for cell in cells]

    return asyncio.run(main())


@pytest.mark.parametrize("way", [in_this_thread, in_another_thread, below_a_running_loop, awaited, streamed])
@pytest.mark.parametrize("shape", SYSTEMS)
def test_every_shape_runs_in_every_way(shape, way):
    [cell] = way(SYSTEMS[shape])
    assert (cell.status, cell.output, cell.error) == ("pass", "HI", None)


def test_asynchronous_systems_run_in_the_callers_loop():
    async def main():
        loop = asyncio.get_running_loop()

        async def system(text):
            return str(asyncio.get_running_loop() is loop)

        run = await ew.aevaluate(["x"], system, evaluators=lambda output: True, out=None)
        return run.cell("1").output

    assert asyncio.run(main()) == "True"


def test_names_come_from_mappings_systems_and_functions():
    def run(system):
        return ew.evaluate(["x"], system, evaluators=lambda output: True, out=None).variants

    assert run({"a": agents.upper, "b": agents.upper}) == ["a", "b"]
    assert run([agents.upper, ew.System(agents.upper, name="n")]) == ["upper", "n"]
    assert run("api.agents:upper") == ["upper"]
    assert run(lambda text: text) == ["lambda"]


def test_settings_are_seen_by_the_function():
    run = ew.evaluate(
        {"c": "x"}, ew.System(agents.picks, settings={"word": "w"}), evaluators=lambda output: True, out=None
    )
    assert run.cell("c").output == "c w"


def test_without_a_loop_of_asyncio_one_is_asked_for():
    """As under trio: there, coroutines are driven by a loop of another kind."""
    waiting = ew.aevaluate(["x"], agents.upper, evaluators=lambda output: True, out=None)
    with pytest.raises(ew.InputError, match=r"^aevaluate needs an event loop of asyncio, .* call `evaluate` in a"):
        waiting.send(None)
    streaming = ew.stream(["x"], agents.upper, evaluators=lambda output: True, out=None)
    with pytest.raises(ew.InputError, match=r"^stream needs an event loop of asyncio"):
        streaming.__aenter__().send(None)


@pytest.mark.parametrize(("returned", "found"), [(None, "NoneType"), (3, "int"), (["a"], "list"), ((1, 2), "tuple")])
def test_what_is_no_answer_is_an_error_that_names_the_function(returned, found):
    run = ew.evaluate(["x"], lambda text: returned, evaluators=lambda output: True, out=None)
    [cell] = run.errors()
    assert f"found {found} (test_systems.py:" in cell.error
    assert 'return "text"' in cell.error


def test_an_exception_keeps_the_line_of_user_code():
    def fails(text):
        raise ValueError("no")

    [cell] = ew.evaluate(["x"], fails, evaluators=lambda output: True, out=None)
    assert cell.error == f"ValueError: no in test_systems.py:{fails.__code__.co_firstlineno + 1}"
    assert cell.trace.error.type == "adapter_error"


def ends(text):
    return next(iter([]))


async def ends_later(text):
    return next(iter([]))


@pytest.mark.parametrize("system", [ends, ends_later])
def test_an_iterator_that_is_at_its_end_keeps_the_line_of_user_code(system):
    """A StopIteration leaves a coroutine as a RuntimeError, whose own stack has no line of the user's."""
    [cell] = ew.evaluate(["x"], system, evaluators=lambda output: True, out=None)
    assert cell.error.endswith(f"StopIteration in test_systems.py:{system.__code__.co_firstlineno + 1}")


def test_an_answer_of_a_text_says_how_it_is_written():
    [cell] = ew.evaluate(["x"], lambda text: ew.Answer(text), evaluators=lambda output: True, out=None)
    assert cell.error.startswith("the output of the Answer (test_systems.py:")
    assert cell.error.endswith("must be an Output, found str: write Answer.of(TEXT)")


def test_a_late_call_is_an_error():
    async def sleeps(text):
        await asyncio.sleep(60)

    [cell] = ew.evaluate(["x"], sleeps, evaluators=lambda output: True, out=None, timeout=0.05)
    assert cell.trace.error.type == "timeout"


def test_four_runs_at_once_do_not_see_each_others_functions():
    async def one(word):
        def says(text):
            return word

        def is_right(output):
            return output == word

        return await ew.aevaluate(list("vwxyz"), says, evaluators=is_right, out=None)

    async def all_of_them():
        return await asyncio.gather(*map(one, "abcd"))

    runs = asyncio.run(all_of_them())
    assert [run.cell("1").output for run in runs] == list("abcd")
    assert all(run.passed for run in runs)


def test_four_threads_do_not_see_each_others_functions():
    runs = {}

    def one(word):
        runs[word] = ew.evaluate(["x"] * 5, lambda text: word, evaluators=lambda output: output == word, out=None)

    threads = [threading.Thread(target=one, args=(word,)) for word in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {word: run.cell("5").output for word, run in runs.items()} == {word: word for word in "abcd"}
    assert all(run.passed for run in runs.values())


def test_prints_go_where_those_of_the_caller_go(capsys):
    def prints(text):
        print("from the system")
        return text

    ew.evaluate(["x"], prints, evaluators=lambda output: True, out=None)
    assert capsys.readouterr().out == "from the system\n"


def stored(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_credentials_among_settings_are_not_stored_and_not_lost(tmp_path):
    working = False

    def answer(case, variant):
        if not working:
            raise ConnectionError(f"refused {variant.config['api_key']}")
        return f"{variant.config['api_key']} {variant.config['tone']}"

    system = ew.System(
        answer,
        settings={"api_key": "k9-literal-key", "headers": {"Authorization": "Bearer b7-token-text"}, "tone": "dry"},
    )
    run = evaluate(["a"], system, out=tmp_path, evaluators=lambda output: output == "k9-literal-key dry")
    assert [cell.status for cell in run] == ["error"]
    working = True
    again = ew.resume(run, retry_errors=True)
    assert [cell.status for cell in again] == ["pass"]
    assert b"dry" in stored(tmp_path)
    assert b"k9-literal-key" not in stored(tmp_path)
    assert b"b7-token-text" not in stored(tmp_path)
    with pytest.raises(ew.InputError, match="never stored"):
        ew.resume(run.path, retry_errors=True)


class Stopped(Exception):
    """Raised to end a run."""


def test_an_interrupted_run_goes_on_with_the_credentials_that_are_passed_again(tmp_path):
    def answer(case, variant):
        return variant.config["token"]

    def stop(cell):
        raise Stopped

    cases = [str(number) for number in range(30)]
    system = ew.System(answer, settings={"token": "t5-literal-token"})
    judge = {"out": tmp_path, "evaluators": lambda output: output == "t5-literal-token"}
    with pytest.raises(Stopped):
        evaluate(cases, system, concurrency=1, on_cell=stop, **judge)
    run = evaluate(cases, system, resume=True, **judge)
    assert (len(run), run.passed, len(list(tmp_path.iterdir()))) == (30, True, 1)
    assert b"t5-literal-token" not in stored(tmp_path)


def test_a_generator_without_pieces_has_no_answer():
    def yields_nothing(text):
        yield from ()

    async def yields_nothing_later(text):
        for piece in ():
            yield piece

    run = ew.evaluate(["a"], {"now": yields_nothing, "later": yields_nothing_later}, evaluators="answered", out=None)
    assert [cell.status for cell in run] == ["error", "error"]
