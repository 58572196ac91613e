"""The prices of a suite: from its table, else the built-in ones of the models that it names."""

from __future__ import annotations

import os
from collections.abc import Sequence

from evalwright.errors import InputError
from evalwright.files.key_paths import Place
from evalwright.files.paths import near_file
from evalwright.formats.native.file import EvalFile
from evalwright.formats.native.prices import built_in_prices, read_prices
from evalwright.formats.native.suite_file import SuiteFile
from evalwright.model.plan import EvaluatorSpec, Price, Variant

__all__ = ["prices_of"]

_PLACE: Place = ("metrics", "price_table_path")


def prices_of(
    suite: SuiteFile, file: EvalFile, variants: Sequence[Variant], evaluators: Sequence[EvaluatorSpec]
) -> dict[str, Price]:
    """The prices by model, US dollars per million tokens; mistakes and doubts are reported to the suite's file."""
    models = list(dict.fromkeys(model for variant in variants if (model := _model_of(variant))))
    named = file.metrics.price_table_path
    if named is None:
        judges = [] if suite.original else [model for spec in evaluators for model in _judges_of(spec)]
        prices = _built_in(suite, models, judges) if models or judges else {}
    else:
        try:
            table = suite.found(_PLACE, named)
            if not os.path.isfile(table):
                suite.report(_PLACE, f"there is no file {named!r}{near_file(table)}")
                return {}
            prices = read_prices(table) if suite.must_be_inside(_PLACE, table) else {}
        except InputError as error:
            suite.findings.add(error)
            return {}
    bounded = file.run.cost_limit_usd is not None or any(
        evaluator.type == "cost_under" for evaluator in file.evaluators
    )
    if bounded and (unknown := [model for model in models if model not in prices]):
        suite.warn(_PLACE, f"no price is known for {', '.join(unknown)}: only costs that a system reports count")
    return prices


def _built_in(suite: SuiteFile, models: Sequence[str], judges: Sequence[str]) -> dict[str, Price]:
    """The systems' models; the line mentions that the costs of judges' models use these prices, too."""
    prices, day = built_in_prices([*models, *judges], original=suite.original)
    if prices:
        suite.warn(_PLACE, f"not set: costs of {', '.join(prices)} use the built-in prices of {day}")
    return {model: price for model, price in prices.items() if model in models}


def _model_of(variant: Variant) -> str | None:
    """The model whose price applies to a system's tokens."""
    named = variant.metadata.get("model") or variant.config.get("model")
    return named if isinstance(named, str) else None


def _judges_of(spec: EvaluatorSpec) -> list[str]:
    """The models that an evaluator calls, according to its configuration."""
    named = [*(spec.config.get("models") or []), spec.config.get("model")]
    models = [model for model in named if isinstance(model, str)]
    if models:
        from evalwright.evaluators.build import is_judge

        return models if is_judge(spec) else []
    return []
