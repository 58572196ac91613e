"""A rule names a public source or is stated: a reader must be able to look it up."""

import re

from architecture.source import SOURCE

_FORMATS = "evalh|agentv|letta|northstar|pixie|promptfoo|skills"
_POINTER = re.compile(rf"\(specification|specification\s+({_FORMATS})\b|\b({_FORMATS}) format,\s+section")


def test_nothing_points_to_a_document_that_is_not_in_the_repository() -> None:
    root = SOURCE.parents[1]
    files = [*SOURCE.rglob("*.py"), *(root / "docs").glob("*.md"), *root.glob("*.md")]
    assert len(files) > 100
    assert [str(file) for file in files if _POINTER.search(file.read_text())] == []
