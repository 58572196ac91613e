"""Files of the toy format, read and written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import InputError, Problem
from evalwright.formats.shared.output import OutputFolder, Written
from evalwright.model.case import ForeignCase
from evalwright.model.plan import EvaluatorSpec, Variant
from evalwright.model.suite import Suite


def detects(path: Path, head: Mapping[str, Any]) -> bool:
    with path.open() as file:
        return file.readline().startswith("# toy ")


def load(
    path: Path, variables: Mapping[str, str], *, to_run: bool = True, loud: bool = False, first: int | None = None
) -> Suite:
    name, place, *lines = path.read_text().splitlines()
    wrong = [Problem(str(path), "expected QUESTION -> ANSWER", n) for n, x in enumerate(lines, 3) if " -> " not in x]
    if wrong:
        raise InputError(wrong)
    pairs = [line.split(" -> ") for line in lines][:first]
    file, _, function = place.removeprefix("answer ").rpartition(":")
    return Suite(
        name=name.removeprefix("# toy "),
        dialect="toy",
        source=path,
        cases=[ForeignCase(id=f"q{n}", input=asked, extra={"want": want}) for n, (asked, want) in enumerate(pairs)],
        variants=[Variant("agent", "toy_agent", {"function": f"{path.resolve().parent / file}:{function}"})],
        evaluators=[EvaluatorSpec("same", "toy_same", {"loud": loud})],
    )


def write(suite: Suite, folder: Path, output: OutputFolder) -> Written:
    file = folder / "suite.toy"
    lines = [f"{case.input} -> {getattr(case, 'extra', {}).get('want')}" for case in suite.cases]
    head = [f"# toy {suite.name}", f"answer {suite.variants[0].config['function']}"]
    output.text(file).write("\n".join([*head, *lines, ""]))
    return Written(file, {"loud": True} if suite.evaluators[0].config["loud"] else {})
