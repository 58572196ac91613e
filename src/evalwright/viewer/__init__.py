"""Stored runs in a browser: a web application on loopback, and the same pages as files."""
