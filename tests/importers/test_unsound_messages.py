"""Recordings of conversations that cannot be imported are refused, with every mistake and its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.errors import InputError
from evalwright.importers.openai_messages import OpenAIMessages
from evalwright.model.trace import Trace
from importers.messages import HELLO, call, cases, imported, problems


def test_every_mistake_is_told_at_once_with_its_place(tmp_path: Path) -> None:
    records = [
        {"id": "a", "messages": [{"role": "robot"}, "hello"]},
        {"id": "b"},
        {"id": "c", "messages": [{"role": "assistant", "tool_calls": [{"id": "x"}]}]},
        {"messages": HELLO},
    ]
    listed = problems(tmp_path, records)
    assert len(listed) == 5
    for place in (
        "[0].messages[0].role",
        "[0].messages[1]",
        "[1].messages or traj or conversation or conversations",
        "[2].messages[0].tool_calls[0]",
        "[3]",
    ):
        assert any(line.startswith(f"recorded.json  {place}  ") for line in listed), (place, listed)


@pytest.mark.parametrize(
    ("record", "place"),
    [
        ({"messages": "hello"}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [3]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0]"),
        ({"messages": [{"role": "assistant", "tool_calls": {"a": 1}}]}, "messages[0].tool_calls"),
        ({"messages": [{"role": "assistant", "tool_calls": [call("f", 3)]}]}, "messages[0].tool_calls[0]"),
        ({"id": True, "messages": HELLO}, "id"),
        ({"trial": "one", "messages": HELLO}, "trial"),
        ({"reward": "good", "messages": HELLO}, "reward"),
        ({"started_at": "yesterday", "messages": HELLO}, "started_at"),
        ({"messages": HELLO, "actions": [{"kwargs": {}}]}, "actions[0]"),
        ({"messages": HELLO, "actions": "book"}, "actions"),
    ],
)
def test_a_part_of_the_wrong_shape_is_told_with_its_path(tmp_path: Path, record: dict[str, Any], place: str) -> None:
    listed = problems(tmp_path, [{"id": "c", **record}], {"actions": "actions"} if "actions" in record else None)
    assert listed[0].startswith(f"recorded.json  [0].{place}  ")


def test_a_trial_cannot_be_there_twice(tmp_path: Path) -> None:
    records = [{"id": "c", "trial": 0, "messages": HELLO}] * 2
    assert problems(tmp_path, records) == ["recorded.json  [1]  trial 0 of case 'c' is already in [0]"]


def test_trials_of_a_case_must_expect_the_same(tmp_path: Path) -> None:
    records = [{"id": "c", "messages": HELLO, "do": [{"name": name}]} for name in ("book", "cancel")]
    assert "different actions" in problems(tmp_path, records, {"actions": "do"})[0]


def test_a_part_mapped_by_hand_must_be_there(tmp_path: Path) -> None:
    listed = problems(tmp_path, [{"id": "c", "messages": HELLO}], {"id": "info.id"})
    assert listed[0].startswith("recorded.json  [0].info.id  ")


@pytest.mark.slow("uses the second that a pattern may take")
def test_a_mapping_with_a_catastrophic_pattern_is_ended(tmp_path: Path) -> None:
    mapping = {"metadata.name": "$.tools[?(@.name =~ '(a+)+$')].name"}
    with pytest.raises(InputError, match="took more than 1 s"):
        imported(tmp_path, [{"id": "c", "messages": HELLO, "tools": [{"name": "a" * 40 + "b"}]}], mapping)


def test_a_mistaken_mapping_names_the_nearest_part(tmp_path: Path) -> None:
    with pytest.raises(InputError, match='did you mean "messages"') as caught:
        imported(tmp_path, [], {"mesages": "a", "id": "a..b"})
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"a": []}', "[" * 100_000, '[{"id": 1}, NaN]', "\ufeff{}"])
def test_a_file_without_records_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(InputError, match=r"r\.json"):
        OpenAIMessages.import_files([tmp_path / "r.json"], tmp_path / "out")


def test_a_damaged_line_is_told_with_its_number(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_bytes(json.dumps({"id": 1, "messages": HELLO}).encode() + b'\n{"id": \n\xff\n')
    with pytest.raises(InputError) as caught:
        OpenAIMessages.import_files([tmp_path / "r.jsonl"], tmp_path / "out")
    assert [problem.line for problem in caught.value.problems] == [2, 3]


@pytest.mark.parametrize("depth", [99, 100, 200, 600, 5_000, 100_000])
def test_deep_data_is_kept_whole_or_refused(tmp_path: Path, depth: int) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    record = '{"id": "c", "messages": [{"role": "tool", "name": "t", "content": CONTENT}]}'
    (tmp_path / "a.jsonl").write_text(record.replace("CONTENT", deep))
    with pytest.raises(InputError, match="nested"):
        OpenAIMessages.import_files([tmp_path / "a.jsonl"], tmp_path / "out")
    (tmp_path / "b.jsonl").write_text(record.replace("CONTENT", json.dumps(deep)))
    OpenAIMessages.import_files([tmp_path / "b.jsonl"], tmp_path / "out")
    content = cases(tmp_path)[0]["embedded_trace"]["tool_results"][0]["content"]
    assert content == (deep if depth > 100 else json.loads(deep))


def test_files_of_an_earlier_import_are_kept(tmp_path: Path) -> None:
    imported(tmp_path, [{"id": "c", "messages": HELLO}])
    before = (tmp_path / "out" / "cases.jsonl").read_bytes()
    with pytest.raises(InputError, match="already exists"):
        imported(tmp_path, [{"id": "d", "messages": HELLO}])
    assert (tmp_path / "out" / "cases.jsonl").read_bytes() == before


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        OpenAIMessages.import_files([tmp_path / "none.json"], tmp_path / "out")


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "user", "assistant", "tool", "function"]) | ANYTHING},
        optional={
            "content": ANYTHING | st.lists(st.fixed_dictionaries({"type": ANYTHING}, optional={"text": ANYTHING})),
            "name": ANYTHING,
            "tool_call_id": ANYTHING,
            "function_call": ANYTHING,
            "refusal": ANYTHING,
            "tool_calls": ANYTHING
            | st.lists(
                st.fixed_dictionaries(
                    {"function": st.fixed_dictionaries({"name": st.text() | ANYTHING, "arguments": ANYTHING})},
                    optional={"id": ANYTHING},
                )
            ),
        },
    ),
    max_size=4,
)
RECORDS = ANYTHING | st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "id": st.sampled_from(["a", "b", 1]) | ANYTHING,
            "trial": st.integers(0, 2) | ANYTHING,
            "messages": MESSAGES | ANYTHING,
            "reward": ANYTHING,
            "actions": ANYTHING | st.lists(st.fixed_dictionaries({"name": st.text()}, optional={"kwargs": ANYTHING})),
            "started_at": ANYTHING,
            "metadata": ANYTHING,
        },
    ),
    max_size=4,
)


@pytest.mark.slow("objects of any depth")
@given(RECORDS, st.sampled_from(["r.json", "r.jsonl"]), st.booleans())
def test_any_json_is_imported_whole_or_refused(
    tmp_path_factory: pytest.TempPathFactory, records: object, name: str, mapped: bool
) -> None:
    folder = tmp_path_factory.mktemp("any")
    lines = records if name == "r.jsonl" and isinstance(records, list) else [records]
    (folder / name).write_text("\n".join(map(json.dumps, lines if name == "r.jsonl" else [records])))
    mapping = {"actions": "actions", "metadata.all": "$.metadata", "extra.deep": "$..name"} if mapped else None
    try:
        result = OpenAIMessages.import_files([folder / name], folder / "out", mapping)
    except InputError:
        assert not (folder / "out").exists()
    else:
        kept = [case["embedded_trace"] for case in cases(folder)]
        traces = [trace for row in kept for trace in (row if isinstance(row, list) else [row])]
        assert len([msgspec.convert(trace, Trace) for trace in traces]) == result.traces


def test_a_reward_that_is_mapped_and_not_there_is_a_mistake(tmp_path: Path) -> None:
    records = [{"id": "c", "messages": HELLO, "info": {"reward": 1}}, {"id": "d", "messages": HELLO}]
    (listed,) = problems(tmp_path, records, {"reward": "info.reward"})
    assert "expected the reward of the record, found nothing" in listed
