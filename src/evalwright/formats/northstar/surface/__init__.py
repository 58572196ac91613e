"""The names of `northstar.evals`."""
