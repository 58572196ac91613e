"""Small runs in folders, for tests of what is in them."""

from __future__ import annotations

from pathlib import Path

from evalwright.stores.local_files import LocalFiles
from evalwright.stores.local_files.writer import LocalWriter
from evalwright.testing import a_case, a_plan, a_result, a_verdict

__all__ = ["closed", "created", "rewritten"]


def created(folder: Path, **plan: object) -> LocalWriter:
    return LocalFiles(folder).create(a_plan(**plan), [a_case()], {"config.yaml": b"a: 1\n"})


def closed(folder: Path) -> Path:
    writer = created(folder)
    writer.close()
    return writer.folder


def rewritten(writer: LocalWriter) -> None:
    judgements = writer.rewrite_judgements()
    share = judgements.share(0)
    share.append_results([a_result(reason="new")])
    share.append_verdict(a_verdict(reasons=["new"]))
    share.close()
    judgements.commit()
