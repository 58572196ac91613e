"""Evaluations made in the user's own tests: stored cell by cell while pytest runs, one run at its end."""
