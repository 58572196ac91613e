"""Platforms that complete a trace with what they saw of the call."""
