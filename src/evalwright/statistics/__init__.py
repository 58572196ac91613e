"""Pure functions from numbers to numbers: intervals, tests, repeated trials. Undefined values are None, never NaN.

Modules load when a name of theirs is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalwright.statistics.bootstrap import bootstrap_mean, bootstrap_mean_bca, cluster_bootstrap_mean
    from evalwright.statistics.clusters import clustered_mean, paired_difference_clustered
    from evalwright.statistics.confidence import calibration
    from evalwright.statistics.corrections import adjust_p_values
    from evalwright.statistics.gates import e_value, flake_false_alarm, gate_characteristic, non_inferiority, sprt
    from evalwright.statistics.independent import two_proportions
    from evalwright.statistics.judges import corrected_rate_interval, prediction_powered_mean, rogan_gladen
    from evalwright.statistics.latency import quantiles
    from evalwright.statistics.means import mean_interval, mean_with_errors, stratified_mean
    from evalwright.statistics.paired import mcnemar, paired_difference
    from evalwright.statistics.pairwise import bradley_terry, pairwise_swap
    from evalwright.statistics.power import power_paired_difference, power_paired_t, power_proportions
    from evalwright.statistics.proportions import proportion_interval, wilson, zero_failures_bound
    from evalwright.statistics.ranks import wilcoxon_signed_rank
    from evalwright.statistics.raters import agreement, agreement_binary, fleiss_kappa, krippendorff_alpha
    from evalwright.statistics.trials import pass_at_k, pass_at_k_table, pass_hat_k, repeated_runs

_MODULES = {
    "adjust_p_values": "corrections",
    "agreement": "raters",
    "agreement_binary": "raters",
    "bootstrap_mean": "bootstrap",
    "bootstrap_mean_bca": "bootstrap",
    "bradley_terry": "pairwise",
    "calibration": "confidence",
    "cluster_bootstrap_mean": "bootstrap",
    "clustered_mean": "clusters",
    "corrected_rate_interval": "judges",
    "e_value": "gates",
    "flake_false_alarm": "gates",
    "fleiss_kappa": "raters",
    "gate_characteristic": "gates",
    "krippendorff_alpha": "raters",
    "mcnemar": "paired",
    "mean_interval": "means",
    "mean_with_errors": "means",
    "non_inferiority": "gates",
    "paired_difference": "paired",
    "paired_difference_clustered": "clusters",
    "pairwise_swap": "pairwise",
    "pass_at_k": "trials",
    "pass_at_k_table": "trials",
    "pass_hat_k": "trials",
    "power_paired_difference": "power",
    "power_paired_t": "power",
    "power_proportions": "power",
    "prediction_powered_mean": "judges",
    "proportion_interval": "proportions",
    "quantiles": "latency",
    "repeated_runs": "trials",
    "rogan_gladen": "judges",
    "sprt": "gates",
    "stratified_mean": "means",
    "two_proportions": "independent",
    "wilcoxon_signed_rank": "ranks",
    "wilson": "proportions",
    "zero_failures_bound": "proportions",
}

__all__ = [
    "adjust_p_values",
    "agreement",
    "agreement_binary",
    "bootstrap_mean",
    "bootstrap_mean_bca",
    "bradley_terry",
    "calibration",
    "cluster_bootstrap_mean",
    "clustered_mean",
    "corrected_rate_interval",
    "e_value",
    "flake_false_alarm",
    "fleiss_kappa",
    "gate_characteristic",
    "krippendorff_alpha",
    "mcnemar",
    "mean_interval",
    "mean_with_errors",
    "non_inferiority",
    "paired_difference",
    "paired_difference_clustered",
    "pairwise_swap",
    "pass_at_k",
    "pass_at_k_table",
    "pass_hat_k",
    "power_paired_difference",
    "power_paired_t",
    "power_proportions",
    "prediction_powered_mean",
    "proportion_interval",
    "quantiles",
    "repeated_runs",
    "rogan_gladen",
    "sprt",
    "stratified_mean",
    "two_proportions",
    "wilcoxon_signed_rank",
    "wilson",
    "zero_failures_bound",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
