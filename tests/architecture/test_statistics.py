"""Numbers that nobody is shown are not kept: every function of `statistics` is reached from another room."""

from __future__ import annotations

import ast
from pathlib import Path

from architecture.source import SOURCE, modules, nodes, room, tree
from evalwright import statistics

ROOM = SOURCE / "statistics"


def names_in(part: ast.AST) -> set[str]:
    """What is read or imported there."""
    by_name = {node.id for node in ast.walk(part) if isinstance(node, ast.Name)}
    return by_name | {name.name for node in ast.walk(part) if isinstance(node, ast.ImportFrom) for name in node.names}


def used_elsewhere() -> set[str]:
    """Names that other rooms import from modules of `statistics`."""
    found: set[str] = set()
    for path, name in modules():
        if room(name) == "statistics":
            continue
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("evalwright.statistics"):
                found.update(one.name for one in node.names)
    return found


def functions() -> dict[str, set[str]]:
    """The functions and classes of the room, and the names that each uses."""
    found: dict[str, set[str]] = {}
    for path in Path(ROOM).glob("*.py"):
        for node in tree(path).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found[node.name] = names_in(node)
    return found


WHOLE = {
    "betting_sequence": "_Moments",
    "cluster_jackknife": "jackknife_error",
    "guarded_difference": "guarded_units",
    "pass_at_k": "share_at_k",
    "pass_at_k_table": "share_at_k",
    "pass_hat_k": "share_hat_k",
    "proportion_interval": "clopper_pearson",
    "sign_flip": "sign_flip_units",
}
"""What other rooms reach case by case, unit by unit, or in part, as a function of plain numbers that can be checked."""


def test_every_exported_function_is_reached_from_another_room() -> None:
    uses = functions()
    reached = closure(used_elsewhere(), uses)
    assert set(WHOLE.values()) <= reached
    assert [name for name, part in WHOLE.items() if part not in closure({name}, uses)] == []
    reached |= closure(set(WHOLE), uses)
    assert sorted(set(statistics.__all__) - reached) == []
    assert sorted(name for name in uses.keys() - reached if not name.startswith("_")) == []


def closure(names: set[str], uses: dict[str, set[str]]) -> set[str]:
    """The names and what they use, and so on."""
    reached: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        reached.add(name)
        waiting |= (uses.get(name, set()) & uses.keys()) - reached
    return reached
