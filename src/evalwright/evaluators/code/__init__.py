"""Checks that are code."""
