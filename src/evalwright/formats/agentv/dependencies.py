"""What `depends_on` of cases names (AgentV 4): checked although nothing here waits for another case."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from evalwright.errors import InputError, did_you_mean
from evalwright.formats.agentv.file import EvalFile, texts_in

__all__ = ["refuse_dependencies"]


def refuse_dependencies(file: EvalFile) -> None:
    """Raise InputError for dependencies on cases that do not exist and for one circle of them."""
    named = ((i, case.get("id")) for i, case in enumerate(file.cases) if isinstance(case, dict))
    positions = {case_id: i for i, case_id in named if isinstance(case_id, str)}
    needs = {case_id: texts_in(file.cases[i].get("depends_on")) for case_id, i in positions.items()}
    places = [*_unknown(needs), *_circle(needs)]
    if places:
        raise InputError([file.problem(positions[case_id], case_id, path, why) for case_id, path, why in places])


def _unknown(needs: dict[str, list[str]]) -> Iterator[tuple[str, str, str]]:
    for case_id, names in needs.items():
        for name in names:
            if name not in needs:
                yield case_id, "depends_on", f"no case has the id {name!r}{did_you_mean(name, needs)}"


def _circle(needs: dict[str, list[str]]) -> Iterator[tuple[str, str, str]]:
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        circle = error.args[1][::-1]  # it names each case before those that depend on it
        why = "the case depends on itself" if len(circle) == 2 else f"a circle: {' → '.join(circle)}"
        yield circle[0], "depends_on", why
