"""Observes an application while it runs: spans of its steps and model calls, and values at marked points."""
