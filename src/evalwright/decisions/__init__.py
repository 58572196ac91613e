"""Statements about several runs: comparison, drift, calibration."""
