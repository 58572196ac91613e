"""Platforms that complete a trace with what they recorded of the call."""
