"""Pure functions from numbers to numbers: intervals, tests, repeated trials. Undefined values are None, never NaN.

Modules load when a name of theirs is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalwright.statistics.changes import changed_cases, flake_rate
    from evalwright.statistics.clusters import cluster_jackknife
    from evalwright.statistics.confidence import calibration
    from evalwright.statistics.corrections import adjust_p_values
    from evalwright.statistics.differences import decide_difference
    from evalwright.statistics.gates import e_value, flake_false_alarm, gate_characteristic, non_inferiority
    from evalwright.statistics.judges import corrected_difference, corrected_rate_interval, powered_rate, rogan_gladen
    from evalwright.statistics.latency import quantiles
    from evalwright.statistics.means import mean_interval
    from evalwright.statistics.missing import error_bounds
    from evalwright.statistics.paired import mcnemar, mcnemar_interval
    from evalwright.statistics.pairwise import bradley_terry, pairwise_swap
    from evalwright.statistics.power import (
        power_mcnemar_exact,
        power_paired_difference,
        power_paired_t,
        power_trials,
    )
    from evalwright.statistics.proportions import power_proportions, proportion_interval, zero_failures_bound
    from evalwright.statistics.raters import agreement, agreement_binary, krippendorff_alpha
    from evalwright.statistics.rates import rate_with_design_effect, wilson
    from evalwright.statistics.ratios import ratio_of_means
    from evalwright.statistics.sequences import betting_sequence, changed_pairs_e_value
    from evalwright.statistics.slopes import slope
    from evalwright.statistics.small_samples import guarded_difference, sign_flip
    from evalwright.statistics.trials import pass_at_k, pass_at_k_table, pass_hat_k, repeated_runs

_MODULES = {
    "adjust_p_values": "corrections",
    "agreement": "raters",
    "agreement_binary": "raters",
    "betting_sequence": "sequences",
    "bradley_terry": "pairwise",
    "calibration": "confidence",
    "changed_cases": "changes",
    "changed_pairs_e_value": "sequences",
    "cluster_jackknife": "clusters",
    "corrected_difference": "judges",
    "corrected_rate_interval": "judges",
    "decide_difference": "differences",
    "e_value": "gates",
    "error_bounds": "missing",
    "flake_false_alarm": "gates",
    "flake_rate": "changes",
    "gate_characteristic": "gates",
    "guarded_difference": "small_samples",
    "krippendorff_alpha": "raters",
    "mcnemar": "paired",
    "mcnemar_interval": "paired",
    "mean_interval": "means",
    "non_inferiority": "gates",
    "pairwise_swap": "pairwise",
    "pass_at_k": "trials",
    "pass_at_k_table": "trials",
    "pass_hat_k": "trials",
    "power_mcnemar_exact": "power",
    "power_paired_difference": "power",
    "power_paired_t": "power",
    "power_proportions": "proportions",
    "power_trials": "power",
    "powered_rate": "judges",
    "proportion_interval": "proportions",
    "quantiles": "latency",
    "rate_with_design_effect": "rates",
    "ratio_of_means": "ratios",
    "repeated_runs": "trials",
    "rogan_gladen": "judges",
    "sign_flip": "small_samples",
    "slope": "slopes",
    "wilson": "rates",
    "zero_failures_bound": "proportions",
}

__all__ = [
    "adjust_p_values",
    "agreement",
    "agreement_binary",
    "betting_sequence",
    "bradley_terry",
    "calibration",
    "changed_cases",
    "changed_pairs_e_value",
    "cluster_jackknife",
    "corrected_difference",
    "corrected_rate_interval",
    "decide_difference",
    "e_value",
    "error_bounds",
    "flake_false_alarm",
    "flake_rate",
    "gate_characteristic",
    "guarded_difference",
    "krippendorff_alpha",
    "mcnemar",
    "mcnemar_interval",
    "mean_interval",
    "non_inferiority",
    "pairwise_swap",
    "pass_at_k",
    "pass_at_k_table",
    "pass_hat_k",
    "power_mcnemar_exact",
    "power_paired_difference",
    "power_paired_t",
    "power_proportions",
    "power_trials",
    "powered_rate",
    "proportion_interval",
    "quantiles",
    "rate_with_design_effect",
    "ratio_of_means",
    "repeated_runs",
    "rogan_gladen",
    "sign_flip",
    "slope",
    "wilson",
    "zero_failures_bound",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
