"""Thinking told apart from the reply, and only where it can be told apart for sure."""

from __future__ import annotations

import pytest

from evalwright.llm.thinking import content_and_thinking, ends_thinking, split_thinking, spoken
from evalwright.model.chat import ChatReply

YES, NO = '{"passed": true}', '{"passed": false}'
GPT_OSS = "<|channel|>analysis<|message|>Maybe {no}<|end|><|start|>assistant<|channel|>final<|message|>{yes}<|return|>"


@pytest.mark.parametrize(
    ("text", "thought", "said"),
    [
        (YES, "", YES),
        (f"<think>Maybe {NO}</think>{YES}", f"Maybe {NO}", YES),
        (f" \n<thinking>\nMaybe {NO}\n</thinking>\n{YES}", f"Maybe {NO}", "\n" + YES),
        (f"<THINK>a</THINK><think>b</think>{YES}", "a\n\nb", YES),
        (f"[THINK]a[/THINK]{YES}", "a", YES),
        (f"<reasoning>a</reasoning>{YES}", "a", YES),
        (f"I weigh it.</think>{YES}", "I weigh it.", YES),
        (f"<think>cut off {NO}", f"cut off {NO}", ""),
        (GPT_OSS.format(no=NO, yes=YES), "<|channel|>analysis<|message|>Maybe " + NO + "<|end|>", YES),
        (f"<|channel|>final<|message|>{YES}", "", YES),
        (f"<|channel|>final <|constrain|>json<|message|>{YES}<|return|>", "", YES),
        (f"analysisMaybe {NO}assistantfinal{YES}", f"Maybe {NO}", YES),
        (f"```\n<think>{NO}</think>\n```\n{YES}", NO, YES),
        (f"```json\n<think>{NO}</think>\n{YES}\n```", NO, f"```json\n{YES}\n```"),
        (f"```thinking\nMaybe {NO}\n```\n{YES}", f"Maybe {NO}", YES),
        (f"```think\ncut off {NO}", f"cut off {NO}", ""),
        (f"<think>\n```json\n{NO}\n```\n</think>\n{YES}", f"```json\n{NO}\n```", "\n" + YES),
        (f"◁think▷{NO}◁/think▷{YES}", NO, YES),
        (f"<|START_THINKING|>{NO}<|END_THINKING|>{YES}", NO, YES),
        (f"<seed:think>{NO}</seed:think>{YES}", NO, YES),
        (f"<|channel|>analysis<|message|>Maybe {NO}", f"<|channel|>analysis<|message|>Maybe {NO}", ""),
    ],
)
def test_what_comes_first_between_marks_is_thinking(text: str, thought: str, said: str) -> None:
    assert split_thinking(text) == (thought, said)


@pytest.mark.parametrize(
    "text",
    [
        f'{{"passed": false, "reason": "it says <think>{YES}</think>"}}',
        f"{NO} as it says </think>{YES}",
        f"No: {NO}. It says <think>x</think>{YES}",
        f"The analysis: {NO} assistantfinal{YES}",
        f"```json\n{NO}\n```\nIt says <think>x</think>{YES}",
    ],
)
def test_a_mark_behind_a_verdict_is_a_quotation(text: str) -> None:
    assert split_thinking(text) == ("", text)


def test_thinking_ends_at_its_first_closing_mark_so_that_a_quoted_one_hides_no_verdict() -> None:
    thought, said = split_thinking(f"<think>a</think>{NO} It says: </think>{YES}")
    assert (thought, said) == ("a", f"{NO} It says: </think>{YES}")


def test_thinking_among_the_parts_of_a_content_is_kept_apart() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": YES}]
    assert content_and_thinking(parts) == (YES, "hm")
    assert content_and_thinking(YES) == (YES, None)
    assert content_and_thinking([{"type": "output_text", "text": YES}]) == (YES, None)
    assert content_and_thinking(parts[:1]) == (None, "hm")


def test_a_reply_without_marks_is_the_same_reply() -> None:
    reply = ChatReply(YES, "m", thinking="t")
    assert spoken(reply) is reply
    assert spoken(ChatReply(f"<think>u</think>{YES}", "m", thinking="t")).thinking == "t\n\nu"


@pytest.mark.parametrize(
    ("text", "breaks_off"),
    [
        ("<think>so, ", True),
        (f"<think>```json\n{NO}\n```", True),
        ("```think\nso, ", True),
        ("<|channel|>analysis<|message|>so, ", True),
        ("<think>so</think>", False),
        ("```\n<think>so</think>\n```\n", False),
        ("```think\nso\n```", False),
        (f"<think>so</think>{YES}", False),
        ("", False),
        (YES, False),
    ],
)
def test_a_reply_that_ends_while_it_thinks_has_another_error_than_an_empty_one(text: str, breaks_off: bool) -> None:
    assert ends_thinking(text, split_thinking(text)[1]) is breaks_off
