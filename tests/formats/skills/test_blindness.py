"""What judges see: nothing by which they could tell whether the agent had the skill, and the words of the task."""

from __future__ import annotations

import pytest

from evalwright.formats.skills.blindness import Blindfold
from evalwright.formats.skills.evidence import evidence
from evalwright.importers.recording import UNKNOWN_TIME
from evalwright.model.artifact import Artifact, FileEntry, FileManifest, FilesystemArtifact, FilesystemDiff
from evalwright.model.snapshot import Case
from evalwright.model.trace import Output, Trace

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


def test_what_is_cut_of_a_file_is_counted_to_its_end(tmp_path):
    texts = {"a.txt": "é" * 250_000, "b.txt": "x" * 30_000}
    (tmp_path / "after").mkdir()
    for name, text in texts.items():
        (tmp_path / "after" / name).write_text(text, encoding="utf-8")
    files = {name: FileEntry(len(text.encode()), 0o644, 0, "") for name, text in texts.items()}
    diff = FilesystemDiff(added=[*texts])
    record = FilesystemArtifact("c", "v", "case_files", FileManifest(), FileManifest(files), diff, "")
    trace = Trace("c", "v", UNKNOWN_TIME, UNKNOWN_TIME, None, {}, Output("done"), "", [])
    shown = dict(evidence(Case(id="c", input={"prompt": "p"}), trace, Artifact(record, tmp_path), "holds"))
    told = shown["the files that the agent added or changed"]
    assert [line for line in told.splitlines() if line.startswith("[cut")] == [
        "[cut: 230,000 more characters]",
        "[cut: 10,000 more characters]",
    ]
