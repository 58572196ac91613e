"""Runs foreign code and patterns: in processes of their own, and within a time limit."""
