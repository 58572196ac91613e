"""Pure functions from numbers to numbers: intervals, tests, repeated trials. Undefined values are None, never NaN.

Modules load when a name of theirs is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalwright.statistics.corrections import adjust_p_values
    from evalwright.statistics.independent import two_proportions
    from evalwright.statistics.means import mean_interval, mean_with_errors, stratified_mean
    from evalwright.statistics.paired import mcnemar, paired_difference
    from evalwright.statistics.proportions import proportion_interval, wilson, zero_failures_bound
    from evalwright.statistics.trials import pass_at_k, pass_at_k_table, pass_hat_k

_MODULES = {
    "adjust_p_values": "corrections",
    "mcnemar": "paired",
    "mean_interval": "means",
    "mean_with_errors": "means",
    "paired_difference": "paired",
    "pass_at_k": "trials",
    "pass_at_k_table": "trials",
    "pass_hat_k": "trials",
    "proportion_interval": "proportions",
    "stratified_mean": "means",
    "two_proportions": "independent",
    "wilson": "proportions",
    "zero_failures_bound": "proportions",
}

__all__ = [
    "adjust_p_values",
    "mcnemar",
    "mean_interval",
    "mean_with_errors",
    "paired_difference",
    "pass_at_k",
    "pass_at_k_table",
    "pass_hat_k",
    "proportion_interval",
    "stratified_mean",
    "two_proportions",
    "wilson",
    "zero_failures_bound",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
