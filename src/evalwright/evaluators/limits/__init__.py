"""Limits of time, tokens and cost."""
