"""A system under test that misbehaves in the way that its input asks for, and keeps a ledger of its calls."""

import asyncio
import os
import sys
import time


class Odd(BaseException):
    """An exception that cannot even be printed."""

    def __str__(self):
        raise ValueError("no text")


def _ledger(case):
    path = os.environ.get("CALL_LEDGER")
    if path:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, f"{case['id']}\n".encode())
        os.close(descriptor)


def _raise(error):
    raise error


def _deep(levels):
    value = "bottom"
    for _ in range(levels):
        value = [value]
    return value


def _cyclic():
    value = {}
    value["self"] = value
    return value


def _recurse():
    return _recurse()


def _busy():
    while True:
        pass


def _clear_environment():
    os.environ.clear()
    return {"final_answer": "fine"}


def _chdir():
    os.chdir("/")
    return {"final_answer": "fine"}


def _close_stdout():
    sys.stdout.close()
    return {"final_answer": "fine"}


def _print_much():
    for _ in range(1000):
        print('{"run_dir": "somewhere else"}' * 10)
    return {"final_answer": "fine"}


MODES = {
    "fine": lambda: {"final_answer": "fine"},
    "raise": lambda: _raise(RuntimeError("on purpose \x1b[31m \u2028 </script>")),
    "raise_base": lambda: _raise(Odd()),
    "raise_group": lambda: _raise(BaseExceptionGroup("several", [ValueError("one"), KeyboardInterrupt()])),
    "raise_cancelled": lambda: _raise(asyncio.CancelledError()),
    "raise_stop_iteration": lambda: _raise(StopIteration(3)),
    "keyboard_interrupt": lambda: _raise(KeyboardInterrupt()),
    "sys_exit": lambda: sys.exit(0),
    "os_exit": lambda: os._exit(0),
    "abort": os.abort,
    "sleep": lambda: time.sleep(3600),
    "busy": _busy,
    "recursion": _recurse,
    "none": lambda: None,
    "text": lambda: "just text",
    "object": lambda: {"structured": {"x": object(), 3: {1, 2}}, "final_answer": "fine"},
    "nan": lambda: {"structured": {"x": float("nan"), "y": -0.0}, "final_answer": "fine"},
    "huge_int": lambda: {"structured": {"x": 10**5000}, "final_answer": "fine"},
    "deep": lambda: {"structured": {"x": _deep(100_000)}, "final_answer": "fine"},
    "cyclic": lambda: {"structured": _cyclic(), "final_answer": "fine"},
    "strange_text": lambda: {
        "final_answer": "fine nul:\x00 ls:\u2028 nel:\x85 bom:\ufeff esc:\x1b]0;x\x07 cr:\r lf:\n"
    },
    "surrogate": lambda: {"final_answer": "fine, half a pair: \ud800"},
    "megabyte": lambda: {"final_answer": "fine" + "x" * 2**20},
    "chdir": _chdir,
    "clear_environment": _clear_environment,
    "close_stdout": _close_stdout,
    "print": _print_much,
}
HELD = sorted(MODES.keys() - {"abort"})
"""What is held without a process of its own."""


def _answer(case):
    _ledger(case)
    answer = MODES[case["input"]["mode"]]
    case.clear()
    return answer()


async def run(case, variant):
    await asyncio.sleep(0)
    return _answer(case)


def run_sync(case, variant):
    return _answer(case)


async def slow(case, variant):
    _ledger(case)
    await asyncio.sleep(float(os.environ.get("CALL_SECONDS", "0.005")))
    return {"final_answer": "fine"}


async def ignores_cancellation(case, variant):
    _ledger(case)
    while case["input"]["mode"] == "stubborn":
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue
    return {"final_answer": "fine"}
