"""What tests read in the pages of the viewer."""

from __future__ import annotations

import re
from html import unescape


def page(client, path: str, status: int = 200) -> str:
    """The page that is there when what it is made of was read."""
    for _ in range(300):
        answer = client.get(path)
        assert answer.status_code == status, answer.text[:500]
        if "data-refresh" not in answer.text:
            break
    return answer.text


def seen(text: str) -> str:
    """What a page says, without its markup."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())


def cases(text: str) -> list[str]:
    return [unescape(name) for name in re.findall(r'<th scope="row"><a href="[^"]*">([^<]*)</a></th>', text)]


def found(text: str) -> str:
    return re.findall(r'<p role="status">([^<]*)</p>', text)[-1]
