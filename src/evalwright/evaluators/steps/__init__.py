"""Checks of the steps of a trace."""
