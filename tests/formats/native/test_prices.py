"""Price tables: read whole, and every mistake told with its line."""

import pytest

from evalwright.errors import InputError
from evalwright.formats.loading import load_suite
from evalwright.formats.native.prices import read_prices
from evalwright.model.plan import Price
from formats.suites import SOUND as SUITE
from formats.suites import write

SOUND = """\
table_version: "t1"
freshness_date: 2026-01-01
models:
  a: {input_per_million_tokens: 2, output_per_million_tokens: 10.5, thinking_per_million_tokens: 1}
  b: {input_per_million_tokens: 0, output_per_million_tokens: 1}
"""


def test_a_table_gives_a_price_for_each_model(tmp_path):
    (tmp_path / "p.yaml").write_text(SOUND)
    assert read_prices(tmp_path / "p.yaml") == {"a": Price(2.0, 10.5, 1.0), "b": Price(0.0, 1.0, 0.0)}


@pytest.mark.parametrize(
    ("old", "new", "key", "line"),
    [
        ("models:", "modles:", "modles", 3),
        ("10.5", "much", "models.a.output_per_million_tokens", 4),
        ("10.5", "-1", "models.a.output_per_million_tokens", 4),
        ("10.5", ".inf", "models.a.output_per_million_tokens", 4),
        ("thinking_per_million_tokens", "per_thought", "models.a.per_thought", 4),
        ('"t1"', "1", "table_version", 1),
        ("2026-01-01", "today", "freshness_date", 2),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path, old, new, key, line):
    (tmp_path / "p.yaml").write_text(SOUND.replace(old, new))
    with pytest.raises(InputError) as raised:
        read_prices(tmp_path / "p.yaml")
    assert (key, line) in {(problem.key, problem.line) for problem in raised.value.problems}


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("10.5", "much", "found 'much'"),
        ("10.5", "-1", "found -1"),
        ('"t1"', "1", "found 1; put it in quotes"),
    ],
)
def test_a_mistake_is_told_with_what_was_found(tmp_path, old, new, found):
    (tmp_path / "p.yaml").write_text(SOUND.replace(old, new))
    with pytest.raises(InputError, match=found):
        read_prices(tmp_path / "p.yaml")


def test_a_table_that_is_not_there_is_told_where_the_suite_names_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices.yaml").write_text(SOUND)
    path = write(tmp_path, {**SUITE, "metrics": {"price_table_path": "price.yaml"}})
    with pytest.raises(InputError, match=r"there is no file 'price\.yaml'.*prices\.yaml") as raised:
        load_suite(path)
    [problem] = raised.value.problems
    assert (problem.file, problem.key) == (str(path), "metrics.price_table_path")
    assert problem.line is not None


def warned(tmp_path, **changes):
    """The prices of a suite whose systems name models, and what is said of them."""
    systems = [
        {"name": "known", "adapter": "python_function", "target": "os.path:join", "model": "gpt-5"},
        {"name": "other", "adapter": "python_function", "target": "os.path:join", "metadata": {"model": "mine"}},
    ]
    suite = load_suite(write(tmp_path, {**SUITE, "systems": systems, **changes}))
    return suite.prices, [warning.message for warning in suite.warnings if warning.key == "metrics.price_table_path"]


def test_a_suite_without_a_table_has_the_built_in_prices_of_its_models_and_says_so(tmp_path):
    prices, warnings = warned(tmp_path)
    assert prices == {"gpt-5": Price(1.25, 10.0, 0.0, 0.125)}
    assert warnings == ["not set: costs of gpt-5 use the built-in prices of 2026-11-22"]


def test_a_table_of_the_suite_is_the_only_one(tmp_path):
    (tmp_path / "p.yaml").write_text(SOUND)
    prices, warnings = warned(tmp_path, metrics={"price_table_path": "p.yaml"})
    assert (prices.keys(), warnings) == ({"a", "b"}, [])


def test_a_model_without_a_price_is_named_where_costs_are_bounded(tmp_path):
    _, warnings = warned(tmp_path, run={"cost_limit_usd": 1})
    assert warnings[1] == "no price is known for mine: only costs that a system reports count"
