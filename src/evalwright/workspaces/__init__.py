"""Folders for cells: seeded before, compared after, removed at the end."""
