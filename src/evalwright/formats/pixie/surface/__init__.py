"""The names of `pixie`."""
