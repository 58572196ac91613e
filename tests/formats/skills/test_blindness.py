"""What judges see: nothing by which they could tell whether the agent had the skill, and the words of the task."""

from __future__ import annotations

import pytest

from evalwright.formats.skills.blindness import Blindfold

SEEN = (
    "I read /w/.claude/skills/{0}/SKILL.md, then `.agents/skills/{0}/run.py`. With the {0} skill it is easy: {0} helps."
)


@pytest.mark.parametrize(
    ("skill", "task", "left"),
    [
        ("pdf-forms", "Fill the form.", 0),  # the name means the skill and nothing else
        ("pdf", "Fill the form.", 1),  # a word of its own, most likely that of a file
        ("pdf-forms", "Fill what pdf-forms says.", 1),  # a word of the task
    ],
)
def test_paths_and_phrases_that_mean_the_skill_are_hidden_and_words_of_the_task_stay(skill, task, left):
    hidden = Blindfold(skill, [task]).hide(SEEN.format(skill))
    assert hidden.count(skill) == left
    assert "SKILL.md" not in hidden
    assert "it is easy" in hidden


def test_names_that_only_contain_that_of_the_skill_stay():
    assert Blindfold("pdf-forms", ["x"]).hide("my-pdf-forms-2 and skills/pdf-forms-old/a") == (
        "my-pdf-forms-2 and skills/pdf-forms-old/a"
    )
