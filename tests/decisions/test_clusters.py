"""Failures by their reasons."""

from __future__ import annotations

import re
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from evalwright.decisions.clusters import explain
from evalwright.model.decision import (
    ChangedPart,
    Decision,
    ErrorCounts,
    ErrorPart,
    FailureCluster,
    IdentityPart,
    SideRate,
)
from evalwright.model.result import CaseVerdict
from evalwright.model.trace import TraceError
from evalwright.reports.decision import reason_lines
from evalwright.testing import MemoryRun, MemoryStore, a_plan, a_verdict


def run(*verdicts: CaseVerdict) -> MemoryRun:
    made = MemoryStore().create(a_plan(), [], {})
    for verdict in verdicts:
        made.append_verdict(verdict)
    return made


def failed(case: str, *reasons: str, attempt: int = 1) -> CaseVerdict:
    return a_verdict(case_id=case, variant_name="v", status="fail", reasons=list(reasons), attempt=attempt)


def decision(before: str, after: str, changed: list[str]) -> Decision:
    side, identity = SideRate(), IdentityPart(cases_changed=changed)
    parts = {
        "a": side,
        "b": side,
        "errors": ErrorPart(ErrorCounts(), ErrorCounts()),
        "changed": ChangedPart(),
        "identity": identity,
    }
    return Decision(verdict="undecided", variant_a=before, variant_b=after, **parts)


def clusters_of(
    one: MemoryRun, other: MemoryRun, *changed: str, trials: tuple[int, int] = (1, 1)
) -> list[FailureCluster]:
    made = decision("v", "v", [*changed])
    made.trials = trials
    explain(one, other, [made])
    return made.clusters


def test_reasons_of_about_the_same_words_are_one_and_those_that_b_gained_come_first() -> None:
    timeout = TraceError("timeout", "no answer within 30 seconds")
    one = run(
        failed("a", "tone: too short, 12 words"),
        failed("b", "tone: too short, 9 words"),
        a_verdict(case_id="c", variant_name="w", status="fail", reasons=["not asked for"]),
    )
    other = run(
        *(failed(f"r{i}", f"refund: the refund of order {i} was omitted") for i in range(4)),
        failed("r9", "refund: the refund of the order was omitted"),
        failed("a", "tone: too short, 3 words"),
        failed("gone", "tone: too short, 3 words"),
        a_verdict(case_id="gone", variant_name="v", status="pass", attempt=2),
        *(a_verdict(case_id=c, variant_name="v", status="error", error=timeout) for c in ("t", "changed")),
    )
    clusters = clusters_of(one, other, "changed")
    refunds = ["r0", "r1", "r2", "r3", "r9"]
    assert [(c.signature, c.a, c.b, c.cases, c.gained, c.lost) for c in clusters] == [
        ("refund: the refund of order … was omitted", 0, 5, refunds, refunds, []),
        ("timeout: no answer within … seconds", 0, 1, ["t"], ["t"], []),
        ("tone: too short, … words", 2, 1, ["a", "b"], [], ["b"]),
    ]


def test_a_reason_that_is_cut_off_says_so() -> None:
    clusters = clusters_of(run(failed("a", "x " * 100)), run(failed("a", "y " * 80)))
    assert {cluster.signature for cluster in clusters} == {"x " * 80 + "…", "y " * 80}


def test_each_variant_has_reasons_of_its_own() -> None:
    def broken(case: str, variant: str, why: str) -> CaseVerdict:
        return a_verdict(case_id=case, variant_name=variant, status="fail", reasons=[why])

    one = run(broken("a", "v", "rude"), broken("a", "w", "late"), broken("b", "w", "late"))
    other = run(broken("a", "v", "late"), broken("b", "x", "rude"))
    made = [decision(*pair, []) for pair in (("v", "v"), ("w", "v"), ("w", "x"))]
    explain(one, other, made)
    assert [[(c.signature, c.cases, c.a, c.b) for c in one.clusters] for one in made] == [
        [("late", ["a"], 0, 1), ("rude", ["a"], 1, 0)],
        [("late", ["a", "b"], 2, 1)],
        [("rude", ["b"], 0, 1), ("late", ["a", "b"], 2, 0)],
    ]


words = st.lists(st.sampled_from(["too", "short", "late", "wrong", "no", "answer", "!"]), min_size=1, max_size=7)


@given(st.lists(words.map(" ".join), max_size=12))
def test_a_reason_joins_the_most_frequent_one_of_about_its_words(texts: list[str]) -> None:
    """Jaccard's index of at least 0.6, compared with every earlier one."""
    made = run(*(failed(f"c{i}", text) for i, text in enumerate(texts)))
    kept: dict[str, int] = {}
    for text, number in sorted(Counter(texts).items(), key=lambda item: (-item[1], item[0])):
        own = set(re.findall(r"\w+", text))
        for other in kept:
            theirs = set(re.findall(r"\w+", other))
            if len(own & theirs) >= 0.6 * len(own | theirs):
                kept[other] += number
                break
        else:
            kept[text] = number
    assert {cluster.signature: cluster.b for cluster in clusters_of(run(), made)} == kept


def test_text_says_which_reasons_came_and_which_went() -> None:
    found = [
        FailureCluster("refund omitted", 0, 5, ["r"], ["r"], []),
        FailureCluster("too slow", 3, 4, ["a", "b", "c"], ["b", "c"], ["a"]),
        FailureCluster("too short", 2, 1, ["a", "b"], [], ["b"]),
        FailureCluster("tone", 6, 0, ["a"], [], ["a"]),
    ]
    assert reason_lines(found, 80) == [
        "  why worse  5 × refund omitted (new)    1 × too slow (2 gained, 1 lost)",
        "  why better 6 × tone (gone)    1 × too short",
    ]


def test_more_trials_do_not_make_a_reason_more_frequent() -> None:
    one = run(*(failed(case, "tone: rude") for case in "abcd"), failed("e", "form: no list"))
    thrice = [failed(case, "tone: rude") for case in "abcd" for _ in range(3)]
    for number, verdict in enumerate(thrice):
        verdict.trial = number % 3
    other = run(*thrice, failed("f", "length: too long"))
    by_name = {cluster.signature: (cluster.a, cluster.b) for cluster in clusters_of(one, other, trials=(1, 3))}
    assert by_name == {"tone: rude": (4, 4), "form: no list": (1, 0), "length: too long": (0, 1)}
