"""Letta Evals: suites with targets, extractors, graders and gates."""
