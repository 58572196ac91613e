"""Coding agents as systems under test: programs that work in a folder and print what they do."""
