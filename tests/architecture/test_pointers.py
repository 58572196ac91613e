"""A rule names a public source or is stated: a reader must be able to look it up."""

import re

from architecture.source import SOURCE

_POINTER = re.compile(r"\(specification")


def test_nothing_points_to_a_document_that_is_not_in_the_repository() -> None:
    files = [*SOURCE.rglob("*.py"), *(SOURCE.parents[1] / "docs").glob("*.md")]
    assert len(files) > 100
    assert [str(file) for file in files if _POINTER.search(file.read_text())] == []
