"""Evaluations made in the user's own tests: stored cell by cell while pytest runs, and as one run at its end."""
