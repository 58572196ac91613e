"""The cells of a run that an address chooses, their columns, and the form that makes such addresses."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from urllib.parse import parse_qsl

import pytest

from viewer.reading import cases, found, page

FILTERS = {
    "status=error": 2,
    "status=fail&status=error": 7,
    "evaluator=says": 3,
    "evaluator=polite": 2,
    "evaluator=says&verdict=pass": 9,
    "tag=t1": 6,
    "tag=t1&status=fail": 3,
    "meta.suburb=s3": 2,
    "meta.suburb=s3&meta.suburb=s4": 4,
    "meta.suburb=s9": 0,
    "flaky=1": 2,
    "trial=1": 7,
    "error=adapter_error": 2,
    "cost_min=0.004&cost_max=0.006": 4,
    "q=CASE-3": 2,
    "q=%22order+2%22": 2,
    "q=order+2+lost": 2,
    "q=needle-3": 0,
    "q=3%3F": 2,
    "q=*": 0,
    "q=%5Ba-z%5D": 0,
    "q=needle-3&in=messages": 2,
    "q=because+of+the+reply&in=messages": 12,
    "q=%3Cscript%3E": 2,
}


def test_filters_choose_cells_and_each_state_has_an_address(run, client):
    chosen = {query: found(page(client, f"/runs/{run.name}?{query}")) for query in FILTERS}
    assert chosen == {query: f"{number} of 14 cells" for query, number in FILTERS.items()}
    assert cases(page(client, f"/runs/{run.name}?sort=-cost"))[0].startswith("attack")
    assert cases(page(client, f"/runs/{run.name}?sort=cost"))[0] == "case-0"
    grouped = page(client, f"/runs/{run.name}?group=status&tag=t1")
    assert re.search(r"<h3>pass <small>1 cell|<h3>pass <small>\d cells", grouped)
    exact = page(client, f"/runs/{run.name}?tokens_max=1234567.25&group=status")
    assert {"tokens_max=1234567.25"} == set(re.findall(r"tokens_max=[^&\"]+", exact))
    text = page(client, f"/runs/{run.name}?status=fail&evaluator=says")
    assert re.search(r'value="fail" checked', text)
    assert re.search(r'<option value="says" selected', text)


class _Form(HTMLParser):
    """What a browser sends of the first form with the role search, as it is."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.sent: list[tuple[str, str]] = []
        self._select = ""
        self.feed(re.search(r'<form role="search".*?</form>', text, re.DOTALL)[0])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "select":
            self._select = given["name"] or ""
            self._several = "multiple" in given
        elif tag == "option" and "selected" in given:
            if not self._several:  # the last one counts
                self.sent = [one for one in self.sent if one[0] != self._select]
            self.sent.append((self._select, given["value"] or ""))
        elif tag == "input" and (given.get("type") != "checkbox" or "checked" in given):
            self.sent.append((given["name"] or "", given.get("value") or ""))


@pytest.mark.parametrize(
    "query",
    [
        *FILTERS,
        "tag=t0&tag=t1",
        "variant=agent&trial=0&case=case-1&case=case-2",
        "score_min=0.5&evaluator=says&verdict=pass&flaky=1",
        "sort=-cost&group=tag&column=tokens&column=meta.suburb",
        "evaluator=says&label=disagrees",
    ],
)
def test_the_form_has_every_filter_so_that_none_is_lost_when_another_changes(run, client, query):
    sent = [pair for pair in _Form(page(client, f"/runs/{run.name}?{query}")).sent if pair[1]]
    usual = [] if "column=" in query else [pair for pair in sent if pair[0] == "column"]
    assert sorted(pair for pair in sent if pair not in usual) == sorted(parse_qsl(query))


def columns_of(text: str) -> list[str]:
    table = text[text.index('aria-label="Cells">') :]
    return re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', table[: table.index("</thead>")])


def test_columns_are_chosen_and_the_choice_stays_with_every_filter(run, client):
    usual = ["Status", "Case", "Trial", "Failed evaluators", "Answer", "Latency", "Cost"]
    assert columns_of(page(client, f"/runs/{run.name}")) == usual
    text = page(client, f"/runs/{run.name}?column=meta.suburb&column=tokens&column=tags&q=ready&sort=-cost")
    assert columns_of(text) == ["Status", "Case", "Tokens", "Tags", "suburb"]
    row = text[text.index(">case-1</a>") :].partition("</tr>")[0]
    assert re.findall(r"<td[^>]*>([^<]*)</td>", row) == ["121", "t1", "s1"]
    assert re.search(r'href="[^"]*/cells/[^"]*column=meta\.suburb[^"]*column=tokens', text)  # and from there back
    assert re.findall(r'name="column" value="(\w+)"[^>]* checked', text) == ["tokens", "tags"]
    boxes = re.findall(r'name="column" value="(\w+)" data-usual', text)
    assert columns_of(page(client, f"/runs/{run.name}?{'&'.join(f'column={box}' for box in boxes)}")) == usual
    assert "column=" not in text.partition("Download CSV")[0].rpartition("href=")[2]


def test_inputs_can_be_a_column(run, client):
    text = page(client, f"/runs/{run.name}?column=input&column=trial")
    assert columns_of(text) == ["Status", "Case", "Input", "Trial"]
    row = text[text.index(">case-1</a>") :].partition("</tr>")[0]
    assert re.findall(r"<td[^>]*>([^<]*)</td>", unescape(row)) == [
        '{"number":1,"user_message":"Where is order 1?"}',
        "1",
    ]


def test_what_was_searched_for_is_marked_with_the_text_around_it(run, client):
    text = page(client, f"/runs/{run.name}?q=is+CASE-3")
    assert '"><mark class="match">case-3</mark></a>' in text
    assert 'The order&lt;/b&gt; <mark class="match">is</mark> ready.' in text
    text = page(client, f"/runs/{run.name}?q=reply&status=fail")
    quoted = re.search(r'<small class="below">(.*?)</small>', text, re.DOTALL)
    assert unescape(quoted[1]).endswith(
        """\n'is polite' does not hold: because of the <mark class="match">reply</mark>"""
    )
    assert "<mark" not in page(client, f"/runs/{run.name}")
