"""Checks on the cases of suites and tables as data."""
