"""Runs in memory: a reader and the writer of one run do not disturb each other."""

from __future__ import annotations

import pytest

from evalwright.errors import RunLockedError, StorageError
from evalwright.files.masker import MASKED, Masker
from evalwright.model.trace import Trace
from evalwright.testing import MemoryStore, a_case, a_plan, a_trace


def test_closing_a_reader_leaves_the_writing_alone() -> None:
    store = MemoryStore()
    writer = store.create(a_plan(), [a_case()], {})
    reader = store.read(a_plan().run_id)
    reader.close()
    writer.append_trace(a_trace())
    assert len(list(reader.traces(Trace))) == 1


def test_a_reader_that_masks_cases_masks_them_for_no_other() -> None:
    store = MemoryStore(Masker({"TOKEN": "sk-5ecret-token"}))
    with_secret = a_case(input={"user_message": "I am sk-5ecret-token"})
    store.create(a_plan(), [with_secret], {})
    masking, plain = store.read(a_plan().run_id), store.read(a_plan().run_id)
    masking.mask_cases()  # type: ignore[attr-defined]
    shown = [reader.case(0).input["user_message"] for reader in (masking, plain)]
    assert shown == [f"I am {MASKED}", "I am sk-5ecret-token"]


def test_a_damaged_record_is_named_to_the_reader_that_met_it() -> None:
    store = MemoryStore()
    writer = store.create(a_plan(), [a_case()], {})
    writer.append_trace(a_trace())
    reader = store.read(a_plan().run_id)
    list(reader.traces(int))
    assert (len(reader.damage), writer.damage) == (1, [])


def test_a_run_has_one_writer_until_that_is_closed() -> None:
    store = MemoryStore()
    writer = store.create(a_plan(), [a_case()], {})
    with pytest.raises(RunLockedError, match="is being written"):
        store.open(a_plan().run_id)
    writer.close()
    following = store.open(a_plan().run_id)
    writer.close()
    with pytest.raises(StorageError, match="is closed"):
        writer.append_trace(a_trace())
    following.append_trace(a_trace())
    following.close()
