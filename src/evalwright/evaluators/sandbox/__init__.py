"""Processes in which code and patterns of others run apart."""
