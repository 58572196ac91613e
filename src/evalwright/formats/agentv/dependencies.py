"""What `depends_on` of cases names (AgentV 4): checked although nothing here waits for another case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from evalwright.errors import InputError, did_you_mean
from evalwright.files.key_paths import as_written
from evalwright.formats.agentv.file import EvalFile, texts_in
from evalwright.formats.agentv.notes import Notes

__all__ = ["DEPENDENCY_KEYS", "note_dependencies", "refuse_dependencies"]

DEPENDENCY_KEYS = {"depends_on", "on_dependency_failure"}


def note_dependencies(raw: Mapping[Any, Any], report: Notes) -> None:
    """Say of a case that depends on others that it runs like any other."""
    listed = raw.get("depends_on")
    wrong = [one for one in listed if not isinstance(one, str)] if isinstance(listed, list) else [listed]
    if listed is not None and wrong:
        where = " in it" if isinstance(listed, list) else ""
        found = f"no effect: expected a list of ids, found {as_written(wrong[0])}{where}"
        report.unread.append(("depends_on", found))
    if named := ", ".join(map(repr, texts_in(listed))):
        report.unread.append(("depends_on", f"no effect: the case does not wait for {named}, nor is it skipped"))
    if "on_dependency_failure" in raw:
        report.unread.append(("on_dependency_failure", "no effect: the case runs whatever became of others"))


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
