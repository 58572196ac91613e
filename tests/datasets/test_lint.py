"""What is doubtful about cases: each doubt is found where it is, and no case without one is named."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from evalwright.datasets.likeness import Likeness, spoken_words
from evalwright.datasets.lint import findings_in
from evalwright.model.case import EvalCase, ExpectedBehavior
from evalwright.registry import load


def case(id: str, question: object, *answers: str, **expected: object) -> EvalCase:
    return EvalCase(
        id=id, input={"q": question}, expected=ExpectedBehavior(answer_should_include=[*answers], **expected)
    )


def kinds(*cases: EvalCase) -> list[tuple[str, str]]:
    """The kind of each finding and the case it names."""
    return [(kind, problem.message.split()[0].strip("'")) for kind, problem in findings_in(cases, Path("suite"))]


def test_cases_that_ask_the_same_are_found_whatever_they_expect():
    long = "Please tell me in one short sentence who it was that wrote the novel called {}, if you know."
    assert kinds(
        case("a", long.format("Emma"), "Austen"),
        case("b", long.format("Emma"), "Jane"),
        case("c", long.format("Emma").replace("Please", "Now please").upper(), "Austen"),
        case("d", "Who painted the ceiling of the chapel?", "Buonarroti"),
    ) == [("duplicate", "b"), ("near duplicate", "c")]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("caf\u00e9", "cafe\u0301", True),
        ("refund", "refund ", True),
        ("refund", "Refund", True),
        ("refund", "re\u200bfund", True),
        ("stra\u00dfe", "STRASSE", True),
        ("refund", "refund-2", False),
        ("refund", "refund", False),
    ],
)
def test_ids_that_look_alike_are_found(one, other, alike):
    kinds_found = kinds(case(one, "Who wrote Emma?", "Austen"), case(other, "Where is the Louvre?", "Paris"))
    assert [kind for kind, _ in kinds_found] == ["id"] * alike


@pytest.mark.parametrize(
    ("answer", "asked", "leaks"),
    [
        ("Paris", "Is paris, as they say, a feast?", True),
        ("New York", "I left New   York.", True),
        ("York", "Yorkshire pudding", False),
        ("New York", "New in York", False),
        ("no", "is there no answer?", False),
        ("?!?!", "what?!?!", False),
    ],
)
def test_an_answer_leaks_if_its_words_stand_in_the_input(answer, asked, leaks):
    assert kinds(case("a", {"deep": [1, asked]}, answer)) == [("leak", "a")] * leaks


def test_a_case_that_expects_anything_is_no_finding():
    assert kinds(
        case("a", 1), case("b", 2, must_call_tools=["t"]), case("c", 3, facts={"k": 0}), case("d", 4, " ")
    ) == [("no expectation", "a"), ("no expectation", "d")]


def test_one_answer_for_nearly_all_cases_is_told_and_an_even_spread_is_not():
    questions = [f"{word} {word}?" for word in "abcdefghij"]
    same = [case(q, q, "yes" if i else "no") for i, q in enumerate(questions)]
    (finding,) = findings_in(same, Path("suite"))
    assert (finding.kind, "'yes' is right in 9 of 10" in finding.problem.message) == ("unbalanced", True)
    assert kinds(*(case(q, q, "yes" if i % 2 else "no") for i, q in enumerate(questions))) == []
    assert kinds(*(case(q, q, f"answer {i}") for i, q in enumerate(questions))) == []


def test_a_row_of_a_table_is_named_with_file_and_line(tmp_path):
    file = tmp_path / "d.csv"
    file.write_text('id,q,expected.answer_should_include\na,"one\ntwo",x1\nb,three,x2\nc,three,x3\n')
    (finding,) = findings_in(load("datasets", "csv")(file, "", {}), file)
    assert (finding.problem.file, finding.problem.line) == (str(file), 5)
    assert "'b' (line 4)" in finding.problem.message


def test_likeness_finds_what_comparing_all_pairs_finds():
    draw = random.Random(1)
    vocabulary = [f"w{i}" for i in range(200)]
    texts = [" ".join(draw.choices(vocabulary, k=60)) for _ in range(60)]
    for text in texts[:30]:
        words = text.split()
        words[draw.randrange(60)] = "changed"
        texts.append(" ".join(words))
    likeness = Likeness()
    by_name = {number: near[0] for number, text in enumerate(texts) if (near := likeness.nearest(text)) is not None}

    def share(a: str, b: str) -> float:
        one, other = ({*zip(w, w[1:], w[2:], strict=False)} for w in (spoken_words(a), spoken_words(b)))
        return len(one & other) / len(one | other)

    expected = {
        number: max(range(number), key=lambda i, number=number: share(texts[i], texts[number]))
        for number in range(1, len(texts))
        if max(share(texts[i], texts[number]) for i in range(number)) >= 0.8
    }
    assert by_name == expected
    assert len(by_name) == 30


def test_texts_of_one_template_are_compared_with_few_others(monkeypatch):
    template = f"{' '.join(f'word{i}' for i in range(40))} number"
    likeness, compared = Likeness(), 0

    def counting(*given):
        nonlocal compared
        compared += 1
        return set(*given)

    monkeypatch.setattr("evalwright.datasets.likeness.set", counting, raising=False)
    seen = []
    for number in range(600):
        compared = 0
        seen.append(likeness.nearest(f"{template} {number}"))
    assert seen[0] is None
    assert None not in seen[1:]
    assert compared < 300
