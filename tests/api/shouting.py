"""Evaluations of a system that shouts, and the command line on what they leave."""

import os
import subprocess
import sys

import evalwright as ew
from api import agents


def shouts(text):
    if text == "boom":
        raise ValueError("no")
    return text.upper() if text != "quiet" else text


CASES = {"a": "hi", "b": "quiet", "c": "boom", "d": "yes"}


def evaluate(cases, system, **options):
    return ew.evaluate(cases, system, **{"evaluators": agents.loud, "out": None, **options})


def cli(*arguments, code=0):
    environment = {**os.environ, "COLUMNS": "120", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-m", "evalwright", *map(str, arguments)], capture_output=True, text=True, env=environment
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout
