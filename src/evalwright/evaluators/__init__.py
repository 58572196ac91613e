"""Checks on traces: pure functions of a case and a trace, one folder for each family."""
