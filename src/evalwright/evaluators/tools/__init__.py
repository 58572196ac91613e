"""Checks of tool calls."""
