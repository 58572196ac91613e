"""Price tables: the prices of models, in a file of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, StrictStr, ValidationError

from evalwright.errors import InputError, Problem
from evalwright.files import yaml
from evalwright.files.key_paths import as_written, bracketed
from evalwright.formats.shared.findings import expectation, remedy
from evalwright.model.plan import Price

__all__ = ["PriceTable", "built_in_prices", "read_prices"]

_Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _ModelPrice(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    input_per_million_tokens: _Dollars
    output_per_million_tokens: _Dollars
    thinking_per_million_tokens: _Dollars = 0.0
    cached_input_per_million_tokens: _Dollars | None = None
    cache_write_per_million_tokens: _Dollars | None = None


class PriceTable(BaseModel):
    """A price table as written in a file."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    table_version: StrictStr
    freshness_date: date
    models: dict[StrictStr, _ModelPrice]


_ORIGINAL = Path(__file__).with_name("builtin_prices.yaml")
"""evalh's own table for suites that have none: a few models, and the date of their prices."""


def built_in_prices(models: Iterable[str], *, original: bool) -> tuple[dict[str, Price], date]:
    """The built-in prices of those models that have one, and their date; evalh's own if `original`."""
    if not original:
        from evalwright.llm.prices import built_in_price, day_of_prices

        return {model: price for model in models if (price := built_in_price(model)) is not None}, day_of_prices()
    table = PriceTable.model_validate(yaml.load(_ORIGINAL).value)
    return {model: Price(**table.models[model].model_dump()) for model in models if model in table.models}, (
        table.freshness_date
    )


def _message(item: Mapping[str, Any]) -> str:
    expected = expectation(item["msg"])
    if item["type"] in ("missing", "extra_forbidden"):
        return expected
    return f"{expected}, found {as_written(item['input'])}{remedy(item['type'], item['input'])}"


def read_prices(path: Path) -> dict[str, Price]:
    """Prices by model, US dollars per million tokens. Raises InputError with every mistake of the table."""
    document = yaml.load(path)
    try:
        table = PriceTable.model_validate(document.value)
    except ValidationError as error:
        raise InputError(
            [
                Problem(str(path), _message(item), document.line(item["loc"]), bracketed(item["loc"]))
                for item in error.errors(include_url=False)
            ]
        ) from None
    return {model: Price(**price.model_dump()) for model, price in table.models.items()}
