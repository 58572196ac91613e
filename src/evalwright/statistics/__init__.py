"""Pure functions from numbers to numbers: intervals, paired tests, repeated trials. Undefined values are None."""

from evalwright.statistics.paired import mcnemar_exact, paired_mean_interval
from evalwright.statistics.proportions import proportion_interval, wilson
from evalwright.statistics.trials import pass_at_k, pass_at_k_table, pass_hat_k

__all__ = [
    "mcnemar_exact",
    "paired_mean_interval",
    "pass_at_k",
    "pass_at_k_table",
    "pass_hat_k",
    "proportion_interval",
    "wilson",
]
