"""Reasons of cells, and what they share whatever their numbers, quotations and ids are."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from evalwright.model.trace import TraceError
from evalwright.scoring.reasons import CommonReason, reasons_of, shape_of
from evalwright.testing import a_verdict

STACK = 'File "/x/agent.py", line 40, in answer\n    go()\n  File "/x/agent.py", line 41, in number\n    int(x)\n'


@pytest.mark.parametrize(
    ("reason", "shape"),
    [
        ("says: missing: 'a', 'b'; in 'You paid €75.00'", "says: missing: '…'; in '…'"),
        ('says: missing: "it\'s"', "says: missing: '…'"),
        ("missing: 'it's', \"don't\"; in 'the dok morn...", "missing: '…'; in '…'"),
        ("missing: 'a', 'blue or...; in 'it's late'", "missing: '…'; in '…'"),
        (r"""missing: 'a. b… "c" \' d...', and "it's…" ends""", "missing: '…', and '…' ends"),
        ("changes: unexpected: refund(number='1', cents=2400)", "changes: unexpected: refund(…)"),
        ("changes: refund(reason='Refund order 12, I...)", "changes: refund(…)"),
        ("judge_2: the users' list isn't long enough", "judge_2: the users' list isn't long enough"),
        ("doesn't say it, can't say it", "doesn't say it, can't say it"),
        ("nothing of the '90s", "nothing of the '…s"),
        ("judge: took 812.5 ms, limit 1,000", "judge: took … ms, limit …"),
        ("cost: +4.5% of -1e-7", "cost: … of …"),
        ("timeout after 12.5 s at 2026-01-02T10:11:12Z", "timeout after … s at …"),
        ("GET https://a.example/x?y=1 failed for a@b.example", "GET … failed for …"),
        ("no reply from a@b.example", "no reply from …"),
        ("no file /tmp/a/b.txt in ../c/d", "no file … in …"),
        ("job: 3f2b8c1d-0000-4a4b-8c8c-0123456789ab gone, deadbeef99 too", "job: … gone, … too"),
        ("request 3f2504e0-4f89-11d3-9a0c-0305e82c3301 at 0x7f3a", "request … at …"),
        ("case: no row for c-12x", "case: no row for …"),
        ("http_5xx: HTTP 503: 12 are waiting", "http_5xx: HTTP 503: … are waiting"),
        ("the command ended with exit code 137 after 12 s", "the command ended with exit code 137 after … s"),
        ("score", "score"),
        ("", ""),
    ],
)
def test_what_differs_from_cell_to_cell_is_left_out(reason: str, shape: str) -> None:
    assert shape_of(reason, "c-12x") == shape


def test_an_error_names_the_frame_of_the_user_and_hides_the_results_without_an_answer() -> None:
    error = TraceError("adapter_error", "ValueError: invalid literal: '10O2' in agent.py:41", STACK)
    reasons = reasons_of(a_verdict(status="error", error=error, reasons=["adapter_error: ...", "says: no result"]))
    frame = "agent.py:41 in number: ValueError: invalid literal:"
    assert reasons == {f"{frame} '…'": f"{frame} '10O2'"}


def test_reasons_of_one_shape_are_one_and_a_cell_without_any_says_so() -> None:
    reasons = ["says: missing 'a'", "", "fast: 3 s", "says: missing 'b'"]
    assert reasons_of(a_verdict(status="fail", reasons=reasons)) == {
        "says: missing '…'": "says: missing 'a'",
        "fast: … s": "fast: 3 s",
    }
    assert list(reasons_of(a_verdict(status="fail", reasons=[""]))) == ["no reason was given"]


@pytest.mark.parametrize(
    ("reasons", "shared"),
    [
        (["quick: 86 ms, the limit is 60", "quick: 61.5 ms, the limit is 60"], "quick: … ms, the limit is 60"),
        (["says: forbidden: 'x'; in 'one'", "says: forbidden: 'x'; in \"it's two\""], "says: forbidden: 'x'; in '…'"),
        (["says: missing: 'a', 'b'", "says: missing: 'a'"], "says: missing: '…'"),
        (["says: missing: 'a', 'b'; in 'c'", "says: missing: 'a', 'b'; in 'd'"], "says: missing: 'a', 'b'; in '…'"),
        (["beside: 5%10", "beside: 6%20"], "beside: ……"),
        (["two: 1 of 3", "two: 2 of 3", "two: 1 of 4"], "two: … of …"),
        (["same: 'a' and 7", "same: 'a' and 7"], "same: 'a' and 7"),
        (["long: 1 of " + "word " * 999, "long: 2 of " + "word " * 999], f"long: … of {'word ' * 999}"[:2000] + "…"),
    ],
)
def test_values_that_all_reasons_of_a_shape_have_are_kept(reasons: list[str], shared: str) -> None:
    (shape,) = {shape_of(reason) for reason in reasons}
    for first, *others in permutations(reasons):
        found = CommonReason(shape, first)
        for other in others:
            found.add(other)
        assert str(found) == shared


def test_what_reasons_share_is_true_of_each_in_any_order() -> None:
    drawn = random.Random(1)
    words = ["'a'", "'a; in b'", '"it\'s"', "1", "2.5", "of", "; in ", "'…'", "…", "f(x='1')", "f(x=2)", " "]
    for _ in range(2000):
        pattern = drawn.choices(words, k=6)
        texts = ["e: " + "".join(drawn.choice([word, word, "7", "'q'"]) for word in pattern) for _ in range(4)]
        texts = [text for text in texts if shape_of(text) == shape_of(texts[0])]
        found = set()
        for first, *others in permutations(texts):
            shared = CommonReason(shape_of(first), first)
            for other in others:
                shared.add(other)
            found.add(str(shared))
        (one,) = found
        parts = one.replace("'…'", "…").split("…")
        for text in texts:
            assert text.startswith(parts[0])
            assert text.endswith(parts[-1])
            assert all(part in text for part in parts)
