"""Checks of what a system did to files."""
