"""Reading an `eval.yaml`: what is read without pydantic is read as pydantic reads it."""

from __future__ import annotations

import copy
from contextlib import suppress
from datetime import date
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evalwright.formats.native.file import EvalFile, whole_file
from evalwright.formats.native.file_mistakes import model_of, sound_parts

WHOLE: dict[str, Any] = {
    "schema_version": "1.0",
    "eval": {"name": "n", "description": "d", "owner": None, "tags": ["a"], "warnings": []},
    "metadata": {"team": "a"},
    "dataset": {"type": "jsonl", "path": ["a", "b"], "filter": {"a": 1}, "sample": 3, "seed": 4, "delimiter": ";"},
    "systems": [
        {
            "name": "s",
            "adapter": "http",
            "timeout_seconds": 4,
            "isolation": "process",
            "enrich_trace_from": [{"type": "otel", "url": "u"}],
            "ray": {"num_cpus": 1, "resources": {"a": 2}},
            "url": "u",
        },
        {"name": "t", "adapter": "chat", "concurrency": 3},
    ],
    "workspace": {"type": "git", "repo_path": "p"},
    "evaluators": [
        {"name": "e", "type": "x", "config": {"a": 1}, "threshold": 1, "threshold_op": "lt", "weight": 2},
        {"name": "f", "type": "y", "extractor": {"type": "z", "config": {}}, "required": 0.5, "called": "c"},
    ],
    "pass_criteria": {"all_required": ["e"], "rule": "bands", "errored_cases": "count"},
    "trace": {"capture": ["a"]},
    "gate": {"kind": "simple"},
    "totals": "letta",
    "run": {
        "max_concurrency": 3,
        "retry": {"max_attempts": 2, "on": ["timeout", "*"], "backoff_seconds": 1},
        "executor": {"type": "ray", "pools": {"a": 1}, "wait_seconds": 1.5, "more": 1},
        "cost_limit_usd": 1,
        "alternate": True,
    },
    "judges": {"keep_calls": False},
    "metrics": {"price_table_path": "p"},
    "output": [{"type": "local_files", "path": "runs"}, {"type": "webhook", "url": "u"}],
}
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 10**30, 0.0, 0.5, 1.0, 2.5, float("inf"), float("-inf"), "", "1", "1.5", "2.0", "x",
    "true", "none", [], ["x"], [1], [None], {}, {"type": "x"}, {"name": "x"}, {"x": 1}, {1: 2}, date(2020, 1, 1),
]  # fmt: skip


def places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything in a document."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, inner in steps for place in ((*above, key), *places(inner, (*above, key)))]


CHANGES = st.tuples(st.sampled_from(places(WHOLE)), st.sampled_from(["put", "drop", "add"]), st.sampled_from(VALUES))


def changed(document: Any, place: tuple[Any, ...], change: str, value: Any) -> None:
    """Another value at a place, none, or one more key (or item) beside it; nothing where a change took the place."""
    *above, last = place
    with suppress(IndexError, KeyError, TypeError):
        for step in above:
            document = document[step]
        if change == "put":
            document[last] = value
        elif change == "drop":
            del document[last]
        elif isinstance(document, list):
            document.append(value)
        else:
            document["another"] = value


@given(st.lists(CHANGES, max_size=3))
def test_a_file_is_read_alike_with_and_without_pydantic(changes):
    raw = copy.deepcopy(WHOLE)
    for change in changes:
        changed(raw, *copy.deepcopy(change))
    told: list[Any] = []
    slowly = sound_parts(raw, lambda *problem: told.append(problem))
    file = whole_file(raw, ())
    assert file is None or not told
    if not told:
        model = model_of(EvalFile).model_validate({name: value for name, value in raw.items() if value is not None})
        for read in filter(None, (file, slowly)):
            must_be_like(read, model)


def must_be_like(file, model):
    assert file.plain() == model.model_dump()
    assert file.given().keys() == model.model_fields_set
    assert file.run.retry.written.keys() == model.run.retry.model_fields_set
    for item, system in zip(file.systems, model.systems, strict=True):
        assert item.sound
        assert item.given().keys() == system.model_fields_set
        assert item.extra == system.model_extra


def test_a_file_with_usual_values_needs_no_pydantic():
    file = whole_file(WHOLE, ())
    assert file is not None
    assert [item.at("name") for item in file.systems] == [("systems", 0, "name"), ("systems", 1, "name")]


def test_items_of_a_file_with_mistakes_keep_their_places():
    raw = WHOLE | {"systems": [{"name": 1, "adapter": "http"}, "s", {"name": "t", "adapter": "chat"}]}
    file = sound_parts(raw, lambda place, message: None)
    assert [(item.at(), item.sound, item.written) for item in file.systems] == [
        (("systems", 2), True, {"name": "t", "adapter": "chat"})
    ]
