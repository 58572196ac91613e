"""The cases of suites and tables, looked at as data."""
