"""The page that shows the results of a dataset."""

import json
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evalwright.pixie as pixie
import warm
from evalwright.cli.pixie.results import save_results

HOSTILE = (
    "</script><script>alert(1)</script>", "</title></style></pre>", "<img src=http://x.example/ onerror=alert(1)>",
    "\" onload='alert(1)' x=\"", "<!--", "]]>", "&lt;", "javascript:alert(1)",
)  # fmt: skip


class Page(HTMLParser):
    """The elements, attributes and text of a page as a browser finds them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = set(), set(), ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_comment(self, data):
        self.tags.add("!--")

    def handle_data(self, data):
        self.text += data


def page_of(text, score=0.25):
    entry = pixie.DatasetEntryResult((text,), (pixie.Evaluation(score, text, {text: text}),), text, {text: [text]})
    card = pixie.DatasetScorecard(text, [entry], datetime(2026, 1, 1, tzinfo=UTC))
    return Page(pixie.generate_dataset_scorecard_html(card, text))


PLAIN = page_of("plain")


@given(st.sampled_from(HOSTILE) | st.text())
def test_no_value_becomes_markup(text):
    page = page_of(text)
    assert (page.tags, page.attributes) == (PLAIN.tags, PLAIN.attributes)


@pytest.mark.parametrize("text", HOSTILE)
def test_every_value_is_shown_as_it_is(text):
    assert page_of(text).text.count(text) >= 5


def test_nothing_is_asked_of_others():
    assert not PLAIN.tags & {"script", "link", "img", "iframe", "object", "embed", "a", "base", "form"}
    assert not PLAIN.attributes & {"src", "href", "srcset", "action"}


@pytest.mark.parametrize(
    ("details", "score", "shown"),
    [
        ({}, 0.5, "1/1 entries passed"),
        ({}, 0.49, "0/1 entries passed"),
        ({"error": "E", "traceback": ""}, 1, "0/1 entries passed"),
    ],
)
def test_an_entry_passes_with_one_half_and_not_with_an_error(details, score, shown):
    entry = pixie.DatasetEntryResult(("e",), (pixie.Evaluation(score, "", details),), "entry", {})
    assert shown in pixie.generate_dataset_scorecard_html(pixie.DatasetScorecard("d", [entry]), "pixie test")


def test_a_page_never_takes_the_place_of_another_and_holds_no_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("PIXIE_ROOT", str(tmp_path))
    monkeypatch.setenv("SOME_API_KEY", "swordfish")
    entry = pixie.DatasetEntryResult(("e",), (pixie.Evaluation(1.0, "the key is swordfish"),), "entry", {})
    card = pixie.DatasetScorecard("d", [entry], datetime(2026, 1, 1, tzinfo=UTC))
    saved = {pixie.save_dataset_scorecard(card, "") for _ in range(2)}
    pages = [path.read_text() for path in tmp_path.glob("scorecards/*.html")]
    assert (len(saved), len(pages), "swordfish" in "".join(pages)) == (2, 2, False)


def test_a_run_leaves_one_for_each_dataset(tmp_path):
    (tmp_path / "app.py").write_text("def app(kwargs):\n    return 1 / kwargs['by']\n")
    entries = [
        {
            "description": f"by {by}",
            "entry_kwargs": {"by": by},
            "eval_input": [{"name": "by", "value": by}],
            "expectation": 1.0,
        }
        for by in (1, 2, 0)
    ]
    (tmp_path / "d.json").write_text(
        json.dumps({"name": "halves", "runnable": "app.py:app", "evaluators": ["ExactMatch"], "entries": entries})
    )
    done = warm.run(["-m", "evalwright", "pixie", "test", "d.json"], cwd=tmp_path)
    (path,) = (tmp_path / "pixie_qa/scorecards").glob("*-halves.html")
    page = path.read_text()
    assert (done.returncode, path.name in done.stdout) == (1, True)
    assert all(said in page for said in ("1/3 entries passed", "by 2", "ZeroDivisionError", "pixie test d.json"))


def test_runs_of_the_same_second_keep_their_results_apart(tmp_path, monkeypatch):
    monkeypatch.setenv("PIXIE_ROOT", str(tmp_path))
    paths = [save_results([], "pixie test", datetime(2026, 1, 2, tzinfo=UTC)) for _ in range(2)]
    assert [path.parent.name for path in paths] == ["20260102-000000", "20260102-000000-2"]
