"""Whether the cases of a stored run expect what evaluators look for, told by their bytes, without decoding them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable

from evalwright.model.protocols import RunReader

__all__ = ["expects"]


def expects(reader: RunReader, keys: Collection[str]) -> bool:
    """Whether a case may have anything but an empty list under one of these keys of `expected`.

    Also if the cases are not those that were stored when the run began: whoever decodes them reports what is wrong.
    """
    blocks: Callable[[], Iterable[bytes]] | None = getattr(reader, "case_blocks", None)
    if blocks is None or reader.plan is None:
        return True
    # As our encoder writes it. Quotes in a string are escaped, so no text looks like a key; a key elsewhere in a case
    # is taken for one of these.
    expected = re.compile(b'"(?:%s)":(?!\\[])' % "|".join(keys).encode())
    digest, rest = hashlib.sha256(), b""
    for block in blocks():
        digest.update(block)
        lines, end, rest = (rest + block).rpartition(b"\n")  # so that no key is in two parts
        if expected.search(lines + end):
            return True
    return digest.hexdigest() != reader.plan.cases_sha256
