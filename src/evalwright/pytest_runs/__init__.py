"""Evaluations made in tests of one's own: kept cell by cell while pytest runs, gathered into one run at its end."""
