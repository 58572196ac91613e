"""Price tables: read whole, and every mistake told with its line."""

import pytest

from evalwright.errors import InputError
from evalwright.formats.native.prices import read_prices
from evalwright.model.plan import Price

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
